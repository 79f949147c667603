"""Writes that look keys and ends up in indexes do what writes do that read whole columns."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.errors import OmnigraphError
from omnigraph.storage import row_changes, searches, tables
from omnigraph.testing.clock import ManualClock
from support.examples import examples

SCHEMA = """
node N { name: String @key  n: I64?  code: String? @unique  note: Blob? }
edge Next: N -> N @card(0..3) { weight: I64? }
"""
NAMES = st.sampled_from([f"n{i}" for i in range(12)])
NUMBERS = st.integers(0, 3)
CODES = st.none() | st.sampled_from(["x", "y", "z"])
NODE = st.fixed_dictionaries({"name": NAMES, "n": NUMBERS, "code": CODES})
EDGE = st.fixed_dictionaries({"src": NAMES, "dst": NAMES})
MODES = st.sampled_from(["append", "merge"])

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("load"), st.lists(NODE, min_size=1, max_size=5), MODES),
        st.tuples(st.just("load"), st.lists(NODE, min_size=1, max_size=5), MODES),
        st.tuples(st.just("edges"), st.lists(EDGE, min_size=1, max_size=5)),
        st.tuples(st.just("edges"), st.lists(EDGE, min_size=1, max_size=5)),
        st.tuples(st.just("insert"), NAMES, NUMBERS),
        st.tuples(st.just("update"), NAMES, NUMBERS),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("cut"), NAMES),
        st.tuples(st.just("optimize")),
        st.tuples(st.just("reopen")),
    ),
    min_size=4,
    max_size=16,
)


class Side:
    """One of two graphs that live through the same history."""

    def __init__(self, place: Path, *, by_index: bool) -> None:
        self._place = place
        self._clock = ManualClock()
        self._by_index = by_index
        self.graph = omnigraph.init(place, SCHEMA, clock=self._clock)

    def run(self, step: tuple[Any, ...]) -> Any:
        """What came of a step: counts, or the error."""
        with pytest.MonkeyPatch.context() as patch:
            # Every lookup is cheaper than any column, or none is.
            patch.setattr(tables, "LOOKUP_COST", 0 if self._by_index else 10**12)
            patch.setattr(tables, "LOOKUP_VALUE_COST", 0)
            patch.setattr(row_changes, "LARGE_ROWS", 0 if self._by_index else 10**12)
            if not self._by_index:
                patch.setattr(tables, "FOUND_VALUES_MAX", -1)
            try:
                return self._do(*step)
            except OmnigraphError as e:
                return str(e.kind), str(e)

    def _do(self, what: str, *given: Any) -> Any:
        graph = self.graph
        match what:
            case "load":
                rows, mode = given
                rows = list({row["name"]: row for row in rows}.values())
                return graph.load({"N": rows}, mode=mode).changes
            case "edges":
                return graph.load({"Next": given[0]}).changes
            case "insert":
                return graph.mutate(f'insert N {{ name: "{given[0]}", n: {given[1]} }}').changes
            case "update":
                return graph.mutate(
                    f'update N set {{ n: {given[1]} }} where name = "{given[0]}"'
                ).changes
            case "delete":
                return graph.mutate(f'delete N where name = "{given[0]}"').changes
            case "cut":
                return graph.mutate(f'delete Next where from = "{given[0]}"').changes
            case "optimize":
                graph.optimize()
            case _:
                graph.close()
                self.graph = omnigraph.open(self._place, clock=self._clock)
        return None

    def rows(self) -> Any:
        nodes = self.graph.query("match { $a: N } return { $a.name, $a.n, $a.code }").to_dicts()
        edges = self.graph.query("match { $a: N  $a $e:next $b } return { $a.name, $b.name }")
        return sorted(map(str, nodes)), sorted(map(str, edges.to_dicts()))


@settings(max_examples=examples(12))
@given(steps=STEPS)
def test_any_history_of_writes(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one = Side(Path(folder) / "one", by_index=True)
        two = Side(Path(folder) / "two", by_index=False)
        for step in [
            ("load", [{"name": "n0", "n": 1, "code": None}], "append"),
            ("optimize",),
            *steps,
        ]:
            assert one.run(step) == two.run(step), step
            assert one.rows() == two.rows(), step
        assert not one.graph.upkeep.check(full=True).findings
        one.graph.close()
        two.graph.close()


def asked_indexes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, tuple[str, ...]]]:
    """Every question that an index is asked from now on: nodes or edges, the column, the values."""
    asked: list[tuple[str, str, tuple[str, ...]]] = []
    find = searches.AskedIndex.find

    def noted(self: searches.AskedIndex, column: str, values: Any, known: Any) -> Any:
        kind = "nodes" if "/nodes/" in self.dataset.uri else "edges"
        asked.append((kind, column, tuple(values.to_pylist())))
        return find(self, column, values, known)

    monkeypatch.setattr(searches.AskedIndex, "find", noted)
    return asked


def test_a_write_asks_an_index_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And through one version, however many writes there are: a new one reads all of it anew."""
    side = Side(tmp_path / "g", by_index=True)
    side.run(("load", [{"name": f"n{i}", "n": i, "code": None} for i in range(9)], "append"))
    side.run(("edges", [{"src": f"n{i}", "dst": f"n{i + 1}"} for i in range(8)]))
    side.run(("optimize",))
    side.run(("update", "n1", 5))
    asked = asked_indexes(monkeypatch)
    made = 0
    made_by = searches.AskedIndex.__init__

    def counted(self: searches.AskedIndex, **given: Any) -> None:
        nonlocal made
        made += 1
        made_by(self, **given)

    monkeypatch.setattr(searches.AskedIndex, "__init__", counted)
    for step, questions in (
        (("insert", "new", 1), [("nodes", "id", ("new",))]),
        (("update", "n2", 7), [("nodes", "id", ("n2",))]),
        (
            ("edges", [{"src": "n3", "dst": "n5"}]),
            [("nodes", "id", ("n3", "n5")), ("edges", "src", ("n3",))],
        ),
        (
            ("delete", "n7"),
            [
                *(("nodes", "id", ("n7",)), ("edges", "src", ("n7",)), ("edges", "dst", ("n7",))),
                ("edges", "src", ("n6",)),  # Has it as many edges as it may, without this one?
            ],
        ),
    ):
        asked.clear()
        assert not isinstance(side.run(step), tuple)
        assert asked == questions, step
    assert made <= 1  # Edges were not asked for before.
    rows = {row["a.name"] for row in side.graph.query("match { $a: N } return { $a.name }")}
    assert rows == {"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n8", "new"}
    side.graph.close()


def test_the_two_sides_take_different_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the test above compares nothing."""
    asked = asked_indexes(monkeypatch)
    for by_index in (True, False):
        asked.clear()
        side = Side(tmp_path / str(by_index), by_index=by_index)
        side.run(("load", [{"name": f"n{i}", "n": i, "code": None} for i in range(9)], "append"))
        side.run(("edges", [{"src": "n1", "dst": "n2"}]))
        side.run(("optimize",))
        side.run(("reopen",))
        asked.clear()
        for step in (("edges", [{"src": "n3", "dst": "n4"}]), ("delete", "n1")):
            assert not isinstance(side.run(step), tuple)
        assert {kind for kind, *_ in asked} == ({"nodes", "edges"} if by_index else set())
        side.graph.close()
