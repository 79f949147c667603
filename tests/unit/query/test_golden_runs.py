"""Walks `tests/golden/query/run/<case>`: a graph and queries give plans and rows.

A case is `schema.pg`, `data.jsonl` and `query.gq` with one or more named queries, and perhaps
`params.json` by query name. `plan.txt` is what `explain` says, `rows.txt` what comes out: the same
in every way of traversing, and what the reference evaluator says. `GOLDEN_UPDATE=1` rewrites both;
the diff is the thing to review.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

import omnigraph
from omnigraph.query.compile import compile_queries
from omnigraph.query.params import bind
from omnigraph.query.plan import nodes, rules
from omnigraph.query.plan.planner import expressions, plan_read
from omnigraph.query.typed import CountOf, Exists, Query, walk
from omnigraph.schema.compile import compile_schema
from omnigraph.testing.clock import ManualClock
from support.naive import NaiveGraph, evaluate, same

GOLDEN = Path(__file__).parents[2] / "golden" / "query" / "run"
CASES = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())
MODES = ("csr", "indexed", "auto")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""The start of ``ManualClock``, which stands still."""


@dataclass(frozen=True)
class Case:
    name: str
    schema: str
    data: str
    queries: tuple[Query, ...]
    params: dict
    text: str

    def params_of(self, query: Query) -> dict:
        return self.params.get(query.name, {})


@cache
def case_of(name: str) -> Case:
    folder = GOLDEN / name
    schema, text = (folder / "schema.pg").read_text(), (folder / "query.gq").read_text()
    given = folder / "params.json"
    return Case(
        name=name,
        schema=schema,
        data=(folder / "data.jsonl").read_text(),
        queries=tuple(compile_queries(text, compile_schema(schema))),
        params=json.loads(given.read_text()) if given.exists() else {},
        text=text,
    )


@pytest.fixture(scope="module")
def graph_of(tmp_path_factory):
    """Graphs by content: many cases ask the same one."""
    made: dict[tuple[str, str], omnigraph.Graph] = {}

    def graph(case: Case) -> omnigraph.Graph:
        key = (case.schema, case.data)
        if key not in made:
            root = tmp_path_factory.mktemp("golden") / "g"
            opened = omnigraph.init(root, case.schema, clock=ManualClock())
            if case.data:
                opened.load([json.loads(line) for line in case.data.splitlines()])
            made[key] = opened
        return made[key]

    yield graph
    for one in made.values():
        one.close()


def naive(graph: omnigraph.Graph) -> NaiveGraph:
    view = graph.snapshot()
    return NaiveGraph.of({t.table_key: view.rows(t.name).to_dicts() for t in graph.catalog.types()})


def is_ordered(query: Query) -> bool:
    body = query.body
    return bool(body.order) or body.limit is not None or body.offset is not None


def shown(value):
    """Stable text: scores to six digits, days and instants in ISO form."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return [shown(v) for v in value] if isinstance(value, list) else value


def dump_rows(table, ordered: bool) -> str:
    kinds = ", ".join(f"{f.name}: {_kind(f.type)}" for f in table.schema)
    lines = [json.dumps(shown(list(r.values())), ensure_ascii=False) for r in table.to_pylist()]
    return "\n".join([kinds, *(lines if ordered else sorted(lines))]) + "\n"


def _kind(kind) -> str:
    return "object" if str(kind).startswith("struct") else str(kind)


def run(case: Case, graph: omnigraph.Graph) -> tuple[str, str]:
    plans, rows = [], []
    for query in case.queries:
        params = case.params_of(query)
        plans.append(f"query {query.name}\n{graph.explain(case.text, name=query.name)}")
        answers = set()
        for mode in MODES:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
                table = graph.query(case.text, params, name=query.name).to_arrow()
            answers.add(dump_rows(table, is_ordered(query)))
        assert len(answers) == 1, f"{query.name}: the ways of traversing disagree"
        rows.append(f"query {query.name}\n{answers.pop()}")
    return "\n".join(plans), "\n".join(rows)


@pytest.mark.parametrize("name", CASES)
def test_golden_case(name, graph_of):
    case, folder = case_of(name), GOLDEN / name
    made = dict(zip(("plan.txt", "rows.txt"), run(case, graph_of(case)), strict=True))
    for file, text in made.items():
        if os.environ.get("GOLDEN_UPDATE") == "1":
            (folder / file).write_text(text)
        assert text == (folder / file).read_text(), file


@pytest.mark.parametrize("name", CASES)
def test_rows_are_those_of_the_reference(name, graph_of):
    """A golden file keeps what came out once; this says that it was right."""
    case = case_of(name)
    graph = graph_of(case)
    reference = naive(graph)
    for query in case.queries:
        params = case.params_of(query)
        expected = evaluate(query.body, reference, graph.catalog, bind(query.params, params), NOW)
        assert not expected.fragile, query.name
        found = graph.query(case.text, params, name=query.name).to_arrow()
        assert tuple(found.column_names) == expected.columns
        assert same(found.to_pylist(), expected) is None, query.name


# ---------------------------------------------------------------- what the cases cover


def plans_of(case: Case, graph: omnigraph.Graph):
    for query in case.queries:
        yield query, graph.explain(case.text, name=query.name).plan


def steps_of(plan):
    yield plan
    for source in nodes.inputs(plan):
        yield from steps_of(source)


def test_every_kind_of_step_is_shown(graph_of):
    seen = set()
    for name in CASES:
        for _, plan in plans_of(case_of(name), graph_of(case_of(name))):
            for root in (plan.root, *plan.blocks.values()):
                seen |= {type(step) for step in steps_of(root)}
    # A unit is the start of a pattern before it has a node; no finished plan keeps one.
    assert set(get_args(nodes.Plan)) - seen == {nodes.Unit}


def changed_by(query: Query, graph: omnigraph.Graph) -> set[str]:
    """The rules that made something of this query's plan."""
    fired: set[str] = set()

    def noting(rule):
        def noted(plan, planning):
            made = rule(plan, planning)
            if made != plan:
                fired.add(rule.__name__)
            return made

        return noted

    snapshot = graph.snapshot()
    plan_read(query.body, graph.catalog, snapshot.count, tuple(map(noting, rules.RULES)))
    return fired


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda r: r.__name__)
def test_every_rule_has_a_case_where_it_fires_and_one_where_it_must_not(rule, graph_of):
    case = case_of(f"rule_{rule.__name__}")
    graph = graph_of(case)
    kinds = set()
    for query in case.queries:
        kind = query.name.split("_")[0]
        kinds.add(kind)
        fired = rule.__name__ in changed_by(query, graph)
        assert fired == {"fires": True, "not": False}[kind], query.name
    assert kinds == {"fires", "not"}


def test_blocks_in_expressions_have_plans(graph_of):
    """Whatever block stands in an expression of a plan is planned as well."""
    for name in CASES:
        for _, plan in plans_of(case_of(name), graph_of(case_of(name))):
            for root in (plan.root, *plan.blocks.values()):
                for step in steps_of(root):
                    for expr in expressions(step):
                        for part in walk(expr):
                            if isinstance(part, (Exists, CountOf)):
                                assert part.block in plan.blocks
