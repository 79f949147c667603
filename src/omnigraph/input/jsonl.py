"""A unit of JSONL: blocks of whole lines, each of which becomes pieces.

    unit -> blocks of whole lines -> jsonl_blocks.read_block -> [jsonl] -> pieces

All problems of a file may be asked for, so a block that is full of them is read again in smaller
blocks: all are found, and few are in memory at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator

from omnigraph.input.jsonl_blocks import read_block
from omnigraph.input.loaded_rows import InputPiece, TextOf
from omnigraph.input.ranges import Block, Lines, text_blocks
from omnigraph.input.record_shape import RecordShape
from omnigraph.input.streams import SourceReader
from omnigraph.input.units import InputUnit
from omnigraph.schema.catalog import Catalog

PROBLEMS_AT_ONCE_MAX = 4096
_PIECES_OF_A_TEXT = 16


def jsonl_blocks(unit: InputUnit, reader: SourceReader) -> Iterator[Block]:
    """The lines of a unit. Raises ``UnreadableInput``."""
    return text_blocks(unit, reader, Lines())


def jsonl_pieces(unit: InputUnit, catalog: Catalog) -> Callable[[Block], Iterator[InputPiece]]:
    """The function that reads a block, in the order of its lines."""
    del unit  # Every line names its type.
    shape = RecordShape(catalog)
    return lambda block: read_text(block.text, catalog, shape)


def read_text(text: bytes, catalog: Catalog, shape: RecordShape) -> Iterator[InputPiece]:
    """Whole lines as pieces, with all of their problems."""
    result = read_block(text, catalog, shape, problems_max=PROBLEMS_AT_ONCE_MAX)
    if len(result.problems) >= PROBLEMS_AT_ONCE_MAX and result.line_count > 1:
        for smaller in _split(text):
            yield from read_text(smaller, catalog, shape)
        return
    yield InputPiece(
        parts=result.parts,
        problems=result.problems,
        line_count=result.line_count,
        text_of=line_texts(text),
        checksum=zlib.crc32(text),
    )


def _split(text: bytes) -> Iterator[bytes]:
    """The lines in smaller blocks; at least two, as there are at least two lines."""
    start = 0
    size = max(1, len(text) // _PIECES_OF_A_TEXT)
    while start < len(text):
        stop = text.find(b"\n", min(start + size, len(text) - 1)) + 1
        if start == 0 and stop == len(text):
            stop = text.find(b"\n") + 1
        yield text[start:stop]
        start = stop


def line_texts(text: bytes) -> TextOf:
    """Looks up single lines of a text by their number; the text is cut when first asked."""
    lines: list[bytes] = []

    def text_of(line: int) -> bytes | None:
        if not lines:
            lines.extend(text.split(b"\n"))
        return lines[line - 1].removesuffix(b"\r") if 0 < line <= len(lines) else None

    return text_of
