"""Versions that are made aside: what they hold, how they go on, and that nothing else sees them."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.schema.arrow import table_schema
from omnigraph.storage import compact, staging_aside
from omnigraph.storage.changes import Append, Change, Remove, Upsert
from omnigraph.storage.compact import worn_tail
from omnigraph.storage.rows import listed_row_ids, row_ids
from omnigraph.storage.staged import StagedTable
from omnigraph.storage.tables import Table

SCHEMA = "node P { code: String @key  n: I32?  photo: Blob? }"


@pytest.fixture
def graph(s3_root: str) -> omnigraph.Graph:
    return omnigraph.init(s3_root, SCHEMA)


def rows(graph: omnigraph.Graph, values: dict[int, int]) -> pa.Table:
    some = [
        {"id": f"p{i}", "code": f"p{i}", "n": n, "photo": bytes([n % 256]) * 9}
        for i, n in values.items()
    ]
    return pa.Table.from_pylist(some, schema=table_schema(graph.catalog.nodes["P"]))


def stage(graph: omnigraph.Graph, base: Table | None, *changes: Change) -> StagedTable:
    kind, store = graph.catalog.nodes["P"], graph._repository.tables
    number = 0 if base is None else base.name.version
    first = worn_tail(base) if base is not None else None
    staged = store.stage(
        kind.table_path, base, list(changes), table_schema(kind), f"v{number}", first=first
    )
    store.pin(staged)
    return staged


def append(graph: omnigraph.Graph, base: Table | None, values: dict[int, int]) -> Append:
    path = graph.catalog.nodes["P"].table_path
    return Append(files=graph._repository.tables.write_files(path, rows(graph, values), base))


def content(table: Table) -> dict[int, tuple[int, bytes]]:
    found = table.take(range(table.row_count), ("id", "n", "photo")).to_pylist()
    return {int(r["id"][1:]): (r["n"], r["photo"]) for r in found}


def test_random_changes_follow_each_other(graph: omnigraph.Graph) -> None:
    dice, known = random.Random(5), {i: i for i in range(40)}
    staged = stage(graph, None, append(graph, None, known))
    for step in range(25):
        base = staged.table
        new = {100 + step: step}
        again = {i: dice.randrange(256) for i in dice.sample(sorted(known), 3)}
        gone = dice.sample(sorted(known.keys() - again.keys()), dice.randrange(2))
        changes: list[Change] = [append(graph, base, new)]
        if step % 3:
            changes = [Upsert(rows=rows(graph, {**new, **again}))]
            known |= again
        if gone:
            changes.append(Remove(ids=pa.array([f"p{i}" for i in gone], pa.string())))
        known = {i: n for i, n in (known | new).items() if i not in gone}
        staged = stage(graph, base, *changes)
        assert staged.manifest is not None, "it was not made aside"
        # As its maker sees it, and as anybody who opens it.
        opened = graph._repository.tables.open(staged.table.name)
        wanted = {i: (n, bytes([n % 256]) * 9) for i, n in known.items()}
        assert content(staged.table) == content(opened) == wanted
        assert opened.manifest == staged.manifest
    opened = graph._repository.tables.open(staged.table.name)
    positions = opened.positions("id", pa.array([f"p{i}" for i in known], pa.string()))
    listed = listed_row_ids(opened.facts, opened.layout.addresses_at(positions))
    assert listed.tolist() == row_ids(opened.dataset, opened.layout, positions).tolist()
    assert len(set(listed.tolist())) == len(known), "no identity twice"


def test_one_base_has_many_successors(graph: omnigraph.Graph) -> None:
    base = stage(graph, None, append(graph, None, {1: 1})).table
    made = [stage(graph, base, append(graph, base, {n: n})).table for n in (2, 3)]
    assert [sorted(content(table)) for table in made] == [[1, 2], [1, 3]]
    assert sorted(content(base)) == [1]


def test_large_changes_go_the_long_way(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = stage(graph, None, append(graph, None, {1: 1}))
    monkeypatch.setattr(staging_aside, "SMALL_BYTES_MAX", 0)
    large = stage(graph, small.table, append(graph, small.table, {2: 2}))
    assert large.manifest is None
    monkeypatch.undo()
    back = stage(graph, large.table, Upsert(rows=rows(graph, {1: 9, 3: 3})))
    assert back.manifest is not None
    assert {i: n for i, (n, _) in content(back.table).items()} == {1: 9, 2: 2, 3: 3}


def test_small_files_are_joined_aside(
    s3_root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compact, "TAIL_MAX_REMOTE", 4)
    with omnigraph.init(f"{s3_root}/plain", "node P { code: String @key }") as graph:
        for number in range(12):
            graph.load({"P": [{"code": f"p{number}"}]})
            if number % 5 == 4:
                graph.mutate(f'delete P where code = "p{number - 1}"')
        repository = graph._repository
        pin = repository.branch("main").head.snapshot.pins["node:P"]
        opened = repository.tables.open(pin.name)
        assert len(opened.layout.fragments) <= 5
        left = {f"p{number}" for number in range(12)} - {"p3", "p8"}
        assert set(opened.columns(("id",))["id"].to_pylist()) == left


def test_a_state_is_read_after_its_handle_is_closed(s3_root: str) -> None:
    with omnigraph.init(f"{s3_root}/plain", "node P { code: String @key  n: I32? }") as graph:
        graph.load({"P": [{"code": f"p{number}", "n": number} for number in range(3)]})
    with omnigraph.open(f"{s3_root}/plain") as graph:
        state = graph.snapshot()
    found = state.query('match { $p: P { code: "p1" } } return { $p.n }').to_dicts()
    assert found == [{"p.n": 1}]
