"""A search over rows that no built index covers says so, and only where it matters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec import rank
from omnigraph.query.exec.rank import SearchedText, searched
from omnigraph.results import IndexNotice
from omnigraph.storage.indexing import VECTORS_MIN, IndexKind, IndexSpec
from omnigraph.upkeep.indexes import wanted_indexes

SCHEMA = """
node Doc {
  slug: String @key
  title: String @index
  body: String? @index
  near: Vector(2)? @index
  loose: Vector(2)?
}
edge Cites: Doc -> Doc
"""
WORDS = 'match { $d: Doc  search($d.body, "red") } return { $d.slug }'
NEAREST = "match { $d: Doc } return { $d.slug } order { nearest($d.near, [0.0, 1.0]) } limit 3"


def docs(start: int, end: int, *, vectors: bool = True) -> list[dict]:
    return [
        {
            "slug": f"d{i}",
            "title": f"title {i}",
            "body": "red" if i % 3 else "blue",
            "near": [float(i), 1.0] if vectors else None,
        }
        for i in range(start, end)
    ]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        yield made


@pytest.fixture
def small_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were many."""
    monkeypatch.setattr(rank, "NOTED_ROWS", dict.fromkeys(rank.NOTED_ROWS, 10))


def told(notices: tuple[IndexNotice, ...]) -> list[tuple]:
    return [(n.property_name, str(n.kind), n.rows_uncovered, n.rows, n.next_step) for n in notices]


def found(text: str, graph: omnigraph.Graph) -> set[tuple[str, IndexKind]]:
    (query,) = compile_queries(text, graph.catalog)
    assert isinstance(query.body, typed.Read)
    what = searched(query.body)
    assert len(set(what)) == len(what)
    assert all(isinstance(s, SearchedText) and s.type_name == "Doc" for s in what)
    return {(s.column, s.kind) for s in what}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('match { $d: Doc  $d.title = "x" } return { $d.slug }', set()),
        ('match { $d: Doc  $d.body contains "x" } return { $d.slug }', set()),
        (WORDS, {("body", IndexKind.TEXT)}),
        ('match { $d: Doc  not match_text($d.title, "a b") } return { $d.slug }', {("title", IndexKind.TEXT)}),
        ('match { $d: Doc  fuzzy($d.title, "a", 1) or $d.slug = "x" } return { $d.slug }', {("title", IndexKind.TEXT)}),
        ('match { $d: Doc } return { $d.slug } order { bm25($d.body, "x") }', {("body", IndexKind.TEXT)}),
        (NEAREST, {("near", IndexKind.VECTOR)}),
        (
            'match { $d: Doc } return { $d.slug } order { rrf(bm25($d.body, "x"), nearest($d.near, [0.0, 1.0])) } limit 3',
            {("body", IndexKind.TEXT), ("near", IndexKind.VECTOR)},
        ),
        (
            'match { $d: Doc  not { $d cites $e  search($e.title, "x") } optional { $d cites $f  search($f.body, "x") } } return { $d.slug }',
            {("title", IndexKind.TEXT), ("body", IndexKind.TEXT)},
        ),
        (
            'match { $d: Doc  exists { $d cites $e  search($e.title, "x") } } return { $d.slug }',
            {("title", IndexKind.TEXT)},
        ),
    ],
)  # fmt: skip
def test_every_search_of_a_query_is_seen(text: str, expected: set, graph: omnigraph.Graph) -> None:
    assert found(text, graph) == expected


@pytest.mark.usefixtures("small_counts")
def test_a_notice_follows_the_coverage_and_its_step_makes_it_go(graph: omnigraph.Graph) -> None:
    graph.load({"Doc": docs(0, 40)})
    rows = graph.query(WORDS)
    assert told(rows.notices) == [("body", "text", 40, 40, "omnigraph optimize")]
    graph.optimize()
    assert graph.query(WORDS).notices == ()
    graph.load({"Doc": docs(40, 48)})
    assert graph.query(WORDS).notices == (), "eight rows are few"
    assert told(graph.explain(WORDS).notices) == [("body", "text", 8, 48, "omnigraph index build")]
    graph.load({"Doc": docs(48, 52)})
    assert told(graph.query(WORDS).notices) == [("body", "text", 12, 52, "omnigraph index build")]
    graph.build_indexes()
    assert graph.query(WORDS).notices == ()
    graph.load({"Doc": docs(52, 80)})
    assert told(graph.query(WORDS).notices) == [("body", "text", 28, 80, "omnigraph optimize")]
    graph.optimize()
    assert graph.query(WORDS).notices == graph.explain(WORDS).notices == ()


def test_small_tables_are_left_in_peace_and_explained(graph: omnigraph.Graph) -> None:
    graph.load({"Doc": docs(0, 50)})
    assert graph.query(WORDS).notices == ()
    for analyze in (False, True):
        explained = graph.explain(WORDS, analyze=analyze)
        assert told(explained.notices) == [("body", "text", 50, 50, "omnigraph optimize")]
        assert str(explained).endswith(
            "note: 50 of 50 rows of node:Doc are in no text index on body: the answer is the "
            "same; 'omnigraph optimize' builds it\n"
        )
    assert graph.explain('match { $d: Doc { slug: "d1" } } return { $d.slug }').notices == ()


@pytest.mark.usefixtures("small_counts")
def test_too_few_vectors_are_nobodys_fault(graph: omnigraph.Graph) -> None:
    graph.load({"Doc": docs(0, 300, vectors=False)})
    graph.load({"Doc": docs(0, VECTORS_MIN - 1)}, mode="merge")
    assert graph.query(NEAREST).notices == ()
    assert told(graph.explain(NEAREST).notices) == [("near", "vector", 300, 300, None)]
    graph.load({"Doc": docs(0, VECTORS_MIN)}, mode="merge")
    assert told(graph.query(NEAREST).notices) == [
        ("near", "vector", 300, 300, "omnigraph optimize")
    ]
    graph.optimize()
    assert graph.query(NEAREST).notices == ()


@pytest.mark.usefixtures("small_counts")
@pytest.mark.parametrize(
    "text",
    [
        "match { $d: Doc } return { $d.slug } order { nearest($d.loose, [0.0, 1.0]) } limit 3",
        'match { $d: Doc  search($d.slug, "d1") } return { $d.slug }',
    ],
    ids=["not declared", "a key"],
)
def test_no_index_is_missed_that_nobody_asked_for(text: str, graph: omnigraph.Graph) -> None:
    graph.load({"Doc": docs(0, 30)})
    assert graph.query(text).notices == graph.explain(text).notices == ()


@pytest.mark.usefixtures("small_counts")
def test_every_notice_is_about_an_index_that_optimize_builds(graph: omnigraph.Graph) -> None:
    graph.load({"Doc": docs(0, 300)})
    wanted = wanted_indexes(graph.catalog.nodes["Doc"])
    for text in (WORDS, NEAREST):
        (notice,) = graph.query(text).notices
        assert IndexSpec(column=notice.property_name, kind=notice.kind) in wanted
        assert notice.to_dict()["message"] == str(notice)


@pytest.mark.usefixtures("small_counts")
def test_the_past_and_an_empty_type_speak_for_themselves(graph: omnigraph.Graph) -> None:
    assert graph.explain(WORDS).notices == ()
    first = graph.load({"Doc": docs(0, 20)}).commit
    graph.optimize()
    assert first is not None
    assert told(graph.query(WORDS, commit=first.id).notices)[0][2:4] == (20, 20)
    assert graph.query(WORDS).notices == ()
