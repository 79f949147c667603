"""The logical plan: what to do, in which order, on which variables.

    typed query -> build -> [plan] -> rules -> executor | explain

A plan is a tree of frozen steps; rows flow from the leaves up. A row binds variables to nodes and
edges. Nothing here knows how a step is carried out: adjacency, indexes and columns are the
executor's, and another executor may run the same plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from omnigraph.query.typed import Direction, Expr, OrderKey, Output, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """All nodes of a type that satisfy the filters."""

    variable: str
    type_name: str
    filters: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seek:
    """The nodes with these ids, or the one with this key; then the filters."""

    variable: str
    type_name: str
    ids: Expr | None
    """A string, or a list of strings."""
    key: tuple[Expr, ...] = ()
    """Else the members of the key in the order of the type's key."""
    filters: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """The rows of the enclosing plan; the leaf of a block."""

    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One row that binds nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expand:
    """From a bound variable along edges to a new one.

    Without an edge variable each row meets every other node once, at its shortest distance.
    """

    input: Plan
    origin: str
    target: str
    target_type: str
    edge: str
    direction: Direction
    low: int
    high: int
    edge_variable: str | None = None
    filters: tuple[Expr, ...] = ()
    """On the target (and the edge) alone, applied as it arrives."""
    keep: tuple[str, ...] | None = None
    """Variables of the input that a later step needs; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Keep rows whose two bound variables are connected; with an edge variable, a row per edge."""

    input: Plan
    origin: str
    target: str
    edge: str
    direction: Direction
    low: int
    high: int
    edge_variable: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Degrees:
    """Multiply each row's weight by how many nodes (or edges) one hop away it has.

    Stands for an expansion whose end is not looked at: paths are counted, not walked.
    """

    input: Plan
    origin: str
    edge: str
    direction: Direction
    per_edge: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compact:
    """Forget all variables but these; equal rows become one.

    Their weights are added when the result counts rows; else one is as good as many.
    """

    input: Plan
    keep: tuple[str, ...]
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Every row of the left with every row of the right, or those with equal values."""

    left: Plan
    right: Plan
    on: tuple[tuple[Expr, Expr], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Rows for which every condition is true."""

    input: Plan
    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Semi:
    """Rows for which the block has a solution, or, negated, has none."""

    input: Plan
    block: Plan
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """Left outer join with a block: its variables are null where it has no solution."""

    input: Plan
    block: Plan
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Score the variable's nodes; rows without a score are dropped.

    With ``limit`` only the best, and all that tie with the last of them.
    """

    input: Plan
    variable: str
    score: Score
    limit: Expr | None = None
    offset: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """Groups by the outputs that are no aggregates; ends the binding of variables."""

    input: Plan
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The output columns of each row; ends the binding of variables."""

    input: Plan
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct:
    """Equal result rows once."""

    input: Plan


Placement = Literal["bindings", "outputs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Total order: the keys, then ids of ``ties`` (on bindings) or all columns (on outputs).

    With ``limit`` only the rows that a slice will keep.
    """

    input: Plan
    keys: tuple[OrderKey, ...]
    on: Placement
    ties: tuple[str, ...] = ()
    limit: Expr | None = None
    offset: Expr | None = None
    keeps_skipped: bool = False
    """Keep the rows before the offset, too: a later order skips them."""


Leaf = Scan | Seek | Outer | Unit
Plan = (
    Leaf
    | Expand
    | Close
    | Degrees
    | Compact
    | Join
    | Filter
    | Semi
    | Attach
    | Rank
    | Aggregate
    | Project
    | Distinct
    | Order
)


def inputs(plan: Plan) -> tuple[Plan, ...]:
    """The steps that a step takes its rows from, blocks included."""
    match plan:
        case Scan() | Seek() | Outer() | Unit():
            return ()
        case Join(left=left, right=right):
            return (left, right)
        case Semi(input=source, block=block) | Attach(input=source, block=block):
            return (source, block)
        case _:
            return (plan.input,)


def with_inputs(plan: Plan, new: tuple[Plan, ...]) -> Plan:
    """The same step on other inputs."""
    match plan:
        case Scan() | Seek() | Outer() | Unit():
            return plan
        case Join():
            return replace(plan, left=new[0], right=new[1])
        case Semi() | Attach():
            return replace(plan, input=new[0], block=new[1])
        case _:
            return replace(plan, input=new[0])


def bound(plan: Plan) -> frozenset[str]:
    """Variables that rows of this step bind."""
    found: set[str] = set()
    open_: list[Plan] = [plan]
    # A loop, because rules ask this at every step of long patterns.
    while open_:
        step = open_.pop()
        match step:
            case Scan(variable=v) | Seek(variable=v):
                found.add(v)
            case Outer(variables=names) | Compact(keep=names):
                found.update(names)
            case Unit() | Aggregate() | Project():
                pass
            case Join(left=left, right=right):
                open_ += (left, right)
            case Expand(keep=keep) if keep is not None:
                found.update(keep, _brought(step))
            case _:
                found.update(_brought(step))
                open_.append(step.input)
    return frozenset(found)


def _brought(step: Plan) -> tuple[str, ...]:
    """Variables that a step adds to those of its input."""
    match step:
        case Expand(target=target, edge_variable=edge):
            return (target,) if edge is None else (target, edge)
        case Close(edge_variable=edge) if edge is not None:
            return (edge,)
        case Attach(variables=names):
            return names
        case _:
            return ()


def outer_variables(block: Plan) -> frozenset[str]:
    """Variables that a block takes from outside."""
    match block:
        case Outer(variables=names):
            return frozenset(names)
        case Semi(input=source) | Attach(input=source):
            # What an inner block takes comes from this one, not from outside.
            return outer_variables(source)
        case _:
            found: frozenset[str] = frozenset()
            for source in inputs(block):
                found |= outer_variables(source)
            return found
