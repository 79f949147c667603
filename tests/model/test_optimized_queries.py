"""Any query on any graph with real indexes: optimized, and written to again, it answers the same."""

from __future__ import annotations

import random
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec import columns
from omnigraph.query.exec import world as world_module
from omnigraph.query.params import bind
from omnigraph.storage import staging
from omnigraph.testing.clock import ManualClock
from omnigraph.upkeep import indexes
from support.examples import examples
from support.naive import NaiveGraph, evaluate, same
from support.random_graphs import RandomGraph
from support.random_queries import RandomQuery, cases
from support.random_worlds import NOW, WORLDS, RandomWorld

_PROPERTY = re.compile(
    r"(\b\w+: (?:String|Bool|[IUF]\d\d|DateTime|Date|enum\([^)]*\)|Vector\(\d+\))\??+)(?! *@)"
)


def indexed(world: RandomWorld) -> RandomWorld:
    """The same world with an index on everything that can have one."""
    schema = _PROPERTY.sub(r"\1 @index", world.schema)
    return RandomWorld(world.name, schema, tuple(world.inexact))


INDEXED = tuple(map(indexed, WORLDS))
MODES = ("auto", "indexed", "csr")
CACHES = ("1", "20000", "1000000000")
"""Bytes of columns that are kept: none, some, all. Filters go down to Lance where one is not."""


def load(graph: omnigraph.Graph, rows: RandomGraph, dice: random.Random) -> None:
    """In small commits, with maintenance in between."""
    for name, own in rows.source.items():
        size = dice.choice((2, 5, 100))
        for start in range(0, len(own), size):
            graph.load({name: own[start : start + size]})
            maintain(graph, dice)
    if rows.source and dice.random() < 0.5:
        # The same rows again: they get other addresses and keep their identity.
        name = dice.choice(sorted(rows.source))
        some: list[dict[str, Any]] = rows.source[name]
        graph.load({name: dice.sample(some, len(some) // 2)}, mode="merge")
        maintain(graph, dice)


def index_parts(patch: pytest.MonkeyPatch) -> None:
    """Parts of texts are indexed and looked up in small tables too."""
    patch.setattr(indexes, "PARTS_ROWS_MIN", 1)
    patch.setattr(world_module, "PARTS_ROWS_MIN", 1)


def maintain(graph: omnigraph.Graph, dice: random.Random) -> None:
    match dice.randrange(4):
        case 0:
            graph.optimize()
        case 1:
            graph.build_indexes()
        case _:
            pass


@pytest.mark.parametrize("world", INDEXED, ids=lambda w: w.name)
@settings(max_examples=examples(4))
@given(data=st.data())
def test_an_optimized_graph_answers_as_the_reference(
    world: RandomWorld, data: st.DataObject
) -> None:
    case = data.draw(cases(world))
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv(columns.CACHE_VARIABLE, dice.choice(CACHES))
        patch.setattr(staging, "CACHE_BYTES_MAX", dice.choice((1, 1 << 20)))
        index_parts(patch)
        with omnigraph.init(Path(folder) / "g", world.schema, clock=ManualClock()) as graph:
            load(graph, case.graph, dice)
            for query in case.queries:
                compare(graph, case.graph.naive, query)
            graph.optimize()
            assert graph.optimize().commit is None
            for query in case.queries:
                compare(graph, case.graph.naive, query)


def compare(graph: omnigraph.Graph, reference: NaiveGraph, query: RandomQuery) -> None:
    note(f"{query.text}\nparams = {query.params}")
    (compiled,) = compile_queries(query.text, graph.catalog)
    assert isinstance(compiled.body, typed.Read)
    params = bind(compiled.params, query.params)
    expected = evaluate(compiled.body, reference, graph.catalog, params, NOW)
    for mode in MODES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
            table = graph.query(query.text, params=query.params).to_arrow()
        difference = same(table.to_pylist(), expected)
        assert difference is None, f"{mode}: {difference}"


LETTERS = "abcABC1 -%_é日ß\n"
CONTAINS = """
query q($part: String) {
  match { $d: Doc  $d.body contains $part } return { $d.name } order { $d.name }
}
"""


@settings(max_examples=examples(8))
@given(data=st.data())
def test_a_part_of_any_text_is_found_with_and_without_indexes(data: st.DataObject) -> None:
    """Few letters, so that parts are found; writes and maintenance in any order."""
    texts = st.none() | st.text(LETTERS, max_size=12)
    dice = random.Random(data.draw(st.integers(0, 2**32)))
    schema = "node Doc { name: String @key  body: String? @index }"
    rows: dict[str, str | None] = {}
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv(columns.CACHE_VARIABLE, dice.choice(CACHES))
        index_parts(patch)
        place = Path(folder) / "g"
        with omnigraph.init(place, schema, clock=ManualClock()) as graph:
            for _ in range(data.draw(st.integers(1, 4))):
                names = st.sampled_from([f"d{i}" for i in range(12)])
                some = data.draw(st.dictionaries(names, texts, min_size=1))
                rows |= some
                graph.load({"Doc": [{"name": n, "body": t} for n, t in some.items()]}, mode="merge")
                if len(rows) > 3 and dice.random() < 0.5:
                    gone = dice.choice(sorted(rows))
                    del rows[gone]
                    graph.mutate(f'delete Doc where name = "{gone}"')
                maintain(graph, dice)
        for part in data.draw(st.lists(st.text(LETTERS, max_size=4), min_size=1, max_size=6)):
            known = [t for t in rows.values() if t]
            if known and dice.random() < 0.7:
                text = dice.choice(known)
                start = dice.randrange(len(text))
                part = text[start : start + dice.randint(1, 6)]
            expected = [n for n in sorted(rows) if part in (rows[n] or "") and rows[n] is not None]
            with omnigraph.open(place) as cold:
                for _ in range(2):
                    found = cold.query(CONTAINS, {"part": part}).to_dicts()
                    assert [row["d.name"] for row in found] == expected, part
