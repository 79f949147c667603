"""Any query on any graph: the engine, in either way of traversing, agrees with the reference."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.params import bind
from omnigraph.testing.clock import ManualClock
from support.examples import examples
from support.naive import NaiveGraph, evaluate, same
from support.random_queries import RandomQuery, cases
from support.random_worlds import NOW, WORLDS, RandomWorld

MODES = ("indexed", "csr")


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.name)
@settings(max_examples=examples(12))
@given(data=st.data())
def test_engine_agrees_with_the_reference(world: RandomWorld, data: st.DataObject) -> None:
    case = data.draw(cases(world))
    # The clock stands still at NOW, so now() is the same moment on both sides.
    with (
        tempfile.TemporaryDirectory() as folder,
        omnigraph.init(Path(folder) / "g", world.schema, clock=ManualClock()) as graph,
    ):
        if case.graph.source:
            graph.load(case.graph.source)
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
        assert tuple(table.column_names) == expected.columns, mode
        difference = same(table.to_pylist(), expected)
        assert difference is None, f"{mode}: {difference}"
