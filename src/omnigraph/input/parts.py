"""Rows of a DataFrame on their way into a graph: parts that executors write and a driver loads.

    executors: batches -> [parts] -> objects below the graph's root
    driver:    the parts that were reported -> [parts] -> one commit

A part has a name of its own for every attempt of a task, and only parts whose names came back are
loaded: a task that was repeated leaves an object that is not read. All parts of one write lie
under one prefix, so that one sweep removes them, whatever became of the write. A part that a task
ends after that sweep, because another task failed before it, waits for a cleanup.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.ids import SystemIds
from omnigraph.input.loaded_rows import LoadedRows
from omnigraph.input.publishing import load_rows
from omnigraph.input.tables import rows_from_table
from omnigraph.manifest.pinned import opened
from omnigraph.rules.table_delta import WriteMode
from omnigraph.schema.catalog import Catalog, type_named
from omnigraph.storage.location import Location
from omnigraph.storage.streams import PARTS, open_input, open_output, remove_below
from omnigraph.write.request import Receipt

SOURCE_NAME = "DataFrame"


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameWrite:
    """A DataFrame to be written to one type, and how."""

    location: Location
    type_name: str
    mode: WriteMode
    branch: str
    actor: str | None
    message: str | None
    write_id: str
    schema: pa.Schema
    """Of the batches that Spark gives."""

    @property
    def prefix(self) -> str:
        """Below it lie all parts of this write and nothing else."""
        return f"{PARTS}/{self.write_id}"


def write_part(write: FrameWrite, batches: Iterable[pa.RecordBatch]) -> str | None:
    """Runs on executors: the batches as one part; its name, or None if there was no row."""
    rows = (batch for batch in batches if batch.num_rows)
    first = next(rows, None)
    if first is None:
        return None
    name = f"{write.prefix}/{SystemIds().ulid()}.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        open_output(write.location, name) as out,
        pa.ipc.new_stream(out, first.schema, options=options) as stream,
    ):
        stream.write_batch(first)
        for batch in rows:
            stream.write_batch(batch)
    return name


def load_parts(write: FrameWrite, names: Sequence[str]) -> Receipt:
    """Load the rows of these parts as one commit, with every check.

    The local engine does it: this process holds all rows at once.
    """

    def read(catalog: Catalog) -> Mapping[str, LoadedRows]:
        graph_type = type_named(catalog, write.type_name)
        rows = rows_from_table(graph_type, table(), repository.ids, source_name=SOURCE_NAME)
        return {graph_type.table_key: rows}

    def table() -> pa.Table:
        if not names:
            return write.schema.empty_table()
        streams = [pa.ipc.open_stream(open_input(write.location, name)) for name in names]
        return pa.concat_tables([stream.read_all() for stream in streams])

    with opened(write.location) as repository:
        receipt, _ = load_rows(
            repository,
            read,
            mode=write.mode,
            branch=write.branch,
            actor=write.actor,
            message=write.message,
            repeatable=True,
        )
        return receipt


def remove_parts(write: FrameWrite) -> None:
    """Remove all parts of a write, also those of attempts that were not reported."""
    remove_below(write.location, write.prefix)
