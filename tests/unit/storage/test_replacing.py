"""Rows that take the place of others: the right ones, with their identity, version after version."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.schema.arrow import table_schema
from omnigraph.storage import row_changes
from omnigraph.storage.changes import Append, Change, Remove, Upsert
from omnigraph.storage.tables import Table

SCHEMA = "node P { code: String @key  n: I32?  photo: Blob? }"


@pytest.fixture(params=[0, row_changes.LARGE_ROWS], ids=["two operations", "one operation"])
def graph(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> omnigraph.Graph:
    monkeypatch.setattr(row_changes, "LARGE_ROWS", request.param)
    return omnigraph.init(tmp_path / "g", SCHEMA)


def rows(graph: omnigraph.Graph, values: dict[int, int]) -> pa.Table:
    some = [
        {"id": f"p{i}", "code": f"p{i}", "n": n, "photo": bytes([n % 256]) * 9}
        for i, n in values.items()
    ]
    return pa.Table.from_pylist(some, schema=table_schema(graph.catalog.nodes["P"]))


def stage(graph: omnigraph.Graph, base: Table | None, *changes: Change) -> Table:
    kind, store = graph.catalog.nodes["P"], graph._repository.tables
    number = 0 if base is None else base.name.version
    staged = store.stage(kind.table_path, base, list(changes), table_schema(kind), f"v{number}")
    store.pin(staged)
    return staged.table


def first(graph: omnigraph.Graph, values: dict[int, int]) -> Table:
    path = graph.catalog.nodes["P"].table_path
    files = graph._repository.tables.write_files(path, rows(graph, values), None)
    return stage(graph, None, Append(files=files))


def content(table: Table) -> dict[int, tuple[int, bytes]]:
    found = table.take(range(table.row_count), ("id", "n", "photo")).to_pylist()
    assert len({r["id"] for r in found}) == len(found), "no id twice"
    return {int(r["id"][1:]): (r["n"], r["photo"]) for r in found}


def identities(table: Table) -> dict[int, int]:
    found = table.dataset.to_table(columns=["id", "_rowid"]).to_pylist()
    return {int(r["id"][1:]): r["_rowid"] for r in found}


@pytest.mark.parametrize("share", [0.02, 0.7])
def test_any_mix_of_replaced_new_and_removed_rows(graph: omnigraph.Graph, share: float) -> None:
    draw = random.Random(int(share * 100))
    model = dict.fromkeys(range(120), 0)
    table, serial = first(graph, model), 120
    known = identities(table)
    for turn in range(1, 13):
        table.columns(("id", "n"))  # What a warm writer knows is carried along.
        chosen = draw.sample(sorted(model), max(1, int(len(model) * share)))
        gone = [i for i in chosen if draw.random() < 0.2]
        update = {i: turn for i in chosen if i not in gone}
        fresh = {serial + i: turn for i in range(draw.randrange(3))}
        serial += len(fresh)
        order = draw.sample(list((update | fresh).items()), len(update | fresh))
        changes: list[Change] = []
        if order:
            changes.append(Upsert(rows=rows(graph, dict(order))))
        if gone:
            changes.append(Remove(ids=pa.array([f"p{i}" for i in gone])))
        table = stage(graph, table, *changes)
        model = {i: n for i, n in (model | update | fresh).items() if i not in gone}
        assert content(table) == {i: (n, bytes([n % 256]) * 9) for i, n in model.items()}
        # Who holds the version that was written knows the same as who opens it.
        opened = graph._repository.tables.open(table.name)
        for name in ("id", "n"):
            assert table.columns((name,))[name].to_pylist() == (
                opened.columns((name,))[name].to_pylist()
            )
        now = identities(table)
        assert all(now[i] == known[i] for i in model if i in known), "identity is kept"
        assert len(set(now.values())) == len(now)
        known = {**known, **now}


def test_only_new_and_only_replaced_rows(graph: omnigraph.Graph) -> None:
    table = first(graph, {1: 0, 2: 0})
    before = identities(table)
    table = stage(graph, table, Upsert(rows=rows(graph, {3: 1})))
    table = stage(graph, table, Upsert(rows=rows(graph, {2: 2, 1: 2})))
    assert {i: n for i, (n, _) in content(table).items()} == {1: 2, 2: 2, 3: 1}
    assert {i: r for i, r in identities(table).items() if i in before} == before
    # The first file has no rows left.
    assert len(table.layout.fragments) == 2
