"""The order of clauses in a text has no say in the plan: what is written is a set of conditions."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.lang.source import Source
from omnigraph.query import ast
from omnigraph.query.check import check_query
from omnigraph.query.codes import QueryFindings
from omnigraph.query.parse import parse_queries
from omnigraph.query.plan.explain import explain, indented
from omnigraph.query.plan.planner import plan_read
from support.random_queries import queries
from support.random_worlds import WORLDS, RandomWorld


def shuffled(tree: Any, shuffle: Any, *, inside: bool = False) -> Any:
    """The same text with the clauses of every block, and what ``and`` joins, in another order."""
    if isinstance(tree, tuple):
        return tuple(shuffled(part, shuffle, inside=inside) for part in tree)
    if not is_dataclass(tree):
        return tree
    changed = {
        f.name: shuffled(getattr(tree, f.name), shuffle, inside=inside or f.name == "clauses")
        for f in fields(tree)
        if f.init
    }
    if "clauses" in changed:
        changed["clauses"] = _mixed(changed["clauses"], shuffle)
    if inside and isinstance(tree, ast.And):
        changed["operands"] = tuple(shuffle(changed["operands"]))
    return replace(tree, **changed)


def _mixed(clauses: tuple[Any, ...], shuffle: Any) -> tuple[Any, ...]:
    if not any(isinstance(clause, ast.OptionalBlock) for clause in clauses):
        return tuple(shuffle(clauses))
    # An optional block looks at what is there, and what looks at its variables stands behind it.
    required = [c for c in clauses if isinstance(c, (ast.Binding, ast.Traversal))]
    return (*shuffle(required), *(c for c in clauses if c not in required))


def plan_text(query: ast.Query, source: Source, world: RandomWorld) -> str:
    findings = QueryFindings(source)
    checked = check_query(query, world.catalog, findings)
    findings.raise_if_any()
    assert checked is not None
    plan = plan_read(checked.body, world.catalog, lambda name: 10 * len(name))
    return re.sub(r"#\d+", "", indented(explain(plan)))


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
@given(data=st.data())
@settings(max_examples=150)
def test_every_permutation_of_clauses_gives_the_same_plan(
    world: RandomWorld, data: st.DataObject
) -> None:
    drawn = data.draw(queries(world, searching=data.draw(st.booleans())))
    source = Source(name="query", text=drawn.text)
    (query,) = parse_queries(source).queries
    other = shuffled(query, lambda parts: data.draw(st.permutations(parts)))
    assert plan_text(query, source, world) == plan_text(other, source, world), drawn.text
