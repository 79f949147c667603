"""A typed read as a first plan: correct, not yet clever.

    typed query -> [build] -> rules -> executor

Variables connected by traversals form a component; each has one root that is scanned, the others
are reached from it. Components meet in a cross product. Filters, optional blocks and negations come
after, in the order that ``typed.Pattern`` defines. Which root and which order is good is decided
here too, because it is the shape of the tree; everything else is left to the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from omnigraph.errors import InternalError
from omnigraph.query.plan.conditions import (
    block_key,
    conjuncts,
    has_block,
    hop_key,
    key_of,
    part_left,
)
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
    Compare,
    Direction,
    Expr,
    Hop,
    Nearest,
    NodeVar,
    Pattern,
    Read,
    Rrf,
    Score,
    variables,
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
    filters = conjuncts(pattern.filters)
    plan = _Required(pattern, filters, cost, score).build()
    here = bound(plan)
    late = tuple(f for f in filters if not variables(f) <= here)
    named = "" if score is None else ranked_variable(score)
    ranked = named if any(node.name == named for node in pattern.nodes) else None
    below = _blocks_on(filters, ranked)
    early = tuple(f for f in filters if variables(f) <= here and f not in below)
    if early:
        plan = Filter(input=plan, conditions=early)
    for block in _attached(pattern.optionals):
        inner = build_pattern(block, cost)
        plan = Attach(input=plan, block=inner, variables=tuple(sorted(introduced(block))))
    if late:
        plan = Filter(input=plan, conditions=late)
    for block in sorted(pattern.negations, key=block_key):
        if block.outer != (ranked,):
            plan = Semi(input=plan, block=build_pattern(block, cost), negated=True)
    return plan


def _blocks_on(conditions: Sequence[Expr], name: str | None) -> tuple[Expr, ...]:
    """Conditions on one variable alone that ask a block: a ranking of it is among what passes."""
    alone = frozenset((name,))
    return tuple(c for c in conditions if has_block(c) and variables(c) == alone)


def _attached(blocks: Sequence[Pattern]) -> Iterator[Pattern]:
    """Optional blocks in an order of their own; one that uses another's variables follows it."""
    waiting = sorted(blocks, key=block_key)
    while waiting:
        later = {name: block for block in waiting for name in introduced(block)}
        chosen = next(b for b in waiting if all(later.get(name, b) is b for name in b.outer))
        waiting.remove(chosen)
        yield chosen


@dataclass(frozen=True, slots=True)
class _Component:
    """Variables that traversals connect, and where to start among them."""

    names: frozenset[str]
    root: Plan
    cost: float
    key: str


class _Required:
    """The bindings and traversals of one block."""

    def __init__(
        self,
        pattern: Pattern,
        filters: tuple[Expr, ...],
        cost: RootCost,
        score: Score | None,
    ) -> None:
        self._pattern = pattern
        self._conditions = filters
        self._nodes = {n.name: n for n in pattern.nodes}
        self._cost = cost
        self._score = score
        self._open = list(pattern.hops)

    def build(self) -> Plan:
        outer = self._pattern.outer
        plan: Plan = Outer(variables=outer) if outer else Unit()
        plan = self._reach(plan)
        here = set(bound(plan))
        waiting = sorted(self._components(here), key=lambda c: (c.cost, c.key))
        while waiting:
            chosen = next((c for c in waiting if self._meets(c, here)), waiting[0])
            waiting.remove(chosen)
            component = self._reach(chosen.root)
            plan = component if isinstance(plan, Unit) else Join(left=plan, right=component)
            here |= bound(component)
        if self._open:
            raise InternalError("a traversal could not be planned")
        return plan

    def _components(self, here: set[str]) -> list[_Component]:
        """What no traversal connects to the variables that are bound already."""
        missing = [n for n in self._pattern.nodes if n.name not in here]
        found: list[_Component] = []
        while missing:
            names = self._connected(missing[0].name)
            found.append(self._component([n for n in missing if n.name in names]))
            missing = [n for n in missing if n.name not in names]
        return found

    def _component(self, nodes: list[NodeVar]) -> _Component:
        """With the cheapest start, or the ranked node."""
        costs = {n.name: (self._cost(n, self._filters(n.name)), self._node_key(n)) for n in nodes}
        best = min(nodes, key=lambda n: costs[n.name])
        root: Plan = Scan(variable=best.name, type_name=best.type_name)
        if self._score is not None and (ranked := ranked_variable(self._score)) in costs:
            best = self._nodes[ranked]
            among: Plan = Scan(
                variable=ranked, type_name=best.type_name, filters=self._filters(ranked)
            )
            if blocks := _blocks_on(self._conditions, ranked):
                among = Filter(input=among, conditions=blocks)
            own = [b for b in self._pattern.negations if b.outer == (ranked,)]
            for block in sorted(own, key=block_key):
                inner = build_pattern(block, self._cost)
                among = Semi(input=among, block=inner, negated=True)
            root = Rank(input=among, variable=ranked, score=self._score)
        cost, key = costs[best.name]
        return _Component(frozenset(costs), root, cost, key)

    def _node_key(self, node: NodeVar) -> str:
        if not node.anonymous:
            return f"{node.name}: {node.type_name}"
        hops = [h for h in self._pattern.hops if node.name in (h.left, h.right)]
        said = [*map(key_of, self._filters(node.name)), *sorted(map(hop_key, hops))]
        return f": {node.type_name} {' '.join(said)}"

    def _meets(self, component: _Component, here: set[str]) -> bool:
        """Whether an equality leads from what is bound to a component: then no product is made."""
        return any(a <= here and b <= component.names for a, b in self._equalities)

    @cached_property
    def _equalities(self) -> list[tuple[frozenset[str], frozenset[str]]]:
        """Variables that conditions compare, either way round."""
        pairs = [
            (variables(c.left), variables(c.right))
            for c in self._conditions
            if isinstance(c, Compare) and c.op == "="
        ]
        return [pair for a, b in pairs if a and b for pair in ((a, b), (b, a))]

    def _filters(self, name: str) -> tuple[Expr, ...]:
        """Scalar filters on this variable alone."""
        return tuple(self._own_filters.get(name, ()))

    @cached_property
    def _own_filters(self) -> dict[str, list[Expr]]:
        found: dict[str, list[Expr]] = {}
        for condition in self._conditions:
            needed = variables(condition)
            if len(needed) == 1 and not has_block(condition):
                found.setdefault(next(iter(needed)), []).append(condition)
        return found

    def _connected(self, name: str) -> set[str]:
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

        One between two bound ends only removes rows: the sooner the better. Then those that lead
        to nodes or over edges of which conditions leave few.
        """
        found = [hop for hop in self._open if hop.left in here or hop.right in here]
        if len(found) < 2:
            return found[0] if found else None
        return min(found, key=lambda hop: self._choice(hop, here))

    def _choice(self, hop: Hop, here: set[str]) -> tuple[bool, float, str]:
        ends = [name for name in (hop.left, hop.right) if name not in here]
        left = 1.0
        for name in [*ends, hop.variable or ""]:
            for condition in self._filters(name):
                left *= part_left(condition)
        return bool(ends), left, hop_key(hop)

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
