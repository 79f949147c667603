"""Which way a traversal runs, and the types of its ends.

    patterns -> [traversals] -> typed hops

Types spread from what is bound: every traversal with a known end settles its other end, until
nothing changes. Only then a traversal between two unknowns is read as written, from the edge's
source to its target, and the spreading goes on. So the order of clauses does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check.context import Bound, Context
from omnigraph.query.codes import QueryCode
from omnigraph.schema.catalog import EdgeType


@dataclass(frozen=True, slots=True, kw_only=True)
class TraversalStep:
    """A traversal with its variables; None for one that was refused."""

    clause: ast.Traversal
    left: Bound | None
    right: Bound | None
    edge: Bound | None


def resolve(steps: Sequence[TraversalStep], ctx: Context) -> tuple[typed.Hop, ...]:
    """All hops, in the order in which they were written."""
    found: dict[int, typed.Hop | None] = {}
    edges = [_edge_type(step, ctx) for step in steps]
    pending = list(range(len(steps)))
    while pending:
        ready = [i for i in pending if _is_known(steps[i], edges[i])] or pending[:1]
        for i in ready:
            found[i] = _hop(steps[i], edges[i], ctx)
        pending = [i for i in pending if i not in found]
    return tuple(hop for i in range(len(steps)) if (hop := found[i]) is not None)


def _edge_type(step: TraversalStep, ctx: Context) -> EdgeType | None:
    word = step.clause.word
    edge = ctx.catalog.edge(word.text)
    if edge is None:
        known = [name[0].lower() + name[1:] for name in ctx.catalog.edges]
        hint = did_you_mean(word.text, known)
        if word.text in ("contains", "starts_with"):
            hint = f"`{word.text}` between two variables is an edge; test a property: `$v.name …`"
        message = f"unknown edge `{word.text}`"
        ctx.report(QueryCode.UNKNOWN_EDGE, word.span, message, hint=hint)
    if step.edge is not None:
        step.edge.settle(edge)
    return edge


def _is_known(step: TraversalStep, edge: EdgeType | None) -> bool:
    """Whether the types of both ends follow already."""
    if edge is None:
        return False
    if edge.source == edge.target:
        return True
    return any(end is not None and end.settled for end in (step.left, step.right))


def _hop(step: TraversalStep, edge: EdgeType | None, ctx: Context) -> typed.Hop | None:
    if edge is None:
        for end in (step.left, step.right):
            if end is not None and not end.settled:
                end.settle(None)
        return None
    direction = _direction(step, edge)
    low, high = _bounds(step.clause, ctx)
    ok = _check_shape(step, edge, ctx)
    source, target = (edge.source, edge.target)
    ends = (source, target) if direction != "in" else (target, source)
    names = (step.clause.source, step.clause.target)
    for end, name, written in zip((step.left, step.right), ends, names, strict=True):
        if end is not None and not _settle(end, name, written, step.clause, edge, ctx):
            ok = False
    if step.left is None or step.right is None or not ok:
        return None
    return typed.Hop(
        left=step.left.name,
        right=step.right.name,
        edge=edge.name,
        direction=direction,
        low=low,
        high=high,
        variable=None if step.edge is None else step.edge.name,
    )


def _direction(step: TraversalStep, edge: EdgeType) -> typed.Direction:
    if step.clause.undirected:
        return "both"
    left, right = _name(step.left), _name(step.right)
    if left == edge.source or left == edge.target:
        # As written when both ends would do: then the left one is the source.
        return "out" if left == edge.source else "in"
    return "in" if right == edge.source and right != edge.target else "out"


def _name(end: Bound | None) -> str | None:
    return end.type.name if end is not None and end.type is not None else None


def _settle(
    end: Bound,
    type_name: str,
    written: ast.Name,
    clause: ast.Traversal,
    edge: EdgeType,
    ctx: Context,
) -> bool:
    """Give the end its type, or compare it with the one it has."""
    if not end.settled:
        end.settle(ctx.catalog.nodes[type_name])
        return True
    if end.type is None or end.type.name == type_name:
        return True
    ctx.report(
        QueryCode.ENDPOINT_TYPE,
        written.span,
        f"`${written.text}` is a {end.type.name}, which does not fit here in `{clause.word.text}`",
        expected=f"a {type_name}: the edge runs {edge.source} -> {edge.target}",
    )
    return False


def _check_shape(step: TraversalStep, edge: EdgeType, ctx: Context) -> bool:
    clause, ok = step.clause, True
    if clause.undirected and edge.source != edge.target:
        ctx.report(
            QueryCode.UNDIRECTED_ENDPOINTS,
            clause.word.span,
            f"`<{clause.word.text}>` is only for edges between nodes of one type",
            hint=f"it runs {edge.source} -> {edge.target}; leave out the `<` and `>`",
        )
        ok = False
    bounds = clause.bounds
    one_hop = bounds is None or (bounds.low, bounds.high) == (1, 1)
    if clause.edge_variable is not None and not one_hop:
        message = f"`${clause.edge_variable.text}` cannot name the edges of several hops"
        ctx.report(
            QueryCode.BOUND_EDGE_HOPS,
            clause.edge_variable.span,
            message,
            hint="leave out the edge variable or the bounds",
        )
        ok = False
    return ok


def _bounds(clause: ast.Traversal, ctx: Context) -> tuple[int, int]:
    bounds = clause.bounds
    if bounds is None:
        return 1, 1
    if bounds.high is not None and 1 <= bounds.low <= bounds.high <= HOPS_MAX:
        return bounds.low, bounds.high
    if bounds.high is None:
        low = max(1, bounds.low)
        message, hint = "a traversal needs an upper bound", f"write `{{{low},{max(5, low)}}}`"
    elif bounds.low < 1:
        message, hint = "a traversal has at least one hop", f"write `{{1,{max(1, bounds.high)}}}`"
    else:
        message, hint = f"{ctx.quote(bounds.span)} allows no number of hops", None
    ctx.report(
        QueryCode.HOP_BOUNDS,
        bounds.span,
        message,
        expected=f"{{low,high}} with 1 <= low <= high <= {HOPS_MAX}",
        hint=hint,
    )
    return 1, 1


HOPS_MAX = 2**31 - 1
"""No graph has longer shortest paths; a bound on everything."""
