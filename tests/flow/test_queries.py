"""Reads end to end: time travel, changed and missing tables, keys, parameters as mere values."""

from __future__ import annotations

import pytest
from query_support import MODES, PEOPLE, SCHEMA, ask, club, knows, member, people, person

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.query.exec.columns import CACHE_VARIABLE
from omnigraph.testing.clock import ManualClock

NAMES = "match { $p: Person } return { $p.name } order { $p.name }"
FRIENDS = "match { $a: Person  $a knows $b } return { $a.name, $b.name } order { $a.name, $b.name }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with people(tmp_path_factory.mktemp("queries") / "g", clock=ManualClock()) as made:
        yield made


# ---------------------------------------------------------------- what is not there


def test_a_graph_without_any_table(tmp_path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for text in (
            NAMES,
            FRIENDS,
            "match { $a: Person  $a knows{1,5} $b  optional { $b memberOf $c } } return { $a, $c }",
            "match { $a: Person  not { $a <knows> $_ }  exists { $a memberOf $_ } } return { $a.name }",
            'match { $a: Person { name: "x" }  $a $e:knows $b } return { $e.since, $e.id }',
            'match { $a: Person  search($a.bio, "fox") } return { $a.name } order { bm25($a.bio, "fox") }',
            "match { $a: Person } return { $a.name } order { nearest($a.place, [0.0, 0.0]) } limit 3",
            "match { $a: Person  $b: Club  $a.name = $b.title } return distinct { $a.name }",
        ):
            assert ask(graph, text) == []
        counted = "match { $a: Person  $a knows $b } return { count($b) as n, max($a.age) as m }"
        assert ask(graph, counted) == [(0, None)]


def test_nodes_without_any_edge_table(tmp_path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([person("ann", age=1), club("ski")])
        assert ask(graph, FRIENDS) == []
        lonely = "match { $a: Person  not { $a knows $_ } } return { $a.name, count { $a memberOf $_ } as n }"
        assert ask(graph, lonely) == [("ann", 0)]
        nothing = (
            "match { $a: Person  optional { $a $e:knows $b } } return { $a.name, $e.since, $b }"
        )
        assert ask(graph, nothing) == [("ann", None, None)]
        assert ask(graph, "match { $a: Person  $a <knows>{1,3} $b } return { count($b) as n }") == [
            0
        ]


def test_a_mutation_is_not_a_query(graph):
    with pytest.raises(omnigraph.UsageError):
        graph.query('delete Person where name = "ann"')
    assert len(ask(graph, NAMES)) == 4


# ---------------------------------------------------------------- changed tables


def test_deleted_nodes_take_their_edges_along(tmp_path):
    with people(tmp_path / "g") as graph:
        ask(graph, FRIENDS)
        graph.mutate('delete Person where name = "bob"')
        assert ask(graph, NAMES) == ["ann", "cat", "dan"]
        assert ask(graph, FRIENDS) == [("cat", "cat"), ("cat", "dan")]
        graph.load([person("bob", age=7), knows("bob", "ann")])
        assert ask(graph, FRIENDS)[0] == ("bob", "ann")
        assert ask(graph, 'match { $p: Person { name: "bob" } } return { $p.age, $p.city }') == [
            (7, None)
        ]


def test_merged_rows_have_their_new_values_and_old_edges(tmp_path):
    with people(tmp_path / "g") as graph:
        before = ask(graph, FRIENDS)
        graph.load([person("bob", age=99), person("eve")], mode="merge")
        assert ask(graph, FRIENDS) == before
        assert ask(graph, "match { $p: Person  $p.age = 99 } return { $p.name, $p.bio }") == [
            ("bob", None)
        ]
        assert ask(graph, "match { $p: Person  $p.age = 40 } return { $p.name }") == []
        assert ask(graph, NAMES) == ["ann", "bob", "cat", "dan", "eve"]


def test_overwritten_types(tmp_path):
    with people(tmp_path / "g") as graph:
        ask(graph, FRIENDS)
        graph.load([knows("dan", "ann")], mode="overwrite")
        assert ask(graph, FRIENDS) == [("dan", "ann")]


def test_many_small_files(tmp_path):
    """Forty commits of one edge: as many files, and a deletion in some of them."""
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([person(f"p{i:02}", age=i) for i in range(20)])
        for i in range(19):
            graph.load([knows(f"p{i:02}", f"p{i + 1:02}", since=i)])
        for i in range(0, 19, 5):
            graph.load([person(f"p{i:02}", age=-i)], mode="merge")
        graph.mutate("delete Knows where since = 7")
        reach = 'match { $a: Person { name: "%s" }  $a knows{1,30} $b } return { count($b) as n }'
        assert ask(graph, reach % "p00") == [7]
        assert ask(graph, reach % "p08") == [11]
        total = (
            "match { $a: Person  $a $e:knows $b } return { sum($e.since) as s, sum($b.age) as t }"
        )
        expected = [float(sum(range(19)) - 7), float(sum(range(1, 20)) - 8 - 2 * (5 + 10 + 15))]
        assert ask(graph, total) == [tuple(expected)]


def test_every_property_type_in_every_way_of_traversing(tmp_path):
    """Lance refuses conditions on a table that has a list of unsigned numbers; reads must not."""
    kinds = [
        "String",
        "Bool",
        "I32",
        "I64",
        "U32",
        "U64",
        "F32",
        "F64",
        "Date",
        "DateTime",
        "Blob",
        "Vector(2)",
        "enum(a,b)",
        "[String]",
        "[Bool]",
        "[I32]",
        "[I64]",
        "[U32]",
        "[U64]",
        "[F32]",
        "[F64]",
        "[Date]",
        "[DateTime]",
    ]
    properties = "  ".join(f"x{i}: {kind}?" for i, kind in enumerate(kinds))
    schema = f"node P {{ name: String @key  k: I64?  {properties} }}\nedge Knows: P -> P {{ w: I64?  {properties} }}"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.load(
            [
                {"type": "P", "data": {"name": n, "k": i, "x18": [1, 2**64 - 1]}}
                for i, n in enumerate("abc")
            ]
            + [{"edge": "Knows", "from": "a", "to": t, "data": {"w": 5, "x18": [7]}} for t in "bc"]
        )
    with pytest.MonkeyPatch.context() as patch:
        for cache in ("0", "1e9"):
            patch.setenv(CACHE_VARIABLE, cache)
            with omnigraph.open(tmp_path / "g") as graph:
                walk = 'match { $a: P { name: "a" }  $a $e:knows $b  $e.w > 3  $b.k >= 2 } return { $b.name, $e.x18 }'
                assert ask(graph, walk) == [("c", [7])]
                assert ask(graph, "match { $a: P  $a.k = 1 } return { $a.name, $a.x18 }") == [
                    ("b", [1, 2**64 - 1])
                ]
                assert ask(
                    graph, "match { $a: P  $a.x18 contains 1  $a.k > 1 } return { $a.name }"
                ) == ["c"]


# ---------------------------------------------------------------- time travel and branches


def test_a_query_at_a_commit(tmp_path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        made = [graph.load(PEOPLE).commit.id]
        made.append(graph.load([person("eve"), knows("dan", "eve")]).commit.id)
        made.append(graph.mutate('delete Person where name = "cat"').commit.id)
        counts = "match { $a: Person  optional { $a knows $b } } return { count(distinct $a) as a, count($b) as e }"
        expected = [(4, 4), (5, 5), (4, 2)]
        for _ in range(2):
            for commit, answer in zip(reversed(made), reversed(expected), strict=True):
                assert ask(graph, counts, commit=commit) == [answer]
        assert ask(graph, counts) == [expected[-1]]
        result = graph.query(NAMES, commit=made[0])
        assert result.commit_id == made[0]
        assert result.manifest_version < graph.query(NAMES).manifest_version
        assert "scan" in str(graph.explain(NAMES, commit=made[0], analyze=True))
    with omnigraph.open(tmp_path / "g") as graph:
        assert ask(graph, counts, commit=made[0]) == [expected[0]]


def test_a_commit_that_is_not_there(graph):
    with pytest.raises(omnigraph.NotFoundError) as caught:
        graph.query(NAMES, commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert caught.value.kind is ErrorKind.COMMIT_NOT_FOUND


def test_branches_that_deleted_apart(tmp_path):
    """Two branches hide different edges of one file: neither answer leaks into the other."""
    from test_branch_refs import fork

    root = tmp_path / "g"
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load(
            [person(n) for n in "abcdef"] + [knows("a", t, since=i) for i, t in enumerate("bcdef")]
        )
        fork(root, "other")
        graph.mutate("delete Knows where since = 0")
        graph.mutate("delete Knows where since = 1", branch="other")
        out = 'match { $a: Person { name: "a" }  $a knows $b } return { $b.name } order { $b.name }'
        each = 'match { $a: Person { name: "a" }  $a $e:knows $b } return { $e.since } order { $e.since }'
        for _ in range(2):
            assert ask(graph, out) == ["c", "d", "e", "f"]
            assert ask(graph, out, branch="other") == ["b", "d", "e", "f"]
            assert ask(graph, each, branch="other") == [0, 2, 3, 4]
            assert ask(graph, each) == [1, 2, 3, 4]


# ---------------------------------------------------------------- now


def test_now_is_one_moment_of_the_injected_clock(tmp_path):
    clock = ManualClock(1_767_225_600_123_456)
    with people(tmp_path / "g", clock=clock) as graph:
        text = (
            "match { $p: Person  now() = now() } return { $p.name, now() as t } order { $p.name }"
        )
        moments = {t for _, t in ask(graph, text)}
        assert {m.isoformat(timespec="microseconds") for m in moments} == {
            "2026-01-01T00:00:00.123000+00:00"
        }
        clock.advance(3600)
        (later, *_) = {t for _, t in ask(graph, text)}
        assert later.hour == 1


# ---------------------------------------------------------------- keys


def test_keys_of_every_type(tmp_path):
    """A seek makes the id of the key; a scan compares values: both find the same node."""
    day, moment = "2026-01-01", "1969-12-31T23:59:59.999Z"
    values = {
        "String": ["", "a", 'q"\\', "[1]", '["a"]', "null"],
        "Bool": [True, False],
        "I32": [-(2**31), 7],
        "I64": [-(2**63), 0, 2**63 - 1],
        "U32": [0, 2**32 - 1],
        "U64": [0, 2**63, 2**64 - 1],
        "F32": [0.0, 0.1, -1.5, 3e38],
        "F64": [0.0, 0.1, 1e308, 5e-324, 1e22],
        "Date": [day, "0001-01-01", "9999-12-31"],
        "DateTime": [moment, "2026-01-01T00:00:00.001Z"],
    }
    types = [f"node {t}Key {{ k: {t} @key  n: I64 }}" for t in values]
    types += [f"node {t}Pair {{ s: String  k: {t}  n: I64  @key(k, s) }}" for t in values]
    rest = 'x"],[\\'
    with omnigraph.init(tmp_path / "g", "\n".join(types)) as graph:
        graph.load(
            [{"type": f"{t}Key", "data": {"k": v, "n": i}} for t, own in values.items() for i, v in enumerate(own)]
            + [{"type": f"{t}Pair", "data": {"k": v, "s": rest, "n": i}} for t, own in values.items() for i, v in enumerate(own)]
        )  # fmt: skip
        for t, own in values.items():
            one = f"query q($k: {t}) {{ match {{ $x: {t}Key {{ k: $k }} }} return {{ $x.n }} }}"
            two = f"query q($k: {t}, $s: String) {{ match {{ $x: {t}Pair {{ s: $s, k: $k }} }} return {{ $x.n }} }}"
            scan = (
                f"query q($k: {t}) {{ match {{ $x: {t}Key  not ($x.k != $k) }} return {{ $x.n }} }}"
            )
            assert "seek" in str(graph.explain(one))
            assert "seek" in str(graph.explain(two))
            assert "seek" not in str(graph.explain(scan))
            for i, value in enumerate(own):
                assert ask(graph, one, {"k": value}) == ask(graph, scan, {"k": value}) == [i]
                assert ask(graph, two, {"k": value, "s": rest}) == [i]
                assert ask(graph, two, {"k": value, "s": ""}) == []
        zero = "query q($k: F64) { match { $x: F64Key { k: $k } } return { $x.n } }"
        assert ask(graph, zero, {"k": -0.0}) == [0]


# ---------------------------------------------------------------- parameters are only values

NASTY = (
    "ann",
    '"',
    '" }',
    'x" or $p.name != "x',
    "' OR 1=1 --",
    "$x",
    "${x}",
    "{ }",
    "} return { $p } //",
    "a\nb",
    "a\r\n\tb",
    "\\",
    '\\"',
    "%",
    "_",
    "a%",
    "/* x */",
    "null",
    "true",
    'date("2026-01-01")',
    "é\u0301",
    "\U0001f600",
    "\u0000",
    " ann",
    "",
)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory):
    """Everybody has a nasty name; each knows the next."""
    with omnigraph.init(tmp_path_factory.mktemp("nasty") / "g", SCHEMA) as graph:
        rows = [person(n, city=n, bio=n, nicks=[n]) for n in NASTY]
        rows += [knows(a, b) for a, b in zip(NASTY, [*NASTY[1:], NASTY[0]], strict=True)]
        graph.load(rows)
    with pytest.MonkeyPatch.context() as patch:
        roomy = omnigraph.open(graph.uri)
        patch.setenv(CACHE_VARIABLE, "0")
        narrow = omnigraph.open(graph.uri)
    with roomy, narrow:
        yield roomy, narrow


EXACTLY = (
    "$p: Person { name: $x }",
    "$p: Person { city: $x }",
    "$p: Person { nicks: $x }",
    "$p: Person  $p.id = $x",
    "$p: Person  $x = $p.city",
    "$p: Person  $p.city in [$x]",
    "$p: Person  $p.name in [$x, $x]",
    "$p: Person  $p.nicks contains $x",
    "$p: Person  not ($p.city != $x)",
    "$p: Person  exists { $p knows $q  $q.name = $next }  $p.name = $x",
    "$q: Person { name: $next }  $p: Person  $p knows $q  $p.city = $x",
)  # fmt: skip


@pytest.mark.parametrize("clause", EXACTLY)
def test_a_parameter_in_any_place_is_only_a_value(nasty, clause):
    unused = "" if "$next" in clause else "  $next = $next"
    text = f"query q($x: String, $next: String) {{ match {{ {clause}{unused} }} return {{ $p.name, $x }} }}"
    for graph in nasty:
        for value, following in zip(NASTY, [*NASTY[1:], NASTY[0]], strict=True):
            found = graph.query(text, {"x": value, "next": following}).to_dicts()
            assert found == [{"p.name": value, "x": value}], repr(value)


@pytest.mark.parametrize("mode", MODES)
def test_parts_of_texts_are_only_values(nasty, mode, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
    text = "query q($x: String) {{ match {{ $p: Person  $p.city {op} $x }} return {{ $p.name }} }}"
    tests = {
        "contains": lambda t, x: x in t,
        "starts_with": lambda t, x: t.startswith(x),
        "<": lambda t, x: t < x,
        ">=": lambda t, x: t >= x,
        "!=": lambda t, x: t != x,
    }
    for graph in nasty:
        for op, test in tests.items():
            for value in NASTY:
                found = {r["p.name"] for r in graph.query(text.format(op=op), {"x": value})}
                assert found == {t for t in NASTY if test(t, value)}, (op, value)


def test_search_texts_are_only_values(nasty):
    roomy, _ = nasty
    for function in ("search", "match_text", "fuzzy"):
        text = f"query q($x: String) {{ match {{ $p: Person  {function}($p.bio, $x) }} return {{ $p.name }} }}"
        for value in NASTY:
            found = {r["p.name"] for r in roomy.query(text, {"x": value})}
            if value.strip() in ("ann", "null", "true"):
                assert value in found
            assert len(found) < len(NASTY), "no text means everything"
    rank = (
        "query q($x: String) { match { $p: Person } return { $p.name } order { bm25($p.bio, $x) } }"
    )
    for value in NASTY:
        assert len(roomy.query(rank, {"x": value})) < len(NASTY)


def test_texts_written_in_a_query_are_the_same_values(nasty):
    roomy, _ = nasty
    for value in NASTY:
        quoted = value
        for plain, escaped in (
            ("\\", "\\\\"),
            ('"', '\\"'),
            ("\n", "\\n"),
            ("\r", "\\r"),
            ("\t", "\\t"),
        ):
            quoted = quoted.replace(plain, escaped)
        text = f'match {{ $p: Person {{ name: "{quoted}" }} }} return {{ $p.city }}'
        assert [r["p.city"] for r in roomy.query(text)] == [value]


def test_members_of_clubs(graph):
    """Two kinds of nodes may share ids: they never meet."""
    with_same = (
        "match { $p: Person  $p memberOf $c } return { $p.name, $c.title } order { $p.name }"
    )
    assert ask(graph, with_same) == [("ann", "chess"), ("bob", "chess"), ("dan", "ski")]


def test_ids_shared_between_types(tmp_path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(
            [person("x"), person("y"), club("y"), club("x"), member("x", "y"), knows("y", "x")]
        )
        both = "match { $p: Person  $p memberOf $c } return { $p.name, $c.title }"
        assert ask(graph, both) == [("x", "y")]
        assert ask(graph, FRIENDS) == [("y", "x")]
        back = 'match { $c: Club { title: "y" }  $p: Person  $p memberOf $c } return { $p.name }'
        assert ask(graph, back) == ["x"]
