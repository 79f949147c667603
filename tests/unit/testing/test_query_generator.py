"""Random queries fit their schema, and the reference gives every one of them one answer."""

from __future__ import annotations

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.params import bind
from support.examples import examples
from support.naive import NaiveGraph, evaluate, same
from support.random_queries import cases
from support.random_worlds import NOW, WORLDS, RandomWorld


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.name)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_every_text_has_an_answer_that_does_not_depend_on_the_order_of_rows(
    world: RandomWorld, data: st.DataObject
) -> None:
    case = data.draw(cases(world))
    turned = NaiveGraph.of({k: list(reversed(v)) for k, v in case.graph.rows.items()})
    for query in case.queries:
        note(f"{query.text}\nparams = {query.params}")
        (compiled,) = compile_queries(query.text, world.catalog)
        assert isinstance(compiled.body, typed.Read)
        params = bind(compiled.params, query.params)
        result = evaluate(compiled.body, case.graph.naive, world.catalog, params, NOW)
        again = evaluate(compiled.body, turned, world.catalog, params, NOW)
        assert same(again.rows, result) is None
