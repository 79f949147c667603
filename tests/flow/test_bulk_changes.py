"""Files that other processes wrote become visible through the one door: appended, replaced, patched."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.manifest.snapshot import TableChange
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.bulk import (
    deletion_names,
    fragments_from_text,
    mark_rows,
    staged_files,
    write_partition,
)
from omnigraph.storage.changes import Append, Patch, Replace
from omnigraph.write.plan import Action
from omnigraph.write.publish import publish
from omnigraph.write.request import Receipt, WriteRequest
from omnigraph.write.stage import BulkChange, BulkWork
from omnigraph.write.txn import WriteTxn

SCHEMA = "node Person { name: String @key  age: I32?  photo: Blob? }"
KEY = "node:Person"


@pytest.fixture
def graph(store_root: str) -> omnigraph.Graph:
    return omnigraph.init(store_root, SCHEMA)


def rows(**ages: int) -> pa.Table:
    graph_type_columns = {
        "id": list(ages),
        "name": list(ages),
        "age": pa.array(ages.values(), pa.int32()),
        "photo": pa.array([n.encode() * 3 for n in ages], pa.large_binary()),
    }
    return pa.table(graph_type_columns)


def write(graph: omnigraph.Graph, table: pa.Table, base=None, **options) -> list[str]:
    graph_type = graph.catalog.table(KEY)
    schema = table_schema(graph_type)
    location = graph._repository.location
    return write_partition(location, graph_type.table_path, base, schema, [table], **options)


def bulk(graph: omnigraph.Graph, make, action: Action, change: TableChange) -> Receipt:
    graph_type = graph.catalog.table(KEY)

    def prepare(txn: WriteTxn) -> BulkChange:
        work = BulkWork(type=graph_type, actions=(action,), change=change, staged=make(txn))
        return BulkChange(tables={KEY: work})

    request = WriteRequest(kind="load", branch="main", prepare=prepare)
    return publish(graph._repository, request)


def people(graph: omnigraph.Graph) -> dict[str, int]:
    return {r["id"]: r["age"] for r in graph.snapshot().rows("Person")}


def row_ids(graph: omnigraph.Graph) -> dict[str, int]:
    pin = graph._repository.branch("main").head.snapshot.pins[KEY]
    table = graph._repository.table(pin).dataset.to_table(columns=["id", "_rowid"])
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


def test_files_of_others_are_appended_in_the_order_given(graph: omnigraph.Graph) -> None:
    one, other = write(graph, rows(a=1, b=2)), write(graph, rows(c=3))
    staged = Append(files=staged_files([*one, *other]))
    bulk(graph, lambda txn: staged, Action.APPEND, TableChange(inserted=3))
    assert list(people(graph).items()) == [("a", 1), ("b", 2), ("c", 3)]
    more = write(graph, rows(d=4), graph._repository.branch("main").head.snapshot.pins[KEY].name)
    staged = Append(files=staged_files(more))
    bulk(graph, lambda txn: staged, Action.APPEND, TableChange(inserted=1))
    with omnigraph.open(graph.uri) as fresh:
        assert people(fresh) == {"a": 1, "b": 2, "c": 3, "d": 4}
        photos = {r["id"]: r["photo"] for r in fresh.snapshot().rows("Person")}
        assert photos["d"] == b"ddd"


def test_files_of_others_replace_the_content(graph: omnigraph.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "old"}}])
    staged = Replace(files=staged_files(write(graph, rows(a=1))))
    bulk(graph, lambda txn: staged, Action.REPLACE, TableChange(inserted=1, deleted=1))
    assert people(graph) == {"a": 1}
    nothing = Replace(files=staged_files([]))
    bulk(graph, lambda txn: nothing, Action.REPLACE, TableChange(deleted=1))
    assert people(graph) == {}


def test_a_patch_keeps_the_identity_of_replaced_rows(graph: omnigraph.Graph) -> None:
    graph.load({"Person": rows(a=1, b=2, c=3).drop(["id"])})
    graph.load({"Person": rows(d=4).drop(["id"])})
    before = row_ids(graph)
    base = graph._repository.branch("main").head.snapshot.pins[KEY].name
    path = graph.catalog.table(KEY).table_path
    location = graph._repository.location
    ids = np.array([before["b"], before["d"]], np.uint64)
    added = write(graph, rows(b=20, d=40), base, row_ids=ids) + write(graph, rows(e=5), base)
    marks = [mark_rows(location, base, 0, [1]), mark_rows(location, base, 1, [0])]
    marked = fragments_from_text(m for m in marks if m is not None)
    assert len(deletion_names(path, marked)) == 1
    patch = Patch(marked=marked, gone=(1,), added=fragments_from_text(added))
    bulk(graph, lambda txn: patch, Action.UPSERT, TableChange(inserted=1, updated=2))
    assert people(graph) == {"a": 1, "b": 20, "c": 3, "d": 40, "e": 5}
    after = row_ids(graph)
    assert {k: after[k] for k in before} == before
    assert after["e"] not in before.values()
    graph.load({"Person": rows(e=50, f=6).drop(["id"])}, mode="merge")
    assert people(graph) == {"a": 1, "b": 20, "c": 3, "d": 40, "e": 50, "f": 6}
    assert len(set(row_ids(graph).values())) == 6


def test_no_rows_no_file(graph: omnigraph.Graph) -> None:
    assert write(graph, rows()) == []
    path = graph.catalog.table(KEY).table_path
    if graph._repository.location.local_path is not None:
        assert not (Path(graph.uri) / path / "data").exists()
