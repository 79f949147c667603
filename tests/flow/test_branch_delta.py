"""The delta of two versions of a table: exact over any history, and as cheap as the difference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from branch_histories import CODES, History, fork, history, naive_diff, p, q, steps
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.branch import delta as deltas_of_tables
from omnigraph.branch import pace, physical
from omnigraph.branch.delta import DELETE, INSERT, UPDATE, RowDelta, table_delta
from omnigraph.branch.types import ComparedTypes, matched_types
from omnigraph.errors import InternalError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from support.examples import examples


def deltas(repository: Repository, before: Snapshot, after: Snapshot) -> dict[str, RowDelta]:
    catalogs = [repository.schema(s.schema_hash).catalog for s in (before, after)]
    found: dict[str, RowDelta] = {}
    for pair in matched_types(*catalogs):
        pins = before.pins.get(pair.table_key), after.pins.get(pair.table_key)
        tables = [repository.table(pin) if pin is not None else None for pin in pins]
        found[pair.newest.name] = table_delta(*tables, pair)
    return found


def check(made: History, a: int, b: int) -> None:
    (before, was), (after, now) = made.seen[a], made.seen[b]
    expected = naive_diff(was, now)
    found = deltas(made.graph._repository, before, after)
    for name, delta in found.items():
        ids = delta.ids.to_pylist()
        assert ids == sorted((i for t, i in expected if t == name), key=str.encode)
        for entity, op, old, new in zip(ids, delta.ops, delta.before, delta.after, strict=True):
            line_before, line_after = expected[name, entity]
            assert op == (
                INSERT if line_before is None else DELETE if line_after is None else UPDATE
            )
            assert (old >= 0, new >= 0) == (line_before is not None, line_after is not None)
        for side in ("before", "after"):
            rows = delta.having(side)
            assert delta.images(side, rows)["id"].to_pylist() == [ids[r] for r in rows]


@settings(max_examples=examples(8), derandomize=True, phases=[Phase.generate])
@given(steps=steps, lean=st.booleans())
def test_any_two_states_differ_as_their_exports_do(steps: list[tuple], lean: bool) -> None:
    """Whether the rows that differ are few enough to be kept, or are read piece by piece."""
    with history(steps) as made, pytest.MonkeyPatch.context() as patch:
        if lean:
            patch.setattr(deltas_of_tables, "ROWS_MAX", 0)
            patch.setattr(pace, "ROWS_FIRST", 1)
            patch.setattr(pace, "PIECE_BYTES", 100)
            patch.setattr(physical, "SMALL_FILE_ROWS", 1)
        newest = len(made.seen) - 1
        for other in range(newest + 1):
            check(made, other, newest)
            check(made, newest, other)


def test_an_entity_that_went_and_came_back() -> None:
    edge = {"edge": "E", "from": "a", "to": "b", "data": {"id": "e", "n": 1}}
    again = [
        ("append", "main", [edge]),
        ("mutate", "main", "query m() { delete E where n = 1 }"),
        ("append", "main", [edge]),
        ("mutate", "main", "query m() { delete E where n = 1 }"),
        ("append", "main", [{**edge, "data": {"id": "e", "n": 2}}]),
    ]
    with history(again) as made:
        before, same, changed = made.seen[3][0], made.seen[5][0], made.seen[7][0]
        repository = made.graph._repository
        assert len(deltas(repository, before, same)["E"]) == 0
        delta = deltas(repository, before, changed)["E"]
        assert (delta.ids.to_pylist(), delta.ops.tolist()) == (["e"], [UPDATE])
        assert delta.images("before", slice(None), ["n"])["n"].to_pylist() == [1]
        assert delta.images("after", [0], ["n"])["n"].to_pylist() == [2]


def test_deletions_of_two_branches_in_one_file() -> None:
    """Each hides rows of a file that both have; what both hide is no difference."""
    both, mine, theirs = (f'query m() {{ delete Q where code = "{c}" }}' for c in "abc")
    with history(
        [
            ("append", "main", [q("b"), q("c"), q("d")]),
            ("merge", "other", [q("b"), q("c"), q("d")]),
        ]
    ) as made:
        fork(made.root, "third")
        graph = made.graph
        for branch, text in [("main", both), ("third", both), ("main", mine), ("third", theirs)]:
            graph.mutate(text, branch=branch)
        made.keep("main")
        made.keep("third")
        found = deltas(graph._repository, made.seen[-2][0], made.seen[-1][0])["Q"]
        assert found.ids.to_pylist() == ["b", "c"]
        assert found.ops.tolist() == [INSERT, DELETE]
        check(made, -2, -1)
        check(made, -1, -2)


def test_rows_can_be_chosen() -> None:
    with history([("append", "main", [p(c) for c in CODES[2:]])]) as made:
        delta = deltas(made.graph._repository, made.seen[1][0], made.seen[-1][0])["P"]
        assert delta.counts.inserted == len(delta) == len(CODES) - 2
        assert delta.rows(INSERT, DELETE).tolist() == [0, 1, 2, 3]
        assert delta.rows(UPDATE).tolist() == []
        some = delta.select(np.array([True, False, True, False]))
        assert some.ids.to_pylist() == delta.ids.to_pylist()[::2]
        with pytest.raises(InternalError):
            delta.images("before")


def test_a_difference_too_heavy_to_keep_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    with history([]) as made:
        graph = made.graph
        graph.load([p(f"p{i}", n=i % 7, raw="base64:AA==") for i in range(1500)])
        made.keep("main")
        # Rewritten as they were, changed in a number, changed in a blob.
        graph.load([p(f"p{i}", n=-2, raw="base64:AA==") for i in range(500)], mode="merge")
        graph.load([p(f"p{i}", n=i % 7, raw="base64:AA==") for i in range(500)], mode="merge")
        graph.load([p(f"p{i}", n=-1, raw="base64:AA==") for i in range(500, 700)], mode="merge")
        graph.load([p(f"p{i}", n=i % 7) for i in range(700, 1000)], mode="merge")
        made.keep("main")
        states = made.seen[-2][0], made.seen[-1][0]
        light = deltas(graph._repository, *states)["P"]
        monkeypatch.setattr(deltas_of_tables, "BYTES_MAX", 1_000)
        heavy = deltas(graph._repository, *states)["P"]
        assert all(s.cached for s in light.sides) and not any(s.cached for s in heavy.sides)
        assert light.counts.total == light.counts.updated == 500
        assert heavy.ids.equals(light.ids)
        for side in ("before", "after"):
            assert heavy.images(side).equals(light.images(side))


ROWS = 20_000


def test_the_cost_follows_the_difference(tmp_path: Path) -> None:
    """One row in a large table is found with a handful of requests, at any size of the table."""
    schema = "node P { code: String @key  n: I32?  text: String? }"
    taken: list[int] = []
    for rows in (ROWS, 8 * ROWS):
        root = tmp_path / str(rows)
        with omnigraph.init(root, schema) as graph:
            columns = {
                "code": [f"p{i}" for i in range(rows)],
                "n": list(range(rows)),
                "text": ["some text"] * rows,
            }
            graph.load(
                {
                    "P": [
                        dict(zip(columns, v, strict=True))
                        for v in zip(*columns.values(), strict=True)
                    ]
                }
            )
            fork(root, "other")
            graph.mutate('query m() { update P set { n: -1 } where code = "p7" }')
            graph.mutate('query m() { delete P where code = "p9" }', branch="other")
        with omnigraph.open(root) as graph:  # Nothing is known of the tables yet.
            repository = graph._repository
            pins = [repository.branch(b).head.snapshot.pins["node:P"] for b in ("main", "other")]
            tables = [repository.table(pin) for pin in pins]
            before = [table.reads for table in tables]
            types = ComparedTypes.unchanged(graph.catalog.nodes["P"])
            delta = table_delta(*tables, types)
            assert dict(zip(delta.ids.to_pylist(), delta.ops.tolist(), strict=True)) == {
                "p7": UPDATE,
                "p9": DELETE,
            }
            delta.images("before")
            delta.images("after", [0])
            taken.append(sum(t.reads for t in tables) - sum(before))
    # Deletions of both, and three columns and the id of the rows of both: images included.
    assert taken[0] == taken[1] <= 24, taken
