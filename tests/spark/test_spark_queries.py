"""The same text with engine="spark": the rows of the local engine, and those of the reference."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from query_cases import Asked, compare

import omnigraph
from omnigraph.errors import LimitError, ParameterError, UsageError
from omnigraph.spark.lower.frame import OVERFLOW, times, total
from omnigraph.spark.query import query_frame
from omnigraph.spark.sessions import pipeline_session
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.spark import SparkSessions
from support.examples import examples
from support.random_queries import cases
from support.random_worlds import FLEET, WORLDS, RandomWorld

CASES = 2
QUERIES = 8


# ---------------------------------------------------------------- any query on any graph


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.name)
@settings(max_examples=examples(CASES), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_spark_agrees_with_the_reference(
    spark_sessions: SparkSessions, world: RandomWorld, data: st.DataObject
) -> None:
    spark = spark_sessions.local()
    case = data.draw(cases(world, queries_max=QUERIES))
    with (
        tempfile.TemporaryDirectory() as folder,
        omnigraph.init(Path(folder) / "g", world.schema, clock=ManualClock()) as graph,
    ):
        if case.graph.source:
            graph.load(case.graph.source)
        asked = Asked(graph, spark)
        for number, query in enumerate(case.queries):
            note(f"{query.text}\nparams = {query.params}")
            compare(asked, case.graph.naive, query, as_users_do=number == 0)
        asked.tables.forget()


# ---------------------------------------------------------------- the worked example


@pytest.fixture(scope="module")
def fleet(
    spark_sessions: SparkSessions, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    day = date(2026, 1, 2)
    calls = [("100", "AAR", day), ("100", "AAR", date(2026, 2, 2)), ("100", "CPH", day)]
    rows = {
        "Vessel": [
            {"imo": 100, "name": "Alba", "flag": "dk"},
            {"imo": 200, "name": "Brisa", "flag": "no", "tags": ["ice"]},
            {"imo": 300, "name": "Cora"},
        ],
        "Port": [
            {"code": code, "name": code.lower(), "berths": berths}
            for code, berths in (("AAR", 4), ("BGO", 2), ("CPH", 6))
        ],
        "CallsAt": [
            {"src": src, "dst": dst, "on": on} for src, dst, on in [*calls, ("200", "BGO", day)]
        ],
        "Feeds": [
            {"src": src, "dst": dst}
            for src, dst in (("AAR", "BGO"), ("BGO", "CPH"), ("CPH", "AAR"))
        ],
    }
    with omnigraph.init(tmp_path_factory.mktemp("fleet") / "g", FLEET) as graph:
        graph.load(rows)
        yield Asked(graph, spark_sessions.local())


EXAMPLES = {
    "match { $v: Vessel  $v callsAt $p } return { $v.name, $p.code }": [
        ("Alba", "AAR"), ("Alba", "CPH"), ("Brisa", "BGO"),
    ],
    "match { $v: Vessel  $v $c:callsAt $p } return { $v.name, $c.on }": [
        ("Alba", date(2026, 1, 2)), ("Alba", date(2026, 1, 2)), ("Alba", date(2026, 2, 2)),
        ("Brisa", date(2026, 1, 2)),
    ],
    'match { $p: Port { code: "AAR" }  $p feeds{1,2} $q } return { $q.code }': [("BGO",), ("CPH",)],
    'match { $p: Port { code: "AAR" }  $p <feeds> $q } return { $q.code }': [("BGO",), ("CPH",)],
    "match { $v: Vessel  not { $v callsAt $_ } } return { $v.name }": [("Cora",)],
    'match { $v: Vessel  $v.flag != "dk" } return { $v.name }': [("Brisa",)],
    'match { $v: Vessel { tags: "ice" } } return { $v.name }': [("Brisa",)],
    """match { $v: Vessel  $v callsAt $p } return { $p.code, count($v) as n }
       order { n desc, $p.code }""": [("AAR", 1), ("BGO", 1), ("CPH", 1)],
    "match { $v: Vessel  $v.imo > 900 } return { count($v) as n }": [(0,)],
    "match { $v: Vessel  $p: Port } return { count($v) as n }": [(9,)],
    "match { $v: Vessel  $p: Port } return { $v.name, count($p) as n }": [
        ("Alba", 3), ("Brisa", 3), ("Cora", 3),
    ],
    "match { $v: Vessel  $p: Port  $v.imo > 900 } return { $p.code, count($v) as n }": [],
    "match { $v: Vessel  $p: Port  $v.imo > 900 } return distinct { $p.code }": [],
    "match { $v: Vessel  $p: Port } return { $v.name, $p.code } order { $p.code desc } limit 2": [
        ("Alba", "CPH"), ("Brisa", "CPH"),
    ],
    """match { $v: Vessel  $p: Port } return { $v.name, $p.code } order { $p.code desc }
       limit 2 offset 2""": [("Cora", "CPH"), ("Alba", "BGO")],
    "match { $v: Vessel } return { $v.name } order { $v.flag }": [
        ("Cora",), ("Alba",), ("Brisa",),
    ],
}  # fmt: skip


@pytest.mark.parametrize("text", EXAMPLES)
def test_worked_example(fleet: Asked, text: str) -> None:
    assert fleet.rows(text) == EXAMPLES[text]


def test_as_users_do(fleet: Asked) -> None:
    text = """query calls($code: String, $least: U32) { match {
        $p: Port { code: $code }  $p.berths >= $least
        $v callsAt $p
        optional { $p feeds $next  $next.berths < 4 }
    } return { $v, $p.code, $next.code } }"""
    params = {"code": "AAR", "least": 4}
    found = fleet.spark(text, params)
    alba = {"@id": "100", "imo": 100, "flag": "dk", "built": None, "tags": None, "name": "Alba"}
    assert found.to_pylist() == [{"v": alba, "p.code": "AAR", "next.code": "BGO"}]
    assert found.schema == fleet.local(text, params).schema
    assert fleet.spark(text, {"code": "AAR", "least": 5}).num_rows == 0


def test_result_as_a_frame(fleet: Asked) -> None:
    plan, values = fleet.prepared("match { $p: Port } return { $p.code as code, $p.berths }", None)
    with pipeline_session(fleet.session) as pipeline:
        frame = query_frame(pipeline, fleet.pinned, plan, values, fleet.search(values))
    assert frame.columns == ["code", "p.berths"]
    assert frame.filter(F.col("code") > "B").agg(F.sum("`p.berths`")).first()[0] == 8


# ---------------------------------------------------------------- traversals

PATHS = """
node Stop { name: String @key }
edge Leads: Stop -> Stop { length: I32? }
edge Sees: Stop -> Zone
node Zone { name: String @key }
"""


@pytest.fixture(scope="module")
def paths(
    spark_sessions: SparkSessions, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    chain = [(f"s{i}", f"s{i + 1}") for i in range(8)]
    leads = [*chain, ("s0", "s0"), ("s3", "s1"), ("s0", "s1"), ("s8", "s8")]
    names = [f"s{i}" for i in range(9)]
    with omnigraph.init(tmp_path_factory.mktemp("paths") / "g", PATHS) as graph:
        graph.load(
            {
                "Stop": [{"name": name} for name in names],
                # A zone has the id of a stop: they are still not the same.
                "Zone": [{"name": "s0"}],
                "Leads": [{"src": a, "dst": b, "length": n} for n, (a, b) in enumerate(leads)],
                "Sees": [{"src": "s0", "dst": "s0"}, {"src": "s1", "dst": "s0"}],
            }
        )
        yield Asked(graph, spark_sessions.local())


@pytest.mark.parametrize(
    ("hops", "reached"),
    [
        ("leads", "s0 s1"),
        ("leads{1,1}", "s0 s1"),
        ("leads{1,2}", "s0 s1 s2"),
        ("leads{2,3}", "s2 s3"),
        ("leads{1,5}", "s0 s1 s2 s3 s4 s5"),
        ("leads{4,7}", "s4 s5 s6 s7"),
        ("leads{8,100000}", "s8"),
        ("leads{9,100000}", ""),
        ("<leads>{2,2}", "s2 s3"),
    ],
)
def test_hops_from_the_start(paths: Asked, hops: str, reached: str) -> None:
    rows = paths.rows(f'match {{ $a: Stop {{ name: "s0" }}  $a {hops} $b }} return {{ $b.name }}')
    assert rows == [(name,) for name in reached.split()]


@pytest.mark.parametrize(
    ("clauses", "count"),
    [
        ("$a leads $a", 2),
        ("$a leads{1,4} $a", 2),
        ("$a leads{2,4} $a", 0),
        ("$a $e:leads $a", 2),
        ("$a $e:<leads> $a", 2),
        ("$a $e:leads $b", 12),
        ("$a leads $b", 11),
        ("$a <leads> $b", 20),
        ("$a $e:<leads> $b", 22),
        ("$a leads $b  $b leads $c  $c leads $a", 5),
        ("$a sees{1,5} $z", 2),
        ("$a sees{2,5} $z", 0),
        ("$a leads $b  $a sees $z  $b sees $z", 2),
        ("$a leads $b  $b leads $c", 13),
    ],
)
def test_multiplicity(paths: Asked, clauses: str, count: int) -> None:
    # Counted by weights, and by rows.
    assert paths.rows(f"match {{ {clauses} }} return {{ count($a) as n }}") == [(count,)]
    assert len(paths.rows(f"match {{ {clauses} }} return {{ $a.name }}")) == count


def test_counts_of_blocks(paths: Asked) -> None:
    text = """match { $a: Stop  optional { $a sees $z } }
    return { $a.name, count { $a leads{1,3} $b  $b leads $c } as n, exists { $z: Zone } as zone }
    order { count { $a $e:leads $b } desc } limit 3"""
    assert paths.rows(text) == [("s0", 6, True), ("s3", 5, False), ("s1", 4, True)]


# ---------------------------------------------------------------- values

EXACT = 2**53
VALUES = """
node Thing {
    name: String @key
    i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
    flag: Bool?  day: Date?  at: DateTime?
    words: [String]?  wide: [U64]?  floats: [F64]?
    place: Vector(2)?
}
"""
THINGS: list[dict[str, Any]] = [
    {
        "name": "a", "i32": -1, "i64": EXACT + 1, "u32": 2**32 - 1, "u64": 2**64 - 1,
        "f32": 0.10000000149011612, "f64": float(EXACT), "flag": True, "day": date(1500, 2, 28),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), "words": ["x", "é"],
        "wide": [2**64 - 1, 1], "floats": [-0.0, 2.5], "place": [0.5, -0.0],
    },
    {
        "name": "B", "i32": 0, "i64": -(2**63), "u32": 0, "u64": EXACT + 1,
        "f32": -0.0, "f64": -0.0, "flag": False, "day": date(9999, 12, 31),
        "at": datetime(2026, 1, 1, tzinfo=UTC), "words": [], "wide": [], "floats": [0.0, 2.5],
    },
    {"name": "\uffff", "i64": 2**63 - 1, "u64": EXACT, "f64": 0.0, "f32": 0.0, "flag": True},
    {"name": "\U00010000", "i64": EXACT, "u64": 0, "f64": 9.3e18, "f32": -1.5, "flag": False},
    {"name": "", "i64": -1, "f64": -1e-300},
    {"name": "nulls"},
]  # fmt: skip


@pytest.fixture(scope="module")
def things(
    spark_sessions: SparkSessions, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    with omnigraph.init(tmp_path_factory.mktemp("things") / "g", VALUES) as graph:
        graph.load({"Thing": THINGS})
        yield Asked(graph, spark_sessions.local())


def _check(asked: Asked, expected: dict[str, set[str]], params: str = "", **given: Any) -> None:
    """Conditions and the things for which each is true. One query asks for all of them."""
    shown = ", ".join(f"({text}) as c{i}" for i, text in enumerate(expected))
    body = f"match {{ $t: Thing }} return {{ $t.name, {shown} }}"
    rows = asked.rows(f"query q({params}) {{ {body} }}" if params else body, given)
    for number, (text, names) in enumerate(expected.items(), start=1):
        assert {row[0] for row in rows if row[number]} == names, text


EVERYTHING = {t["name"] for t in THINGS}


def test_integers_and_floats_compare_exactly(things: Asked) -> None:
    expected = {
        "$t.i64 > $t.f64": {"a", "\uffff"},
        "$t.i64 < $t.f64": {"B", "\U00010000", ""},
        "$t.f64 = $t.i64": set[str](),
        "$t.u64 >= $t.f64": {"a", "B", "\uffff"},
        "$t.u64 > $t.i64": {"a", "B"},
        "$t.u32 = $t.f64": {"B"},
        "$t.f32 = $t.f64": {"B", "\uffff"},
        f"$t.i64 = {float(EXACT)!r}": {"\U00010000"},
        "$t.i64 > 2.5 and $t.i64 <= $p": {"\U00010000"},
        "$t.u64 in $q": {"a", "\uffff"},
        "$t.f32 = 0.1": {"a"},
        "$t.f32 < 0.1": {"B", "\uffff", "\U00010000"},
        "$t.f32 in [0.1, -1.5]": {"a", "\U00010000"},
        "$t.f32 = $s": {"a"},
        "$t.f32 in [$s, 7.5]": {"a"},
        "$t.f64 = 0 and not ($t.f64 < 0.0)": {"B", "\uffff"},
        "$t.wide contains $r": {"a"},
        "$t.floats contains 0": {"a", "B"},
        "$t.f64 in $t.floats": {"B"},
    }
    params = "$p: F64, $q: [U64], $r: U64, $s: F64"
    _check(things, expected, params, p=float(EXACT), q=[2**64 - 1, EXACT], r=2**64 - 1, s=0.1)


def test_lists_text_days_and_instants(things: Asked) -> None:
    expected = {
        "not ($t.words contains $t.name)": EVERYTHING,
        'not ("x" in $t.words)': {"B"},
        '$t.name in ["a", null]': {"a"},
        '$t.name not in ["a", null]': set[str](),
        '$t.name starts_with ""': EVERYTHING,
        '"abc" contains $t.name and $t.name != ""': {"a"},
        'not ($t.name > "a")': {"a", "B", ""},
        'not ($t.name < "\uffff")': {"\uffff", "\U00010000"},
        '$t.day = date("1500-02-28")': {"a"},
        '$t.at < datetime("1970-01-01T00:00:00Z")': {"a"},
        "$t.flag": {"a", "\uffff"},
        "not $t.flag or $t.day is null": EVERYTHING - {"a"},
    }
    _check(things, expected)


def test_whole_rows_come_back_as_they_are(things: Asked) -> None:
    columns = [
        "name",
        "i32",
        "i64",
        "u32",
        "u64",
        "f32",
        "f64",
        "flag",
        "day",
        "at",
        "words",
        "wide",
        "floats",
        "place",
    ]
    shown = ", ".join(f"$t.{name}" for name in columns)
    rows = things.rows(f"match {{ $t: Thing }} return {{ {shown} }} order {{ $t.name }}")
    blank = dict.fromkeys(columns)
    wanted = sorted(THINGS, key=lambda t: t["name"].encode())
    # As texts, which tell the two zeros apart; Arrow and Python have names for UTC of their own.
    texts = [repr(row).replace("zoneinfo.ZoneInfo(key='UTC')", repr(UTC)) for row in rows]
    assert texts == [repr(tuple((blank | t).values())) for t in wanted]
    objects = things.kept("match { $t: Thing } return { $t } order { $t.name }").column(0)
    assert [o["@id"] for o in objects.to_pylist()] == [t["name"] for t in wanted]
    assert "place" not in objects[0].as_py()


def test_order_is_total(things: Asked) -> None:
    def ordered(keys: str, page: str = "") -> list[str]:
        text = f"match {{ $t: Thing }} return {{ $t.name }} order {{ {keys} }} {page}"
        return [name for (name,) in things.rows(text)]

    assert ordered("$t.name") == ["", "B", "a", "nulls", "\uffff", "\U00010000"]
    # Zero is zero: the tie goes to the ids. Null is smallest.
    assert ordered("$t.f64") == ["nulls", "", "B", "\uffff", "a", "\U00010000"]
    assert ordered("$t.f64 desc") == ["\U00010000", "a", "B", "\uffff", "", "nulls"]
    assert ordered("$t.u64 desc", "limit 2") == ["a", "B"]
    assert ordered("$t.i64", "offset 1 limit 2") == ["B", ""]
    assert ordered("$t.flag desc, $t.i64 desc", "offset 3") == ["B", "", "nulls"]
    assert ordered("$t.day, $t.name desc", "limit 0") == []
    assert ordered("$t.name", f"limit {2**62}") == ordered("$t.name")
    distinct = "match { $t: Thing } return distinct { $t.floats, $t.flag } limit 4"
    assert things.rows(distinct) == [
        (None, None), (None, False), (None, True), ([0.0, 2.5], False),
    ]  # fmt: skip


def test_aggregates(things: Asked) -> None:
    shown = """count($t) as n, count($t.f64) as some, count(distinct $t.f64) as zeros,
        count(distinct $t.u64) as wide, min($t.name) as first, max($t.name) as last,
        min($t.flag) as no, max($t.flag) as yes, min($t.day) as old, max($t.at) as late,
        min($t.u64) as least, max($t.u64) as most"""
    (row,) = things.rows(f"match {{ $t: Thing }} return {{ {shown} }}")
    assert row == (
        6, 5, 4, 4, "", "\U00010000", False, True, date(1500, 2, 28),
        datetime(2026, 1, 1, tzinfo=UTC), 0, 2**64 - 1,
    )  # fmt: skip
    shown = "sum(distinct $t.u64) as s, avg(distinct $t.u64) as a, sum($t.i32) as i"
    near = f"$t.u64 >= {EXACT}  $t.u64 <= {EXACT + 1}"
    (sums,) = things.rows(f"match {{ $t: Thing  {near} }} return {{ {shown} }}")
    assert sums == (float(2 * EXACT + 1), float(EXACT), 0.0)
    shown = "sum($t.i32) as s, avg($t.i32) as a, max($t.i32) as m, count($t.i32) as n"
    assert things.rows(f"match {{ $t: Thing  $t.i32 > 5 }} return {{ {shown} }}") == [
        (None, None, None, 0)
    ]
    groups = (
        "match { $t: Thing } return { $t.flag, count($t) as n, avg($t.f32) as a } order { n desc }"
    )
    assert [row[:2] for row in things.rows(groups)] == [(None, 2), (False, 2), (True, 2)]
    zeros = "match { $t: Thing  $t.f64 = 0 } return { $t.f64, count($t) as n }"
    assert things.rows(zeros) == [(0.0, 2)]


# ---------------------------------------------------------------- limits


def test_sums_that_leave_the_range_on_the_way(
    spark_sessions: SparkSessions, tmp_path: Path
) -> None:
    large = 1.5e308
    with omnigraph.init(tmp_path / "g", "node N { g: String  x: F64  f: F32  i: U64 }") as graph:
        numbers = {"back": [large, large, -large], "over": [large, large], "plain": [1.0, 2.5]}
        graph.load(
            [
                {"type": "N", "data": {"g": g, "x": x, "f": 1.5, "i": 2**64 - 1}}
                for g, xs in numbers.items()
                for x in xs
            ]
        )
        asked = Asked(graph, spark_sessions.local())
        outputs = "sum($n.x) as s, avg($n.x) as a, sum(distinct $n.x) as d, avg($n.i) as i"
        rows = asked.rows(f"match {{ $n: N }} return {{ $n.g as g, {outputs} }} order {{ $n.g }}")
        wide = float(2**64)
        assert rows == [
            ("back", large, pytest.approx(large / 3), 0.0, wide),
            ("over", float("inf"), large, large, wide),
            ("plain", 3.5, 1.75, 3.5, wide),
        ]


def test_weights_never_wrap(spark: SparkSession) -> None:
    most = 2**63 - 1
    rows = spark.createDataFrame([(1, most), (2, 1), (3, None)], "k int, w bigint")
    made = rows.filter("k > 1").select(times(F.col("w"), F.lit(5)).alias("w"))
    assert [r[0] for r in made.collect()] == [5, None]
    assert rows.filter("k > 1").agg(total(F.col("w"))).first()[0] == 1
    assert rows.filter("k > 2").agg(total(F.col("w"))).first()[0] == 0
    for wrong in (rows.select(times(F.col("w"), F.lit(2))), rows.agg(total(F.col("w")))):
        with pytest.raises(Exception, match=OVERFLOW):
            wrong.collect()


def test_limits(fleet: Asked) -> None:
    page = "query q($n: I64) { match { $v: Vessel } return { $v.name } limit $n }"
    with pytest.raises(ParameterError, match="limit is -1"):
        fleet.spark(page, {"n": -1})
    with pytest.raises(LimitError, match="Spark skips at most"):
        fleet.spark(f"match {{ $v: Vessel }} return {{ $v.name }} offset {2**40}")
    slow = "match { $a: Port  $a feeds{1,3} $b } return { count($b) as n }"
    with pytest.raises(LimitError, match="longer than"):
        fleet.spark(slow, timeout_s=0.01)
    # The session goes on.
    assert fleet.spark(slow, timeout_s=600).to_pylist() == [{"n": 6}]


def test_engines_are_named(fleet: Asked) -> None:
    text = "match { $v: Vessel } return { $v.name }"
    with pytest.raises(UsageError, match="unknown engine"):
        fleet.graph.query(text, engine="sparc")
    with pytest.raises(UsageError, match="the engine is local"):
        fleet.graph.query(text, spark=fleet.session)
    with pytest.raises(UsageError, match="memory_bytes"):
        fleet.spark(text, memory_bytes=1 << 30)
    with pytest.raises(UsageError, match="only reads"):
        fleet.spark("delete Vessel where imo = 100")


# ---------------------------------------------------------------- other sessions


def test_on_a_connect_session(spark_connect: SparkSession, tmp_path: Path) -> None:
    """Nothing in the lowering needs what a Connect session does not have."""
    with omnigraph.init(tmp_path / "g", PATHS) as graph:
        chain = [{"src": f"s{i}", "dst": f"s{i + 1}", "length": i} for i in range(6)]
        stops = [{"name": f"s{i}"} for i in range(7)]
        graph.load({"Stop": stops, "Zone": [], "Leads": chain, "Sees": []})
        asked = Asked(graph, spark_connect)
        text = """match { $a: Stop { name: "s0" }  $a leads{2,5} $b  optional { $b $e:leads $c } }
        return { $b.name, $e.length, count { $b leads $d } as n } order { $e.length desc } limit 3"""
        assert asked.spark(text).equals(asked.local(text))
        with pytest.raises(LimitError, match="longer than"):
            asked.spark(text, timeout_s=0.01)
