"""The order of clauses in a text has no say in the plan: what is written is a set of conditions."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from omnigraph.lang.source import Source
from omnigraph.query import ast, typed
from omnigraph.query.check import check_query
from omnigraph.query.codes import QueryFindings
from omnigraph.query.parse import parse_queries
from omnigraph.query.plan.explain import explain, indented
from omnigraph.query.plan.planner import plan_read
from support.examples import examples
from support.random_queries import queries
from support.random_worlds import WORLDS, RandomWorld


def shuffled(tree: Any, shuffle: Any) -> Any:
    """The same text with the clauses of every block, and what ``and`` joins, in another order."""
    if isinstance(tree, tuple):
        return tuple(shuffled(part, shuffle) for part in tree)
    if not is_dataclass(tree):
        return tree
    changed = {f.name: shuffled(getattr(tree, f.name), shuffle) for f in fields(tree) if f.init}
    if "clauses" in changed:
        changed["clauses"] = _mixed(changed["clauses"], shuffle)
    if isinstance(tree, ast.FilterClause) and isinstance(changed["condition"], ast.AndExpr):
        joined = changed["condition"]
        changed["condition"] = replace(joined, operands=tuple(shuffle(joined.operands)))
    return replace(tree, **changed)


def _mixed(clauses: tuple[Any, ...], shuffle: Any) -> tuple[Any, ...]:
    if not any(isinstance(clause, ast.OptionalBlock) for clause in clauses):
        return tuple(shuffle(clauses))
    # An optional block looks at what is there, and what looks at its variables stands behind it.
    required = [c for c in clauses if isinstance(c, (ast.Binding, ast.Traversal))]
    return (*shuffle(required), *(c for c in clauses if c not in required))


def checked(query: ast.QueryDecl, source: Source, world: RandomWorld) -> typed.Read | None:
    findings = QueryFindings(source)
    found = check_query(query, world.catalog, findings)
    return None if found is None or findings.diagnostics else cast("typed.Read", found.body)


def types_of(pattern: typed.Pattern) -> set[tuple[str, str]]:
    own = {(re.sub(r"#\d+", "", n.name), n.type_name) for n in pattern.nodes}
    return own.union(*map(types_of, (*pattern.optionals, *pattern.negations)))


def plan_text(read: typed.Read, world: RandomWorld) -> str:
    plan = plan_read(read, world.catalog, lambda name: 10 * len(name))
    return re.sub(r"#\d+", "", indented(explain(plan)))


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
@given(data=st.data())
@settings(max_examples=examples(50))
def test_every_permutation_of_clauses_gives_the_same_plan(
    world: RandomWorld, data: st.DataObject
) -> None:
    drawn = data.draw(queries(world, searching=data.draw(st.booleans())))
    source = Source(name="query", text=drawn.text)
    (query,) = parse_queries(source).queries
    other = shuffled(query, lambda parts: data.draw(st.permutations(parts)))
    one, two = checked(query, source, world), checked(other, source, world)
    assert one is not None
    # A variable without a type has that of the first clause which says something about it.
    assume(two is not None and types_of(one.pattern) == types_of(two.pattern))
    assert two is not None and plan_text(one, world) == plan_text(two, world), drawn.text
