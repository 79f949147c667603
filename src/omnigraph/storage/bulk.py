"""Data files of a table written by many processes, and rows of a version marked by them.

    executors: batches -> [bulk] -> fragments as text -> driver: [bulk] -> StagedFiles, Patch

Nothing here makes a version: files that are not committed are unreferenced. Text
is what passes between processes, because Lance's own objects do not travel everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.failpoints import FailPoint, hit
from omnigraph.storage.changes import StagedFiles
from omnigraph.storage.faults import translated
from omnigraph.storage.layout import FILE_FORMAT, Addresses, physical_schema, physical_table
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion
from omnigraph.storage.namespace import access
from omnigraph.storage.pieces import open_pinned
from omnigraph.storage.row_changes import identify
from omnigraph.storage.rows import RowIds, read_blobs


def write_partition(
    location: Location,
    path: str,
    base: TableVersion | None,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch | pa.Table],
    *,
    row_ids: RowIds | None = None,
) -> list[str]:
    """Write rows as data files of a table; they belong to no version yet. No file for no rows.

    ``base`` is a version that has the columns of ``schema``; without one the table is a new one.
    ``row_ids`` gives the rows the identity of rows that they replace.
    """
    physical = physical_schema(schema)
    found = _with_rows(batches, schema)
    first = next(found, None)
    if first is None:
        return []
    with translated(f"writing data files of {path}"):
        fragments = write_fragments(
            pa.RecordBatchReader.from_batches(physical, chain([first], found)),
            location.table_uri(path) if base is None else open_pinned(location, base).dataset,
            schema=physical,
            mode="create" if base is None else "append",
            data_storage_version=FILE_FORMAT,
            **access(location, path),
        )
        if row_ids is not None:
            identify(fragments, row_ids)
    hit(FailPoint.STAGE_AFTER_FILES)
    return [_text(fragment) for fragment in fragments]


def mark_rows(
    location: Location, base: TableVersion, fragment_id: int, offsets: Sequence[int]
) -> str | None:
    """Write what marks these rows of a fragment as deleted; None if none of its rows is left."""
    with translated(f"marking rows of {base.path}"):
        fragment: Any = open_pinned(location, base).dataset.get_fragment(fragment_id)
        marked = fragment.delete_rows(list(offsets))
    return None if marked is None else _text(marked)


def blobs_at(
    location: Location, base: TableVersion, column: str, addresses: Addresses
) -> pa.LargeBinaryArray:
    """The blobs of the rows at these addresses, in this order."""
    with translated(f"reading {column} of {base.path}"):
        return read_blobs(open_pinned(location, base).dataset, column, addresses)


def fragments_from_text(texts: Iterable[str]) -> tuple[Any, ...]:
    """What other processes wrote, in this order."""
    return tuple(FragmentMetadata.from_json(text) for text in texts)


def staged_files(texts: Iterable[str]) -> StagedFiles:
    """Files that other processes wrote, to be appended or to replace."""
    return StagedFiles(fragments=fragments_from_text(texts), rows=None)


def deletion_names(path: str, fragments: Iterable[Any]) -> list[str]:
    """The files that mark rows of these fragments as deleted, from the root."""
    return [
        f"{path}/{fragment.deletion_file.path(fragment.id)}"
        for fragment in fragments
        if fragment.deletion_file is not None
    ]


def _with_rows(
    batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        yield from (b for b in physical_table(rows.cast(schema)).to_batches() if b.num_rows)


def _text(fragment: Any) -> str:
    return json.dumps(fragment.to_json(), separators=(",", ":"))
