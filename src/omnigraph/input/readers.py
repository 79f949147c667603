"""The reader of every format: blocks are read in order, and each becomes pieces in any thread.

unit -> blocks (bytes are read) -> pieces (bytes are understood) -> [readers] -> a runner
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InputError
from omnigraph.input.csv import csv_blocks, csv_pieces
from omnigraph.input.jsonl import jsonl_blocks, jsonl_pieces
from omnigraph.input.pieces import InputPiece
from omnigraph.input.problems import Problem
from omnigraph.input.streams import SourceReader, open_source
from omnigraph.input.table_files import arrow_batches, batch_pieces, parquet_batches
from omnigraph.input.units import Format, InputUnit
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.inputs import UnreadableInput

PiecesOf = Callable[[Any], Iterator[InputPiece]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatReader:
    """How one format is read."""

    blocks: Callable[[InputUnit, SourceReader], Iterator[Any]]
    """Whole records of a unit, each block with ``done``: the bytes of the file read so far."""
    pieces: Callable[[InputUnit, Catalog], PiecesOf]
    """What tells what a block of a unit holds; any thread may ask it."""


READERS = {
    Format.JSONL: FormatReader(blocks=jsonl_blocks, pieces=jsonl_pieces),
    Format.CSV: FormatReader(blocks=csv_blocks, pieces=csv_pieces),
    Format.PARQUET: FormatReader(blocks=parquet_batches, pieces=batch_pieces),
    Format.ARROW: FormatReader(blocks=arrow_batches, pieces=batch_pieces),
}


def unit_blocks(unit: InputUnit) -> Iterator[Any]:
    """The blocks of a unit, in order. Raises ``UnreadableInput``."""
    with open_source(unit.planned.file) as reader:
        yield from READERS[unit.planned.format].blocks(unit, reader)
        reader.verify()


def read_unit(unit: InputUnit, catalog: Catalog) -> Iterator[InputPiece]:
    """All pieces of a unit, in order; that it cannot be read is a problem among the others."""
    pieces_of, lines = READERS[unit.planned.format].pieces(unit, catalog), 0
    try:
        for block in unit_blocks(unit):
            for piece in pieces_of(block):
                lines += piece.line_count
                yield piece
    except (UnreadableInput, InputError) as error:
        yield broken(unit, error, lines)


def broken(unit: InputUnit, error: UnreadableInput | InputError, lines: int) -> InputPiece:
    """That a unit cannot be read on after some lines, as a problem."""
    message = error.reason if isinstance(error, UnreadableInput) else error.message
    # Only a file that is read from its start tells where in it this happened.
    if isinstance(error, UnreadableInput) and unit.planned.in_order:
        message = f"{message} after line {lines}"
    return InputPiece(parts=(), problems=[Problem(message=message)], line_count=0)
