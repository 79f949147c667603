"""Two ways to the same rows: filters in memory or in Lance, edges by adjacency or by lookup."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query.exec import columns as columns_module
from omnigraph.query.exec import lookups
from omnigraph.query.exec import world as world_module
from omnigraph.query.exec.columns import CACHE_VARIABLE
from omnigraph.storage.tables import Table
from support.examples import examples

SCHEMA = """
node P {
  name: String @key  i: I64?  small: I32?  u: U64?  f: F64?  t: String?  b: Bool?  d: Date?
  at: DateTime?  tags: [String]?  mood: enum(glad, sad)?
}
"""
START = datetime(2026, 1, 1, tzinfo=UTC)


def person(n: int) -> dict:
    """Every property null now and then, at a period of its own."""
    row = {
        "i": [-(2**63), -1, 0, 7, 2**53 + 1, 2**63 - 1][n % 6],
        "small": n % 5 - 2,
        "u": [0, 7, 2**63, 2**64 - 1][n % 4],
        "f": [-1.5, 0.0, 7.0, 2.0**53][n % 4],
        "t": ["", "a", 'q"t', "a%b", "é", "Ab"][n % 6],
        "b": n % 2 == 0,
        "d": date(2026, 1, 1) + timedelta(days=n % 4),
        "at": START + timedelta(milliseconds=n % 3),
        "tags": ["x", "y"][: n % 3],
        "mood": ["glad", "sad"][n % 2],
    }
    row = {k: None if n % (period + 5) == 0 else v for period, (k, v) in enumerate(row.items())}
    return {"name": f"p{n:03}", **row}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Sixty rows in five files, some deleted and some updated."""
    place = tmp_path_factory.mktemp("arms") / "g"
    with omnigraph.init(place, SCHEMA) as graph:
        for start in range(0, 60, 12):
            graph.load({"P": [person(n) for n in range(start, start + 12)]})
        graph.mutate('delete P where name in ["p000", "p013", "p059"]')
        graph.load({"P": [{**person(5), "t": "new"}]}, mode="merge")
    return place


@pytest.fixture(scope="module")
def handles(root):
    """One that keeps whole columns, and one whose cache is too small for any."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, "100")
        narrow = omnigraph.open(root)
    with narrow, omnigraph.open(root) as roomy:
        yield roomy, narrow


TESTS = (
    "$p.i = 7", "$p.i != 7", "$p.i < 0", "$p.i >= 9223372036854775807", "$p.i > 6.5",
    "$p.i = 7.5", "$p.i in [0, 7, 9007199254740993]", "$p.small in [-2, 0.5, 99999999999]",
    "$p.small > 1.5", "$p.f = 7", "$p.f < 9007199254740993", "$p.f in [0, 2.5]", "$p.u = 7",
    "$p.u > 9223372036854775807", '$p.t = "a"', '$p.t < "b"', '$p.t contains "%"',
    '$p.t starts_with "a"', '$p.t in ["", "é", "q\\"t"]', '$p.t contains ""', "$p.b",
    "$p.b = false", "$p.b != true", '$p.d = date("2026-01-02")', '$p.d > date("2026-01-02")',
    '$p.at >= datetime("2026-01-01T00:00:00.001Z")', "$p.at < now()", '$p.tags contains "y"',
    '$p.mood = "glad"', '$p.mood in ["sad"]', "$p.i is null", "$p.t is not null", "$p.b is null",
    '$p.name > "p030"', '$p.id in ["p001", "p013", "p999"]', "$p.i = $p.small", "$p.i > $p.f",
    "$none = $p.i", "$p.i in $nothing", "$p.i in $some", "$p.t contains $text",
)  # fmt: skip
PARAMS = {"none": None, "nothing": [], "some": [0, 7, -1], "text": 'q"'}
HEAD = "query q($none: I64?, $nothing: [I64], $some: [I64], $text: String)"


def names(graph, condition: str) -> list[str]:
    body = f"match {{ $p: P  {condition} }} return {{ $p.name }} order {{ $p.name }}"
    return [r["p.name"] for r in graph.query(f"{HEAD} {{ {body} }}", PARAMS).to_dicts()]


@pytest.fixture
def lance_filters(monkeypatch):
    """How often Lance was asked with a condition."""
    asked: list[str] = []
    where = Table.where

    def noted(self, condition, columns, **options):
        asked.append(str(condition))
        return where(self, condition, columns, **options)

    monkeypatch.setattr(Table, "where", noted)
    return asked


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_filters_mean_the_same_in_lance(handles, lance_filters):
    roomy, narrow = handles
    down = Counter()
    for condition in TESTS:
        expected = names(roomy, condition)
        assert lance_filters == [], "columns that fit are filtered in memory"
        assert names(narrow, condition) == expected, condition
        down["lance" if lance_filters else "memory"] += 1
        lance_filters.clear()
    # Unsigned numbers, lists, and comparisons of two columns are not Lance's.
    assert down["lance"] >= 30
    assert down["memory"] >= 3


@settings(max_examples=examples(40))
@given(st.data())
def test_any_combination_of_filters(handles, data):
    def formed(depth: int) -> str:
        kind = data.draw(
            st.sampled_from(["test", "test", "not", "and", "or"] if depth else ["test"])
        )
        if kind == "test":
            return data.draw(st.sampled_from(TESTS))
        if kind == "not":
            return f"not ({formed(depth - 1)})"
        return f"({formed(depth - 1)}) {kind} ({formed(depth - 1)})"

    condition = "  ".join(formed(2) for _ in range(data.draw(st.integers(1, 2))))
    roomy, narrow = handles
    assert names(narrow, condition) == names(roomy, condition), condition


def test_an_index_answers_even_where_the_column_fits(root, lance_filters, monkeypatch):
    monkeypatch.setattr(Table, "indexed_columns", frozenset({"t"}))
    monkeypatch.setattr(columns_module, "FETCH_COST", 0)
    monkeypatch.setattr(columns_module, "FETCHED_ROW_COST", 0)
    with omnigraph.open(root) as graph:
        some = names(graph, '$p.t = "a"')
        assert len(lance_filters) == 1
        assert some
        names(graph, '$p.t = "a"  $p.i > 0')
        assert len(lance_filters) == 2
        names(graph, '$p.t = "a" or $p.i > 0')
        assert len(lance_filters) == 2, "no index on the other column"


def test_once_a_column_is_in_memory_lance_is_not_asked(root, lance_filters, monkeypatch):
    monkeypatch.setattr(Table, "indexed_columns", frozenset({"t"}))
    with omnigraph.open(root) as graph:
        graph.query('match { $p: P  $p.t contains "a" or $p.t = $p.name } return { $p.name }')
        before = len(lance_filters)
        names(graph, '$p.t = "a"')
        assert len(lance_filters) == before


# ---------------------------------------------------------------- traversal: lookups or all edges

CHAIN = "node N { name: String @key }\nedge Next: N -> N"
LENGTH = 200
NEXT = "query q($n: String) { match { $a: N { name: $n }  $a next $b } return { $b.name } }"


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    place = tmp_path_factory.mktemp("chain") / "g"
    with omnigraph.init(place, CHAIN) as graph:
        names_ = [f"n{i}" for i in range(LENGTH)]
        ends = [{"src": a, "dst": b} for a, b in pairwise(names_)]
        graph.load({"N": [{"name": n} for n in names_], "Next": ends})
    return place


def topology(graph):
    (found,) = graph._engine._caches._edges.values()
    return found


def step(graph, number: int) -> str:
    (row,) = graph.query(NEXT, {"n": f"n{number}"}).to_dicts()
    return row["b.name"]


def test_without_an_index_the_adjacency_is_built_at_once(chain):
    with omnigraph.open(chain) as graph:
        assert step(graph, 3) == "n4"
        assert (topology(graph).builds, topology(graph).lookup_cost) == (1, 0.0)


def test_with_an_index_edges_are_looked_up_until_they_have_cost_the_adjacency(
    chain, monkeypatch, lance_filters
):
    monkeypatch.setattr(Table, "indexed_columns", frozenset({"id", "src", "dst"}))
    monkeypatch.setattr(world_module, "LOOKUP_COST", 5)
    monkeypatch.setattr(world_module, "LOOKUP_START_COST", 10)
    monkeypatch.setattr(columns_module, "FETCH_COST", 0)
    monkeypatch.setattr(columns_module, "FETCHED_ROW_COST", 0)
    with omnigraph.open(chain) as graph:
        edges = LENGTH - 1
        cost = 10 + (1 + edges / LENGTH) * 5
        lookups = 0
        while cost_so_far(graph) + cost < edges:
            assert step(graph, lookups) == f"n{lookups + 1}"
            lookups += 1
            assert topology(graph).lookup_cost == pytest.approx(lookups * cost)
            assert topology(graph).builds == 0
        assert lookups == 9
        # A lookup of the start, of its edges, and of the node at the other end.
        assert len(lance_filters) <= 3 * lookups
        assert step(graph, 50) == "n51"
        assert topology(graph).builds == 1
        before = len(lance_filters)
        assert step(graph, 51) == "n52"
        assert topology(graph).builds == 1
        assert topology(graph).lookup_cost == pytest.approx((lookups + 1) * cost), (
            "no cost once all edges are in memory"
        )
        assert len(lance_filters) - before <= 2, "the edges come from memory"


def test_an_adjacency_that_costs_less_than_one_lookup_is_built_at_once(chain, monkeypatch):
    monkeypatch.setattr(Table, "indexed_columns", frozenset({"id", "src", "dst"}))
    assert LENGTH < world_module.LOOKUP_START_COST
    with omnigraph.open(chain) as graph:
        assert step(graph, 7) == "n8"
        assert topology(graph).builds == 1


def cost_so_far(graph) -> float:
    found = list(graph._engine._caches._edges.values())
    return found[0].lookup_cost if found else 0.0


def test_only_the_index_of_the_asked_side_counts(chain, monkeypatch):
    monkeypatch.setattr(Table, "indexed_columns", frozenset({"src"}))
    monkeypatch.setattr(world_module, "LOOKUP_START_COST", 0)
    back = 'match { $b: N { name: "n4" }  $a: N  $a next $b } return { $a.name }'
    either = 'match { $b: N { name: "n4" }  $b <next> $a } return { $a.name } order { $a.name }'
    with omnigraph.open(chain) as graph:
        assert step(graph, 7) == "n8"
        assert topology(graph).builds == 0
        assert graph.query(back).to_dicts() == [{"a.name": "n3"}]
        assert topology(graph).builds == 1
        assert [r["a.name"] for r in graph.query(either).to_dicts()] == ["n3", "n5"]
        assert topology(graph).builds == 2


def test_ids_are_looked_up_with_an_index_and_read_whole_without(chain, monkeypatch):
    text = 'match { $a: N { name: "n7" } } return { $a.id }'
    for indexed in (frozenset(), frozenset({"id"})):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Table, "indexed_columns", indexed)
            with omnigraph.open(chain) as graph:
                assert graph.query(text).to_dicts() == [{"a.id": "n7"}]
                (found,) = graph._engine._worlds.values()
                assert found.node("N").ids_known == (not indexed)


@pytest.mark.parametrize("indexed", [frozenset(), frozenset({"id", "src", "dst"})])
@pytest.mark.parametrize("cache", ["0", "2000", "1e9"])
def test_every_choice_gives_the_same_walk(chain, monkeypatch, indexed, cache):
    monkeypatch.setattr(Table, "indexed_columns", indexed)
    monkeypatch.setattr(lookups, "LOOKUP_BATCH", 7)
    monkeypatch.setenv(CACHE_VARIABLE, cache)
    text = "match { $a: N  $a next{2,3} $b  $b next $c } return { $a.name, $c.name } order { $a.name, $c.name } limit 3"
    with omnigraph.open(chain) as graph:
        for _ in range(2):
            found = [tuple(r.values()) for r in graph.query(text).to_dicts()]
            assert found == [("n0", "n3"), ("n0", "n4"), ("n1", "n4")]


def test_a_bad_way_of_traversing(chain, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", "fast")
    with omnigraph.open(chain) as graph, pytest.raises(omnigraph.UsageError) as caught:
        step(graph, 1)
    assert "fast" in str(caught.value)
