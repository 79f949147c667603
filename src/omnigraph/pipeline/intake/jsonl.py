"""A range of JSONL in a task: the loader's own code, block by block.

    unit -> blocks of whole lines -> load.blocks.read_block -> [jsonl] -> pieces

What a line means, and how its mistakes are told, is the local loader's business; here lines are
found. The local loader ends after some problems. A load of this size may write all of them to a
file, so here a block that is full of problems is read again in smaller blocks: all problems are
found, and few are in memory at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from omnigraph.load.blocks import cut_blocks, read_block
from omnigraph.load.shape import RecordShape
from omnigraph.pipeline.intake.parsed import Piece, TextOf
from omnigraph.pipeline.intake.ranges import Lines, prefetched, record_blocks
from omnigraph.pipeline.intake.units import Unit
from omnigraph.pipeline.intake.unpack import unpacked_stream
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.inputs import InputReader

PROBLEMS_AT_ONCE_MAX = 4096
_SPLIT_INTO = 16


def read_jsonl_unit(unit: Unit, catalog: Catalog) -> Iterator[Piece]:
    """The pieces of a unit, in the order of its lines. Raises ``UnreadableInput``."""
    shape = RecordShape(catalog)
    file = unit.planned.file
    with InputReader(file) as reader:
        for text in _texts(unit, reader):
            yield from read_text(text, catalog, shape)
        reader.verify()


def _texts(unit: Unit, reader: InputReader) -> Iterator[bytes]:
    planned = unit.planned
    if planned.compression is not None:
        yield from cut_blocks(unpacked_stream(reader, planned.compression))
        return
    read_at = reader.read_at
    if planned.file.bucket is not None:
        read_at = prefetched(read_at, start=unit.start, stop=unit.stop)
    blocks = record_blocks(
        read_at, start=unit.start, stop=unit.stop, size=planned.file.size, borders=Lines()
    )
    yield from (block.text for block in blocks)


def read_text(text: bytes, catalog: Catalog, shape: RecordShape) -> Iterator[Piece]:
    """Whole lines as pieces, with all of their problems."""
    result = read_block(text, catalog, shape, problems_max=PROBLEMS_AT_ONCE_MAX)
    if len(result.problems) >= PROBLEMS_AT_ONCE_MAX and result.line_count > 1:
        for smaller in _split(text):
            yield from read_text(smaller, catalog, shape)
        return
    yield Piece(
        parts=result.parts,
        problems=result.problems,
        line_count=result.line_count,
        text_of=line_texts(text),
        checksum=zlib.crc32(text),
    )


def _split(text: bytes) -> Iterator[bytes]:
    """The lines in smaller blocks; at least two, as there are at least two lines."""
    start = 0
    size = max(1, len(text) // _SPLIT_INTO)
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
