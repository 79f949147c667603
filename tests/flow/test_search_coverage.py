"""No index, some of it or all of it: every text and vector function gives the same answer.

Enough rows that every kind of index is really built; random small graphs are in
``tests/model/test_optimized_queries.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.query.exec import columns
from omnigraph.storage import staging
from omnigraph.storage.indexing import VECTORS_MIN

SCHEMA = """
node Doc {
  slug: String @key
  mail: String? @unique
  body: String? @index
  lang: enum(de, en)? @index
  size: I64? @index
  near: Vector(3)? @index
}
edge Cites: Doc -> Doc
"""
ROWS = VECTORS_MIN + 140
NEW = ROWS - 40
"""From here on rows come after the first build."""
WORDS = ("harbour", "harbor", "Hafen", "lighthouse", "light house", "café", "cafe noir", "")

QUESTIONS = (
    'match { $d: Doc  search($d.body, "harbour cafe") } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  match_text($d.body, "light house") } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  fuzzy($d.body, "harbur", 0) } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  fuzzy($d.body, "harbur", 1) } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  fuzzy($d.body, "harbur") } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  not search($d.body, "cafe") } return { count($d) as n }',
    'match { $d: Doc  $d.body contains "ight" } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  $d.body starts_with "har" } return { $d.slug } order { $d.slug }',
    'match { $d: Doc } return { $d.slug, bm25($d.body, "harbour cafe") as s } order { bm25($d.body, "harbour cafe") }',
    "match { $d: Doc } return { $d.slug, nearest($d.near, [0.5, 7.0, 1.0]) as s } order { nearest($d.near, [0.5, 7.0, 1.0]) } limit 50",
    'match { $d: Doc  $d.lang = "de" } return { $d.slug } order { nearest($d.near, [0.5, 7.0, 1.0]) } limit 50',
    'match { $d: Doc } return { $d.slug } order { rrf(bm25($d.body, "cafe"), nearest($d.near, [0.5, 7.0, 1.0])) } limit 50',
    'match { $d: Doc { slug: "d7" } } return { $d.slug, $d.body, $d.size }',
    f'match {{ $d: Doc {{ slug: "d{NEW + 3}" }} }} return {{ $d.slug, $d.size }}',
    'match { $d: Doc  $d.slug in ["d1", "d299", "absent"] } return { $d.slug } order { $d.slug }',
    'match { $d: Doc  $d.mail = "m9@x.org" } return { $d.slug }',
    'match { $d: Doc  $d.mail = "new9@x.org" } return { $d.slug }',
    "match { $d: Doc  $d.size >= 290 } return { $d.slug } order { $d.slug }",
    'match { $d: Doc  $d.lang = "en" } return { count($d) as n }',
    'match { $d: Doc { slug: "d7" }  $d cites $e  search($e.body, "harbor cafe") } return { $e.slug } order { $e.slug }',
)  # fmt: skip


Maintain = Callable[[omnigraph.Graph], object]


def doc(number: int, *, changed: bool = False) -> dict[str, Any]:
    word = WORDS[(number + changed) % len(WORDS)]
    return {
        "slug": f"d{number}",
        "mail": f"{'new' if changed else 'm'}{number}@x.org",
        "body": f"{word} {WORDS[number % 3]} number {number % 7}" if number % 11 else None,
        "lang": ("de", "en", None)[(number + changed) % 3],
        "size": number + 1000 * changed,
        "near": [float(number % 17), float(number % 5), float(changed)] if number % 9 else None,
    }


def nothing(_: omnigraph.Graph) -> None:
    """No maintenance."""


def filled(place: Path, first: Maintain, later: Maintain) -> omnigraph.Graph:
    """The same rows, whatever is done after the first load and between later writes."""
    graph = omnigraph.init(place, SCHEMA)
    graph.load({"Doc": [doc(i) for i in range(NEW)]})
    cites = [{"src": "d7", "dst": f"d{i}"} for i in range(0, NEW, 2)]
    graph.load({"Cites": cites})
    first(graph)
    graph.load({"Doc": [doc(i) for i in range(NEW, ROWS)]})
    later(graph)
    graph.load({"Doc": [doc(i, changed=True) for i in range(9, 30)]}, mode="merge")
    graph.mutate('delete Doc where slug = "d33"')
    later(graph)
    return graph


OPTIMIZE, BUILD = omnigraph.Graph.optimize, omnigraph.Graph.build_indexes
COVERED: dict[str, tuple[Maintain, Maintain, set[str]]] = {
    "never": (nothing, nothing, {"missing"}),
    "optimize-once": (OPTIMIZE, nothing, {"partial"}),
    "build-once": (BUILD, nothing, {"partial"}),
    "optimize": (OPTIMIZE, OPTIMIZE, {"partial"}),
    "build": (BUILD, BUILD, {"complete"}),
}
"""What is done, and how far the text and the vector index then reach."""


@pytest.mark.parametrize("cached", [True, False], ids=["in memory", "too large to keep"])
def test_answers_do_not_depend_on_coverage(
    cached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not cached:
        monkeypatch.setenv(columns.CACHE_VARIABLE, "1")
        monkeypatch.setattr(staging, "CACHE_BYTES_MAX", 1)
    answers: dict[str, list[list[dict[str, Any]]]] = {}
    for name, (first, later, reached) in COVERED.items():
        with filled(tmp_path / name, first, later) as graph:
            searched = [s for s in graph.indexes(types=["Doc"]) if s.kind in ("text", "vector")]
            assert len(searched) == 2
            assert {str(s.state) for s in searched} == reached, name
            answers[name] = [graph.query(text).to_dicts() for text in QUESTIONS]
    for text, expected in zip(QUESTIONS, answers["never"], strict=True):
        assert expected or "m9@" in text or ", 0)" in text, text
    for name, given in answers.items():
        for text, expected, found in zip(QUESTIONS, answers["never"], given, strict=True):
            assert found == expected, f"{name}: {text}"
