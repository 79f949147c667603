"""The reference evaluator: what a read must return, in the plainest way that can be written down.

    typed.Read + NaiveGraph -> naive_match (rows) -> [naive: project, group, order, cut]

It exists to disagree with the engine. Nothing in it is fast, nothing is shared with planning or
execution, and every rule of the language stands in one place: patterns in ``naive_match``, nulls
and comparison in ``naive_values``, search in ``naive_search``, results here, comparing two results
in ``naive_compare``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from omnigraph.query import typed
from omnigraph.schema.catalog import Catalog
from support.naive_compare import NaiveResult, same
from support.naive_graph import NaiveGraph
from support.naive_match import Evaluator, Row, block_variables
from support.naive_search import rank
from support.naive_values import SortKey, aggregated, frozen

__all__ = ["NaiveGraph", "NaiveResult", "evaluate", "same"]

SUM_TOLERANCE = 1e-9
SCORE_TOLERANCE = 1e-5

Score = typed.Bm25 | typed.Nearest | typed.Rrf
_SCORES = (typed.Bm25, typed.Nearest, typed.Rrf)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A result row with the bindings it came from; none for a group."""

    values: tuple[Any, ...]
    row: Row | None


def evaluate(
    query: typed.Read,
    graph: NaiveGraph,
    catalog: Catalog,
    params: Mapping[str, Any],
    now: datetime,
) -> NaiveResult:
    """Run a read. ``params`` holds bound values; one that is absent is null."""
    evaluator = Evaluator(graph, catalog, params, now)
    scores = _scores_of(query)
    fragile = [_rank(evaluator, query.pattern, score) for score in scores]
    rows = evaluator.solutions(query.pattern, {})
    # Who is not in a ranking that the query asks for is not in the result either.
    rows = [r for r in rows if all(evaluator.value(s, r) is not None for s in scores)]
    if query.aggregated:
        lines = _groups(evaluator, query, rows)
    else:
        lines = [
            _Line(values=tuple(evaluator.value(o.value, row) for o in query.outputs), row=row)
            for row in rows
        ]
    if query.distinct:
        lines = list({frozen(line.values): line for line in lines}.values())
    ordered = bool(query.order) or query.limit is not None or query.offset is not None
    if ordered:
        lines = _sorted(evaluator, query, lines)
        lines = _page(evaluator, query, lines)
    return NaiveResult(
        columns=tuple(o.name for o in query.outputs),
        rows=[line.values for line in lines],
        ordered=ordered,
        tolerances=tuple(_tolerance(o.value) for o in query.outputs),
        fragile=any(fragile),
    )


# ---------------------------------------------------------------- scores


def _scores_of(query: typed.Read) -> list[Score]:
    asked = [o.value for o in query.outputs] + [k.value for k in query.order]
    return list({e: None for e in asked if isinstance(e, _SCORES)})


def _rank(evaluator: Evaluator, pattern: typed.Pattern, score: Score) -> bool:
    """Give the evaluator the scores of all entities; the answer is whether they are fragile."""
    variable = score.arms[0].variable if isinstance(score, typed.Rrf) else score.variable
    block = _introducing(pattern, variable)
    if block is None:
        raise ValueError(f"no block introduces ${variable}")
    type_name = next(n.type_name for n in block.nodes if n.name == variable)
    everyone = evaluator.graph.nodes_of(type_name)
    # Conditions on this variable alone come before the ranking; all else only removes rows from it.
    own: list[typed.Expr] = [
        f for f in block.filters if typed.variables(f) == frozenset({variable})
    ]
    own += [
        typed.Not(operand=typed.Exists(block=inner))
        for inner in block.negations
        if inner.outer == (variable,)
    ]
    candidates = [
        n for n in everyone if all(evaluator.value(f, {variable: n}) is True for f in own)
    ]
    ranking = rank(score, everyone, candidates, lambda e: evaluator.value(e, {}))
    evaluator.scores[score] = ranking.scores
    return ranking.fragile


def _introducing(pattern: typed.Pattern, variable: str) -> typed.Pattern | None:
    if any(n.name == variable for n in pattern.nodes):
        return pattern
    inner = (_introducing(optional, variable) for optional in pattern.optionals)
    return next((found for found in inner if found is not None), None)


# ---------------------------------------------------------------- groups


def _groups(evaluator: Evaluator, query: typed.Read, rows: Sequence[Row]) -> list[_Line]:
    """One line for each distinct tuple of the outputs that are no aggregate."""
    keys = [o.value for o in query.outputs if not isinstance(o.value, typed.AggregateCall)]
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        key = frozen([evaluator.value(k, row) for k in keys])
        groups.setdefault(key, []).append(row)
    if not keys and not groups:
        groups[()] = []
    return [
        _Line(values=tuple(_of_group(evaluator, o.value, members) for o in query.outputs), row=None)
        for members in groups.values()
    ]


def _of_group(evaluator: Evaluator, expr: typed.Expr, members: Sequence[Row]) -> Any:
    if isinstance(expr, typed.AggregateCall):
        values = [evaluator.value(expr.operand, row) for row in members]
        return aggregated(expr.function, values, expr.distinct)
    return evaluator.value(expr, members[0])


# ---------------------------------------------------------------- order and page


def _sorted(evaluator: Evaluator, query: typed.Read, lines: list[_Line]) -> list[_Line]:
    """User keys, then what makes the order total; Python's sort keeps the order of equal ones."""
    keys = [_user_key(evaluator, query, k) for k in query.order]
    keys += [(key, False) for key in _tie_breaks(query)]
    for key, descending in reversed(keys):
        lines = sorted(lines, key=lambda line: SortKey(key(line)), reverse=descending)
    return lines


_Key = Callable[[_Line], Any]


def _user_key(evaluator: Evaluator, query: typed.Read, key: typed.OrderKey) -> tuple[_Key, bool]:
    expr = key.value
    position: int | None = None
    if isinstance(expr, typed.OutputRef):
        position = [o.name for o in query.outputs].index(expr.name)
        expr = query.outputs[position].value
    if isinstance(expr, _SCORES):
        # Best first: the highest score, but the least distance.
        descending = not isinstance(expr, typed.Nearest)
    else:
        descending = key.descending
    if position is not None:
        return _column(position), descending
    return (lambda line: evaluator.value(expr, _bindings(line))), descending


def _tie_breaks(query: typed.Read) -> list[_Key]:
    if query.aggregated or query.distinct:
        return [_column(i) for i in range(len(query.outputs))]
    anonymous = _anonymous(query.pattern)
    names = sorted(v for v in block_variables(query.pattern) if v not in anonymous)
    score = query.order[0].value if query.order else None
    if isinstance(score, typed.Rrf):
        score = score.arms[0]
    if isinstance(score, (typed.Bm25, typed.Nearest)):
        # Rows of one ranked node share its rank and stay together.
        names = [score.variable, *(n for n in names if n != score.variable)]
    return [_id_of(name) for name in names]


def _anonymous(pattern: typed.Pattern) -> set[str]:
    own = {n.name for n in pattern.nodes if n.anonymous}
    return own.union(*(_anonymous(optional) for optional in pattern.optionals))


def _column(position: int) -> _Key:
    return lambda line: line.values[position]


def _id_of(variable: str) -> _Key:
    def key(line: _Line) -> Any:
        entity = _bindings(line)[variable]
        return None if entity is None else entity["id"]

    return key


def _bindings(line: _Line) -> Row:
    if line.row is None:
        raise ValueError("a group has no bindings to order by")
    return line.row


def _page(evaluator: Evaluator, query: typed.Read, lines: list[_Line]) -> list[_Line]:
    start = 0 if query.offset is None else evaluator.value(query.offset, {})
    if query.limit is None:
        return lines[start:]
    return lines[start : start + evaluator.value(query.limit, {})]


# ---------------------------------------------------------------- how exactly to compare


def _tolerance(expr: typed.Expr) -> float:
    match expr:
        case typed.AggregateCall(function="sum" | "avg"):
            return SUM_TOLERANCE
        case typed.Bm25() | typed.Nearest() | typed.Rrf():
            return SCORE_TOLERANCE
        case _:
            return 0.0
