"""Batches of one table written as CSV or Parquet; what is written loads back.

batches -> [table text] -> a binary stream: exports, results of queries
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.schema.json_text import TEXT, content, join, pieces, plain_text
from omnigraph.schema.property_values import BLOB_PREFIX

ROW_GROUP_ROWS, ROW_GROUP_BYTES = 1 << 18, 64 << 20
_CSV_QUOTED = '[",\r\n]'


def write_csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """RFC 4180 with a header: null is empty, an empty text is ``""``."""
    out.write(csv_header(schema.names))
    for batch in batches:
        for piece in pieces(batch):
            out.write(csv_rows(piece))


def csv_header(names: Sequence[str]) -> bytes:
    """The first line."""
    return (",".join(_cells(pa.array(names, TEXT)).to_pylist()) + "\r\n").encode()


def csv_rows(batch: pa.RecordBatch) -> memoryview:
    """A line a row."""
    fragments: list[pa.Array | str] = []
    for values in batch.columns:
        fragments += ["," if fragments else "", pc.fill_null(_cells(values), "")]
    return content(join(*fragments, "\r\n"))


def _cells(values: pa.Array) -> pa.Array:
    text = plain_text(values)
    if pa.types.is_large_binary(values.type) or pa.types.is_binary(values.type):
        # JSON has a blob in quotes, a cell has not.
        text = pc.replace_substring(text, f'"{BLOB_PREFIX}', BLOB_PREFIX)
        text = pc.utf8_rtrim(text, characters='"')
    empty = pc.equal(text, "")
    quoted = pc.or_(pc.match_substring_regex(text, _CSV_QUOTED), empty)
    if not pc.any(quoted, min_count=0).as_py():
        return text
    doubled = join('"', pc.replace_substring(text, '"', '""'), '"')
    return pc.if_else(quoted, doubled, text)


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: BinaryIO) -> None:
    """Row groups of a moderate size; no rows are still a table."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(out, schema, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        rows, size = 0, 0
        for batch in batches:
            group.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if rows >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group), row_group_size=rows)
                group, rows, size = [], 0, 0
        if group:
            writer.write_table(pa.Table.from_batches(group), row_group_size=rows)
