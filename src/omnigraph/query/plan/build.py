"""A typed read as a first plan: correct, not yet clever.

    typed query -> [build] -> rules -> executor

Variables connected by traversals form a component; each has one root that is scanned, the others
are reached from it. Components meet in a cross product. Filters, optional blocks and negations come
after, in the order that ``typed.Pattern`` defines. Which root and which order is good is decided
here too, because it is the shape of the tree; everything else is left to the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from omnigraph.errors import InternalError
from omnigraph.query.plan.nodes import (
    Aggregate,
    Attach,
    Close,
    Distinct,
    Expand,
    Filter,
    Join,
    Order,
    Outer,
    Plan,
    Project,
    Rank,
    Scan,
    Semi,
    Unit,
    bound,
)
from omnigraph.query.typed import (
    Bm25,
    CountOf,
    Direction,
    Exists,
    Expr,
    Hop,
    Nearest,
    NodeVar,
    Pattern,
    Read,
    Rrf,
    Score,
    variables,
    walk,
)

REVERSED: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
RootCost = Callable[[NodeVar, tuple[Expr, ...]], float]
"""How many rows a scan of this variable with these filters is expected to give."""


def build(read: Read, cost: RootCost) -> Plan:
    """The whole read as a plan."""
    score = leading_score(read)
    plan = build_pattern(read.pattern, cost, score)
    if read.aggregated:
        return _ordered(read, Aggregate(input=plan, outputs=read.outputs))
    if read.distinct:
        projected = Distinct(input=Project(input=plan, outputs=read.outputs))
        return _ordered(read, projected)
    if read.order or read.limit is not None or read.offset is not None:
        plan = Order(
            input=plan,
            keys=read.order,
            on="bindings",
            ties=_ties(read, score),
            limit=read.limit,
            offset=read.offset,
        )
    return Project(input=plan, outputs=read.outputs)


def _ties(read: Read, score: Score | None) -> tuple[str, ...]:
    """Whose ids break ties. A ranked node first: its rows share a rank and stay together."""
    names = named_variables(read.pattern)
    if score is None:
        return names
    ranked = ranked_variable(score)
    return (ranked, *(n for n in names if n != ranked))


def _ordered(read: Read, plan: Plan) -> Plan:
    if read.distinct and read.aggregated:
        plan = Distinct(input=plan)
    if not read.order and read.limit is None and read.offset is None:
        return plan
    return Order(input=plan, keys=read.order, on="outputs", limit=read.limit, offset=read.offset)


def leading_score(read: Read) -> Score | None:
    """The ranking that the first order key asks for."""
    first = read.order[0].value if read.order else None
    return first if isinstance(first, (Bm25, Nearest, Rrf)) else None


def ranked_variable(score: Score) -> str:
    """Whose nodes a ranking scores."""
    return score.arms[0].variable if isinstance(score, Rrf) else score.variable


def named_variables(pattern: Pattern) -> tuple[str, ...]:
    """Variables that a user can see at the top, in the order of their names."""
    names = {n.name for n in pattern.nodes if not n.anonymous}
    names.update(h.variable for h in pattern.hops if h.variable is not None)
    for block in pattern.optionals:
        names.update(named_variables(block))
    return tuple(sorted(names))


def introduced(pattern: Pattern) -> tuple[str, ...]:
    """Every variable that a block binds for those around it."""
    own = [n.name for n in pattern.nodes] + [h.variable for h in pattern.hops if h.variable]
    for block in pattern.optionals:
        own += introduced(block)
    return tuple(own)


def build_pattern(pattern: Pattern, cost: RootCost, score: Score | None = None) -> Plan:
    """A block: its required part, then optionals, late filters and negations."""
    plan = _Required(pattern, cost, score).build()
    here = bound(plan)
    late = tuple(f for f in pattern.filters if not variables(f) <= here)
    early = tuple(f for f in pattern.filters if variables(f) <= here)
    if early:
        plan = Filter(input=plan, conditions=early)
    for block in pattern.optionals:
        inner = build_pattern(block, cost)
        plan = Attach(input=plan, block=inner, variables=introduced(block))
    if late:
        plan = Filter(input=plan, conditions=late)
    for block in pattern.negations:
        plan = Semi(input=plan, block=build_pattern(block, cost), negated=True)
    return plan


class _Required:
    """The bindings and traversals of one block."""

    def __init__(self, pattern: Pattern, cost: RootCost, score: Score | None) -> None:
        self._pattern = pattern
        self._nodes = {n.name: n for n in pattern.nodes}
        self._cost = cost
        self._score = score
        self._open = list(pattern.hops)

    def build(self) -> Plan:
        outer = self._pattern.outer
        plan: Plan = Outer(variables=outer) if outer else Unit()
        plan = self._reach(plan)
        while missing := self._missing(plan):
            component = self._reach(self._root(missing))
            plan = component if isinstance(plan, Unit) else Join(left=plan, right=component)
            # A component may have been connected to what was there by a hop between both.
            plan = self._reach(plan)
        if self._open:
            raise InternalError("a traversal could not be planned")
        return plan

    def _missing(self, plan: Plan) -> list[NodeVar]:
        here = bound(plan)
        return [n for n in self._pattern.nodes if n.name not in here]

    def _root(self, missing: list[NodeVar]) -> Plan:
        """The node to scan next: of the first unbound node's component, the cheapest start."""
        component = self._component(missing[0].name)
        nodes = [n for n in missing if n.name in component]
        if self._score is not None and (ranked := ranked_variable(self._score)) in component:
            scan = Scan(
                variable=ranked,
                type_name=self._nodes[ranked].type_name,
                filters=self._filters(ranked),
            )
            return Rank(input=scan, variable=ranked, score=self._score)
        best = min(nodes, key=lambda n: self._cost(n, self._filters(n.name)))
        return Scan(variable=best.name, type_name=best.type_name)

    def _filters(self, name: str) -> tuple[Expr, ...]:
        """Scalar filters on this variable alone: what a ranking ranks among."""
        return tuple(self._own_filters.get(name, ()))

    @cached_property
    def _own_filters(self) -> dict[str, list[Expr]]:
        found: dict[str, list[Expr]] = {}
        for condition in self._pattern.filters:
            needed = variables(condition)
            if len(needed) == 1 and not has_block(condition):
                found.setdefault(next(iter(needed)), []).append(condition)
        return found

    def _component(self, name: str) -> set[str]:
        found = {name}
        grown = True
        while grown:
            grown = False
            for hop in self._pattern.hops:
                ends = {hop.left, hop.right}
                if ends & found and not ends <= found and ends <= set(self._nodes):
                    found |= ends
                    grown = True
        return found

    def _reach(self, plan: Plan) -> Plan:
        """Apply every traversal that has an end bound, until none has."""
        here = set(bound(plan))
        while (hop := self._next(here)) is not None:
            ends = {hop.left, hop.right}
            plan = self._apply(plan, hop, forward=hop.left in here, closes=ends <= here)
            self._open.remove(hop)
            here |= ends
        return plan

    def _next(self, here: set[str]) -> Hop | None:
        """The next traversal with an end bound.

        One between two bound ends only removes rows: the sooner the better.
        """
        first: Hop | None = None
        for hop in self._open:
            bound_ends = (hop.left in here) + (hop.right in here)
            if bound_ends == 2:
                return hop
            if bound_ends and first is None:
                first = hop
        return first

    def _apply(self, plan: Plan, hop: Hop, *, forward: bool, closes: bool) -> Plan:
        origin, target = (hop.left, hop.right) if forward else (hop.right, hop.left)
        direction = hop.direction if forward else REVERSED[hop.direction]
        if closes:
            return Close(
                input=plan,
                origin=origin,
                target=target,
                edge=hop.edge,
                direction=direction,
                low=hop.low,
                high=hop.high,
                edge_variable=hop.variable,
            )
        return Expand(
            input=plan,
            origin=origin,
            target=target,
            target_type=self._nodes[target].type_name,
            edge=hop.edge,
            direction=direction,
            low=hop.low,
            high=hop.high,
            edge_variable=hop.variable,
        )


def has_block(expr: Expr) -> bool:
    """Whether a block stands somewhere in the expression."""
    return any(isinstance(e, (Exists, CountOf)) for e in walk(expr))
