"""Text tests and rankings with engine="spark": rows, order, ties and scores of the local engine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from query_cases import Asked, compare

import omnigraph
from omnigraph.errors import LimitError, ParameterError, UsageError
from omnigraph.query.exec import rank
from omnigraph.spark.lower import search
from omnigraph.storage.indexing import IndexKind
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.spark import SparkSessions
from support.examples import examples
from support.random_queries import cases
from support.random_worlds import WORLDS, RandomWorld

CASES = 2  # The first one is the simplest there is.
QUERIES = 10

SCHEMA = """
node Doc {
    name: String @key
    title: String @index
    body: String? @index
    year: I32?
    place: Vector(2)?
}
node Tag { word: String @key  about: String? @index }
edge Cites: Doc -> Doc { why: String? }
edge Has: Doc -> Tag
"""
DOCS: list[dict[str, Any]] = [
    {"name": "a", "title": "Ice", "body": "the quick breaker of ice", "year": 1, "place": [0, 0]},
    {"name": "b", "title": "Harbour", "body": "harbour pilot", "year": 2, "place": [1, 0]},
    {"name": "c", "title": "Ice", "body": "ice", "year": 2, "place": [0, 1]},
    {"name": "d", "title": "Pilots", "body": None, "year": 3, "place": [2, 2]},
    {"name": "e", "title": "ice pilot", "body": "Ice, ice; harbour", "year": 3},
    {"name": "f", "title": "", "body": "", "place": [1, 0]},
    {"name": "g", "title": "café", "body": "harbour pilot", "year": 1, "place": [0, -1]},
    {"name": "h", "title": "Harbor", "body": "breaker quick", "year": None, "place": [-1, 0]},
]
CITES = ["ab", "ac", "ba", "cd", "de", "ea", "eg", "gg", "gh", "hb"]
TAGS = {"sea": "ice and harbour", "land": None, "air": "no pilot"}
HAS = [("a", "sea"), ("b", "sea"), ("c", "land"), ("e", "air"), ("g", "sea"), ("g", "air")]


class Words:
    """An embedder that knows two words."""

    model = "two-words"

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        return [{"north": [0.0, 3.0], "west": [-3.0, 0.0]}[text] for text in texts]


def build(place: Path) -> omnigraph.Graph:
    omnigraph.init(place, SCHEMA).close()
    graph = omnigraph.open(place, embedder=Words())
    graph.load(
        {
            "Doc": DOCS,
            "Tag": [{"word": word, "about": about} for word, about in TAGS.items()],
            "Cites": [{"src": a, "dst": b, "why": a} for a, b in CITES],
            "Has": [{"src": a, "dst": b} for a, b in HAS],
        }
    )
    return graph


@pytest.fixture(scope="module")
def docs(
    spark_sessions: SparkSessions, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Asked]:
    with build(tmp_path_factory.mktemp("docs") / "g") as graph:
        yield Asked(graph, spark_sessions.local())


# ---------------------------------------------------------------- any query on any graph


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.name)
@settings(max_examples=examples(CASES), phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(data=st.data())
def test_searching_agrees_with_the_reference(
    spark_sessions: SparkSessions, world: RandomWorld, data: st.DataObject
) -> None:
    spark = spark_sessions.local()
    case = data.draw(cases(world, queries_max=QUERIES, searching=True))
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


# ---------------------------------------------------------------- text tests

TESTS = {
    'search($d.body, "ice PILOT")': "abceg",
    'search($d.body, "")': "",
    'match_text($d.body, "harbour pilot")': "bg",
    'match_text($d.body, "pilot harbour")': "",
    'fuzzy($d.title, "harbor")': "bh",
    'fuzzy($d.title, "harbor", 0)': "h",
    'fuzzy($d.title, "iced", 1)': "ace",
    # A text that is null does not match, and that is known of it.
    'not search($d.body, "ice")': "bdfgh",
    'search($d.body, "ice") or $d.year = 3': "acde",
    'search($d.body, "ice") and not search($d.title, "pilot")': "ac",
    'not (search($d.body, "harbour") and $d.year > 1)': "acdfgh",
    '(search($d.body, "ice")) = ($d.year = 1)': "abd",
}


@pytest.mark.parametrize("condition", TESTS)
def test_conditions(docs: Asked, condition: str) -> None:
    text = f"match {{ $d: Doc  {condition} }} return {{ $d.name }}"
    assert sorted(docs.local(text)["d.name"].to_pylist()) == list(TESTS[condition])
    assert sorted(docs.spark(text)["d.name"].to_pylist()) == list(TESTS[condition])


def test_conditions_as_columns(docs: Asked) -> None:
    shown = ", ".join(f"({text}) as c{i}" for i, text in enumerate(TESTS))
    rows = docs.rows(f"match {{ $d: Doc }} return {{ $d.name, {shown} }} order {{ $d.name }}")
    for number, names in enumerate(TESTS.values(), start=1):
        assert "".join(row[0] for row in rows if row[number]) == names


PATTERNS = [
    # At the start, the end and both ends of a traversal; beside conditions on the edge.
    'match { $d: Doc  search($d.body, "ice")  $d cites $e } return { $d.name, $e.name }',
    'match { $d: Doc { year: 1 }  $d cites $e  search($e.body, "harbour pilot") } return { $e }',
    """match { $d: Doc  $d $c:cites $e  search($e.body, "ice") or $c.why = "g" }
       return { $d.name, $c.why, $e.title }""",
    """match { $d: Doc  $d cites $e  fuzzy($d.title, "ise") or match_text($e.body, "harbour") }
       return { $d.name, $e.name }""",
    'match { $d: Doc  $d cites{1,3} $e  search($e.body, "pilot") } return { $d.name, $e.year }',
    # In blocks, and on variables that may be null.
    'match { $d: Doc  not { $d has $t  search($t.about, "ice") } } return { $d.name }',
    """match { $d: Doc  optional { $d has $t  search($t.about, "pilot") } }
       return { $d.name, $t.word, (search($t.about, "ice")) as ice, (search($d.body, "ice")) as own }
       order { $t.word desc, $d.name } offset 2 limit 5""",
    """match { $d: Doc  optional { $d has $t }  not search($t.about, "pilot") }
       return { $d.name, $t.word }""",
    """match { $d: Doc } return { $d.name,
       count { $d cites $e  search($e.body, "ice") } as n,
       exists { $d has $t  fuzzy($t.about, "pilat") } as flies } order { n desc, $d.name }""",
    """match { $d: Doc  $d cites $e  exists { $e cites $f  search($f.body, "harbour") } }
       return { $e.name, count($d) as n } order { n, $e.name desc }""",
    # Counted by weights, grouped, made distinct, and between two that are not connected.
    'match { $d: Doc  $d cites $e  $e cites $f  search($f.body, "ice") } return { count($d) as n }',
    """match { $d: Doc  search($d.body, "ice harbour")  $d has $t }
       return { $t.word, count(distinct $d) as n, min($d.year) as y } order { n desc, $t.word }""",
    'match { $d: Doc  search($d.body, "pilot")  $d cites $e } return distinct { $e.year }',
    """match { $d: Doc  $e: Doc  search($d.body, "ice")  search($e.body, "pilot")
       $d.year = $e.year } return { $d.name, $e.name }""",
]


@pytest.mark.parametrize("text", PATTERNS)
def test_patterns(docs: Asked, text: str) -> None:
    found, local = docs.spark(text), docs.local(text)
    assert found.schema == local.schema
    rows, expected = found.to_pylist(), local.to_pylist()
    if "order {" not in text:
        rows, expected = sorted(rows, key=repr), sorted(expected, key=repr)
    assert rows == expected
    assert rows


# ---------------------------------------------------------------- rankings

RANKED = [
    'match { $d: Doc } return { $d.name, bm25($d.body, "ice pilot") } order { bm25 }',
    'match { $d: Doc } return { $d.name } order { bm25($d.body, "harbour pilot") } limit 1',
    # Two that tie, and which of them the page has.
    'match { $d: Doc } return { $d.name } order { bm25($d.body, "pilot") } offset 1 limit 1',
    'match { $d: Doc } return { $d.name } order { bm25($d.title, "ice"), $d.year desc } limit 2',
    "match { $d: Doc } return { $d.name, nearest($d.place, [0, 0]) } order { nearest } limit 4",
    "match { $d: Doc } return { $d.name } order { nearest($d.place, [1, 0]) } limit 5 offset 1",
    'match { $d: Doc } return { $d.name } order { nearest($d.place, "north") } limit 3',
    "match { $d: Doc } return { $d } order { nearest($d.place, [0, 0]) } limit 0",
    """match { $d: Doc } return { $d.name, rrf(bm25($d.body, "ice"), nearest($d.place, [0, 0])) }
       order { rrf } limit 5""",
    """match { $d: Doc } return { rrf(bm25($d.body, "ice"), bm25($d.title, "ice"), 1), $d.title }
       order { rrf } limit 20""",
    # Filters on the ranked node come before the ranking, and words are counted over all nodes.
    """match { $d: Doc  $d.year >= 2 } return { $d.name, bm25($d.body, "ice harbour") }
       order { bm25 }""",
    """match { $d: Doc  search($d.body, "pilot")  not $d.year = 1 }
       return { $d.name, rrf(bm25($d.body, "harbour"), nearest($d.place, [5, 5])) as score }
       order { score } limit 3""",
    """match { $d: Doc { name: "e" } } return { $d.name, bm25($d.body, "ice") } order { bm25 }""",
    """match { $d: Doc  $d.year > 9 } return { $d.name } order { nearest($d.place, [0, 0]) }
       limit 3""",
    # Traversals and blocks come behind it: they only remove and multiply ranked rows.
    """match { $d: Doc  $d cites $e } return { $d.name, $e.name, bm25($d.body, "ice") }
       order { bm25, $e.name desc } limit 4""",
    """match { $d: Doc  $e cites $d  $d has $t } return { $e.name, $t.word }
       order { nearest($d.place, [0, 0]) } limit 3 offset 1""",
    """match { $d: Doc  not { $d has $_ }  $d cites $d2  search($d2.body, "ice") }
       return { $d.name, rrf(bm25($d.body, "ice"), nearest($d.place, [1, 1])) } order { rrf }
       limit 4""",
    """match { $d: Doc  optional { $d has $t  search($t.about, "ice") } }
       return { $d.name, $t.word, count { $d cites $e } as n, bm25($d.body, "harbour") }
       order { bm25, $t.word desc, count { $e cites $d } } limit 4""",
    """match { $d: Doc  $t: Tag  search($t.about, "ice pilot") } return { $d.name, $t.word }
       order { bm25($d.title, "ice harbour") } limit 5""",
    """match { $d: Doc  $d cites{1,3} $e  $e.year < 3 } return { $d.name, $e.name, $e.title }
       order { nearest($e.place, "west") } limit 6""",
]


@pytest.mark.parametrize("text", RANKED)
def test_rankings(docs: Asked, text: str) -> None:
    found = docs.spark(text)
    assert found.num_rows or "limit 0" in text or "$d.year > 9" in text
    assert found.schema == docs.local(text).schema
    assert found.to_pylist() == docs.local(text).to_pylist()


def test_what_is_ranked_is_read_by_id_or_by_table(docs: Asked, monkeypatch) -> None:
    text = """match { $d: Doc  $d.year > 0 } return { $d, bm25($d.body, "ice pilot") }
              order { bm25 }"""
    few = docs.spark(text)
    monkeypatch.setattr(search, "FEW", 1)
    assert docs.spark(text).equals(few)
    assert docs.rows(text) == [tuple(row.values()) for row in few.to_pylist()]


ASKED = """query q($words: String?, $edits: I64, $near: Vector(2)?, $k: I64, $n: I64) {
    match { $d: Doc  fuzzy($d.title, $words, $edits) }
    return { $d.name, rrf(bm25($d.body, $words), nearest($d.place, $near), $k) as score }
    order { score } limit $n offset 1
}"""


def test_parameters(docs: Asked) -> None:
    given = {"words": "ice pilot", "edits": 1, "near": [1.0, 1.0], "k": 5, "n": 2}
    assert len(docs.rows(ASKED, given)) == 2
    for change in ({"words": None}, {"near": None}, {"n": 0}, {"edits": 0}, {"k": 1}):
        docs.rows(ASKED, given | change)
    for change, message in (({"k": 0}, "k = 0"), ({"n": -1}, "limit is -1")):
        for engine in (docs.local, docs.spark):
            with pytest.raises(ParameterError, match=message):
                engine(ASKED, given | change)
    for engine in (docs.local, docs.spark):
        with pytest.raises(ParameterError, match="9 edits"):
            engine(ASKED, given | {"edits": 9})


# ---------------------------------------------------------------- other states, other sessions

BEST = """match { $d: Doc  search($d.body, "ice harbour")  $d cites $e }
          return { $d.name, $e.name, bm25($d.body, "ice") } order { bm25 } limit 5"""


def test_on_a_branch_and_on_a_commit(spark: SparkSession, tmp_path: Path) -> None:
    with build(tmp_path / "g") as graph:
        first = graph.commits()[0].id
        graph.mutate('update Doc set { body: "ice ice ice" } where name = "b"')
        graph.branches.create("side")
        graph.mutate('update Doc set { body: null } where name = "a"', branch="side")
        states = [graph.snapshot(), graph.snapshot(commit=first), graph.snapshot("side")]
        answers = [view.query(BEST).to_dicts() for view in states]
        assert len({str(answer) for answer in answers}) == 3
        for view, expected in zip(states, answers, strict=True):
            assert view.query(BEST, engine="spark", spark=spark).to_dicts() == expected


def test_as_a_frame(docs: Asked) -> None:
    with docs.graph.spark(docs.session) as on_spark:
        frame = on_spark.query(BEST)
        assert frame.columns == ["d.name", "e.name", "bm25"]
        assert [tuple(r) for r in frame.collect()] == docs.rows(BEST)
        assert frame.filter("bm25 > 0.5").count() == sum(r[2] > 0.5 for r in docs.rows(BEST))


def test_on_a_connect_session(spark_connect: SparkSession, tmp_path: Path) -> None:
    with build(tmp_path / "g") as graph:
        found = graph.query(BEST, engine="spark", spark=spark_connect)
        assert found.to_arrow().equals(graph.query(BEST).to_arrow())


def test_the_remarks_of_the_local_engine(docs: Asked, monkeypatch) -> None:
    monkeypatch.setitem(rank.NOTED_ROWS, IndexKind.TEXT, 1)
    local = docs.graph.query(BEST)
    found = docs.graph.query(BEST, engine="spark", spark=docs.session)
    assert [n.property_name for n in found.notices] == ["body"]
    assert found.notices == local.notices


# ---------------------------------------------------------------- limits


def test_limits(docs: Asked, monkeypatch) -> None:
    with pytest.raises(LimitError, match="longer than"):
        docs.spark(BEST, timeout_s=1e-6)
    monkeypatch.setattr(search, "FOUND_BYTES_MAX", 8)
    with pytest.raises(LimitError, match=r"a search in Doc\.body finds") as caught:
        docs.spark('match { $d: Doc  search($d.body, "ice") } return { $d.name }')
    assert 'engine="local"' in str(caught.value.hint)
    with pytest.raises(LimitError, match="a ranking of Doc finds"):
        docs.spark(BEST)


def test_a_text_needs_an_embedder(spark: SparkSession, tmp_path: Path) -> None:
    build(tmp_path / "g").close()
    text = 'match { $d: Doc } return { $d.name } order { nearest($d.place, "north") } limit 3'
    with (
        omnigraph.open(tmp_path / "g") as graph,
        pytest.raises(UsageError, match="no embedder is configured"),
    ):
        graph.query(text, engine="spark", spark=spark)
