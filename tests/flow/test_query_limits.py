"""How far a read may go: time, memory, counts, the length of patterns and of data."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
import pytest
from query_support import SCHEMA, ask, club, knows, people, person

import omnigraph
from omnigraph.query.exec.columns import CACHE_VARIABLE
from omnigraph.testing.clock import ManualClock

FRIENDS = "match { $a: Person  $a knows $b } return { $a.name, $b.name } order { $a.name, $b.name }"


# ---------------------------------------------------------------- limits


class Ticking(ManualClock):
    """Every look at the clock takes a tenth of a second."""

    def monotonic_s(self) -> float:
        self.advance(0.1)
        return super().monotonic_s()


def test_time_is_up(tmp_path):
    people(tmp_path / "g").close()
    with omnigraph.open(tmp_path / "g", clock=Ticking()) as graph:
        text = "match { $a: Person  $a knows{1,50} $b  $c: Club } return { $a.name, $c.title }"
        assert graph.query(text, timeout_s=60).to_dicts()
        with pytest.raises(omnigraph.LimitError) as caught:
            graph.query(text, timeout_s=0.15)
        details = caught.value.details
        assert details["limit"] == "time"
        assert details["timeout_s"] == 0.15
        assert details["step"]
        with pytest.raises(omnigraph.LimitError):
            graph.explain(text, analyze=True, timeout_s=0.15)
        # A handle survives it.
        assert graph.query(text, timeout_s=60).to_dicts()


def test_time_from_the_environment(tmp_path, monkeypatch):
    people(tmp_path / "g").close()
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT", "0.15")
    with omnigraph.open(tmp_path / "g", clock=Ticking()) as graph:
        with pytest.raises(omnigraph.LimitError):
            graph.query(FRIENDS)
        assert graph.query(FRIENDS, timeout_s=60).to_dicts()


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Thirty thousand nodes around a hub."""
    count = 30_000
    with omnigraph.init(tmp_path_factory.mktemp("wide") / "g", SCHEMA) as graph:
        names = [f"p{i}" for i in range(count)]
        ends = {"src": names + ["p0"] * count, "dst": ["p0"] * count + names}
        graph.load({"Person": pa.table({"name": names}), "Knows": pa.table(ends)})
        yield graph


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("match { $a: Person  $b: Person } return { $a.name, $b.name }", "combining"),
        ("match { $a: Person  $b: Person  $a.city = $b.city or $a.age > $b.age } return { $a.name }", "combining"),
        ("match { $a: Person  $a knows $b  $b knows $c } return { $c.name, $a.name }", "traversal of Knows from $b"),
        ("match { $a: Person  $a knows{1,2} $b } return { $b.name, $a.name }", "traversal of Knows from $a"),
        ("match { $a: Person  $a knows{2,2} $b } return { count($b) as n }", "traversal of Knows from $a"),
        ("match { $a: Person  optional { $b: Club  $a.name = $b.title or $a.age is null  $c: Person } } return { $a.name, $c.name }", "combining"),
    ],
)  # fmt: skip
def test_a_runaway_stops_before_it_is_made(wide, text, step):
    wide.load([club("x")], mode="merge")
    wide.query("match { $a: Person  $a knows $b } return { count($b) as n }")
    tracemalloc.start()
    try:
        with pytest.raises(omnigraph.LimitError) as caught:
            wide.query(text, memory_bytes=50_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    details = caught.value.details
    assert details["limit"] == "memory"
    assert details["memory_bytes"] == 50_000_000
    assert details["rows"] > 8 * 10**8
    assert step in details["step"]
    assert peak < 100_000_000, "nine hundred million rows would be some gigabytes"


def test_what_is_only_counted_needs_no_memory(wide):
    count = 30_000
    text = "match { $a: Person  $a knows $b  $b knows $c } return { count($c) as n }"
    (row,) = wide.query(text, memory_bytes=50_000_000).to_dicts()
    # Paths of two hops: into the hub and out again, and around its loop.
    assert row["n"] == (count - 1) * count + (count - 1) + count


def test_more_paths_than_can_be_counted(tmp_path):
    """A clique of five has more paths of 34 hops than a 64-bit integer holds."""
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        names = "abcde"
        graph.load(
            [person(n) for n in names] + [knows(a, b) for a in names for b in names if a != b]
        )

        def paths(hops: int) -> str:
            chain = "  ".join(f"$v{i} knows $v{i + 1}" for i in range(hops))
            return f"$v0: Person  {chain}"

        for length in (20, 30):
            counted = f"match {{ {paths(length)} }} return {{ count($v0) as n }}"
            assert graph.query(counted).to_dicts() == [{"n": 5 * 4**length}]
        for text in (
            # Of 31 hops each node starts fewer paths than can be counted, all five start more.
            f"match {{ {paths(31)} }} return {{ count($v0) as n }}",
            f"match {{ {paths(31)} }} return {{ count($v0) as n, count(distinct $v0) as d }}",
            f"match {{ {paths(34)} }} return {{ count($v0) as n }}",
            f"match {{ {paths(34)} }} return {{ $v0.name, count($v34) as n }}",
            f"match {{ $v0: Person }} return {{ $v0.name, count {{ {paths(34).split('  ', 1)[1]} }} as n }}",
        ):
            with pytest.raises(omnigraph.LimitError) as caught:
                graph.query(text)
            assert caught.value.details["limit"] == "count"
        some = f"match {{ $v0: Person  exists {{ {paths(34).split('  ', 1)[1]} }} }} return {{ $v0.name }}"
        assert len(graph.query(some)) == 5


def hops(count: int) -> str:
    return "  ".join(f"$v{i} knows $v{i + 1}" for i in range(count))


def many(count: int, clause: str) -> str:
    return "  ".join(clause.replace("#", str(i)) for i in range(count))


SHAPES = {
    "counted": (lambda n: f"$v0: Person  {hops(n)}", "count($v0) as n", [2]),
    "rows": (lambda n: f"$v0: Person  {hops(n)}", "$v0.name", ["a", "b"]),
    "exists": (lambda n: f"$v0: Person  exists {{ {hops(n)} }}", "$v0.name", ["a", "b"]),
    "without": (lambda n: f"$v0: Person  not {{ {hops(n)} }}", "$v0.name", []),
    "blocks": (
        lambda n: f"$v0: Person  {many(n, 'not { $v0 knows $w  $w.age = # }')}",
        "$v0.name",
        ["a", "b"],
    ),
    "optionals": (
        lambda n: f"$v0: Person  {many(n, 'optional { $v0 knows $w# }')}",
        "count($v0) as n",
        [2],
    ),
    "products": (lambda n: many(n, '$v#: Person { name: "a" }'), "count($v0) as n", [1]),
    "filters": (
        lambda n: f"$v0: Person  {hops(n)}  {many(n, '$v#.age is null')}",
        "count($v0) as n",
        [2],
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_long_patterns(tmp_path, shape):
    """Any length is answered or refused; none ends in Python's own error or takes for ever."""
    pattern, returned, answer = SHAPES[shape]

    def text(count: int) -> str:
        return f"match {{ {pattern(count)} }} return {{ {returned} }}"

    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([person("a"), person("b"), knows("a", "b"), knows("b", "a")])
        found = [next(iter(row.values())) for row in graph.query(text(50))]
        assert sorted(found) == answer
        assert graph.explain(text(50), analyze=True).rows == len(answer)
        with pytest.raises(omnigraph.LimitError) as caught:
            graph.query(text(600))
        assert caught.value.details["limit"] == "depth"


# ---------------------------------------------------------------- size


def test_a_long_chain(tmp_path):
    count = 100_000
    with omnigraph.init(tmp_path / "g", "node N { name: String @key }\nedge Next: N -> N") as graph:
        names = [f"n{i}" for i in range(count)]
        graph.load(
            {
                "N": pa.table({"name": names}),
                "Next": pa.table({"src": names[:-1], "dst": names[1:]}),
            }
        )

        def far(start: str, low: int, high: int) -> int:
            text = (
                f"match {{ $a: N {start} $a next{{{low},{high}}} $b }} return {{ count($b) as n }}"
            )
            return graph.query(text, timeout_s=60).to_dicts()[0]["n"]

        assert far('{ name: "n0" }', 1, 5_000) == 5_000
        assert far('{ name: "n0" }', 4_000, 5_000) == 1_001
        assert far('{ name: "n99990" }', 1, 1_000_000) == 9
        assert far("", 1, 1) == count - 1
        assert far("", 2, 3) == (count - 2) + (count - 3)
        back = (
            'match { $b: N { name: "n700" }  $a: N  $a next{690,710} $b } return { count($a) as n }'
        )
        assert graph.query(back).to_dicts() == [{"n": 11}]


def test_very_long_lists(tmp_path, monkeypatch):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        names = [f"p{i}" for i in range(300)]
        graph.load(
            {"Person": [{"name": n, "age": i, "city": f"c{i % 7}"} for i, n in enumerate(names)]}
        )
        many = [f"p{i}" for i in range(25_000)] * 2
        text = "query q($x: [String]) { match { $p: Person  %s in $x } return { count($p) as n } }"
        assert ask(graph, text % "$p.id", {"x": many}) == [300]
        assert ask(graph, text % "$p.name", {"x": many[100:25_000]}) == [200]
        assert ask(graph, text % "$p.city", {"x": [*many, "c3"]}) == [43]
        numbers = (
            "query q($x: [I64]) { match { $p: Person  $p.age in $x } return { count($p) as n } }"
        )
        assert ask(graph, numbers, {"x": list(range(-20_000, 20_000))}) == [300]
        written = ", ".join(f'"p{i}"' for i in range(2_000))
        body = f"match {{ $p: Person  $p.name in [{written}] }} return {{ count($p) as n }}"
        assert ask(graph, body) == [300]
    monkeypatch.setenv(CACHE_VARIABLE, "0")
    with omnigraph.open(tmp_path / "g") as graph:
        assert ask(graph, text % "$p.id", {"x": many}) == [300]
        assert ask(graph, text % "$p.city", {"x": [*many, "c3"]}) == [43]


@pytest.fixture(scope="module")
def thirty_thousand(tmp_path_factory: pytest.TempPathFactory):
    schema = "node P { k: String @key  s: String  a: I32  b: I64 }"
    with omnigraph.init(tmp_path_factory.mktemp("product") / "g", schema) as graph:
        numbers = range(30_000)
        columns = {
            "k": [f"p{i:05}" for i in numbers],
            "s": [f"s{i % 1000}" for i in numbers],
            "a": pa.array([i % 7 for i in numbers], pa.int32()),
            "b": [i % 7 for i in numbers],
        }
        graph.load(pa.table(columns), type="P")
        yield graph


@pytest.mark.parametrize(
    "clauses",
    [
        '$a: P  $b: P  $b.s = "s5"  $a.a = $b.a',
        '$a: P  $b: P  $a.a = $b.a  $b.s = "s5"',
        '$a: P  $a.a = $b.a and $b.s = "s5"  $b: P',
        '$b: P  $b.a = $a.a  $a: P  $b.s = "s5"',
        '$a: P  $b: P  $a.a = $b.b  $b.s = "s5"',  # Of another width.
        '$b: P  exists { $c: P  $c.a = $b.a  $c.s = "s5" }  $a: P  $b.a = $a.a  $b.s = "s5"',
    ],
)
def test_the_order_of_conditions_does_not_decide(thirty_thousand, clauses) -> None:
    found = thirty_thousand.query(f"match {{ {clauses} }} return {{ count($a) as n }}")
    assert found.to_dicts() == [{"n": 128_571}]


def test_a_product_is_counted_without_being_made(thirty_thousand) -> None:
    text = "match { $a: P  $b: P } return { $a.a as a, count($b) as n } order { $a.a } limit 1"
    assert thirty_thousand.query(text).to_dicts() == [{"a": 0, "n": 4286 * 30_000}]
    distinct = "match { $a: P  $b: P } return { count(distinct $a.a) as n }"
    assert thirty_thousand.query(distinct).to_dicts() == [{"n": 7}]


def test_the_first_rows_of_a_product_are_found_without_the_rest(thirty_thousand) -> None:
    text = "match { $a: P  $b: P } return { $a.k as a, $b.k as b }"
    page = thirty_thousand.query(f"{text} order {{ $b.a desc }} limit 2 offset 1").to_dicts()
    assert page == [{"a": "p00000", "b": "p00013"}, {"a": "p00000", "b": "p00020"}]
    first = thirty_thousand.query(f"{text} limit 2").to_dicts()
    assert first == [{"a": "p00000", "b": "p00000"}, {"a": "p00000", "b": "p00001"}]
