"""A query that makes sense on one schema: names resolved, types known, sugar gone.

    AST -> check -> [typed query] -> plan -> rows

Everything after the checker reads these values and never the text again. They are frozen and
hashable, so that a rule can compare two expressions by ``==``.

Three rules make the rest of the engine simple:

* every variable is unique in the whole query, also those of inner blocks and of ``$_``;
* inline matches are ordinary filters; a filter is one conjunct (``and`` at the top is split);
* constants are Python values in the exact type that they are compared with, where that is lossless.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.schema.catalog import EntityKind, PropertyType, Scalar

CompareOp = Literal["=", "!=", "<", "<=", ">", ">="]
AggregateFunction = Literal["count", "sum", "avg", "min", "max"]
TextMatchKind = Literal["search", "phrase", "fuzzy"]
Direction = Literal["out", "in", "both"]

BOOL = PropertyType(scalar=Scalar.BOOL, nullable=True)
STRING = PropertyType(scalar=Scalar.STRING)
COUNT = PropertyType(scalar=Scalar.I64)
FLOAT = PropertyType(scalar=Scalar.F64, nullable=True)
NOW = PropertyType(scalar=Scalar.DATETIME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """The type of a whole node: ``@id`` and its properties, without blobs and vectors."""

    type_name: str
    nullable: bool = False


ValueType = PropertyType | ObjectType

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class Const:
    """A literal. Lists are tuples; dates and instants are ``date`` and ``datetime`` (UTC)."""

    value: Any
    type: PropertyType
    """For ``null`` nullable, in the type that the context asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A declared parameter's value."""

    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The moment of the query, one for all of it."""

    type: PropertyType = NOW


@dataclass(frozen=True, slots=True, kw_only=True)
class Prop:
    """A column of a bound node or edge; in a mutation's ``where``, of the target (variable "")."""

    variable: str
    column: str
    """As stored: a property name, ``id``, or on edges ``src`` and ``dst``."""
    type: PropertyType
    """Nullable also when the variable may be unbound because it stands in ``optional``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A whole node. In aggregates and tests for null it stands for its presence."""

    variable: str
    type: ObjectType


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    """Three-valued; both sides compatible scalars."""

    op: CompareOp
    left: Expr
    right: Expr
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Contains:
    """A list has an element equal to ``item``. Never unknown: false when a side is null."""

    values: Expr
    item: Expr
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class InList:
    """``item in values``: unknown when the item is null, or not found while an element is null."""

    item: Expr
    values: Expr
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTest:
    """Exact ``contains`` or ``starts_with`` on strings; false when a side is null."""

    kind: Literal["contains", "starts_with"]
    text: Expr
    part: Expr
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """Never unknown. ``not (x is null)`` is a ``Not``."""

    operand: Expr
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    operand: Expr
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    operands: tuple[Expr, ...]
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    operands: tuple[Expr, ...]
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists:
    """The block has a solution for this row."""

    block: Pattern
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOf:
    """How many solutions the block has for this row."""

    block: Pattern
    type: PropertyType = COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMatch:
    """Full-text test of a node's String property (language guide, "Search")."""

    kind: TextMatchKind
    variable: str
    column: str
    query: Expr
    """A String constant or parameter."""
    edits: Expr | None = None
    """``fuzzy`` only: an integer constant or parameter."""
    type: PropertyType = BOOL


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25:
    """Rank by BM25, best first; rows that do not match are absent."""

    variable: str
    column: str
    query: Expr
    type: PropertyType = FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Nearest:
    """Rank by vector distance, nearest first; rows without a vector are absent."""

    variable: str
    column: str
    query: Expr
    """A vector constant or parameter, or a String that is embedded when the query runs."""
    size: int
    type: PropertyType = FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class Rrf:
    """Reciprocal rank fusion of two rankings, best first; both rank the same variable."""

    arms: tuple[Bm25 | Nearest, Bm25 | Nearest]
    k: Expr
    type: PropertyType = FLOAT


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateCall:
    """Over the rows of a group. ``operand`` is a scalar, or an entity for ``count``."""

    function: AggregateFunction
    operand: Expr
    distinct: bool
    type: PropertyType


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputRef:
    """An output column by its name; only in order keys."""

    name: str
    type: ValueType


Score = Bm25 | Nearest | Rrf
Expr = (
    Const
    | Param
    | Now
    | Prop
    | Entity
    | Compare
    | Contains
    | InList
    | TextTest
    | IsNull
    | Not
    | And
    | Or
    | Exists
    | CountOf
    | TextMatch
    | Bm25
    | Nearest
    | Rrf
    | AggregateCall
    | OutputRef
)

# ---------------------------------------------------------------- patterns


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVar:
    """A node variable that a block introduces."""

    name: str
    type_name: str
    anonymous: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A traversal from ``left`` to ``right`` as written."""

    left: str
    right: str
    edge: str
    """Name of the edge type."""
    direction: Direction
    """``out``: left is the edge's source."""
    low: int = 1
    high: int = 1
    variable: str | None = None
    """The bound edge: one row per edge instead of one per pair. Only with one hop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A block: ``match``, ``optional``, ``not``, ``exists`` or ``count``.

    Order of evaluation: nodes and hops with the filters on them; then ``optionals`` in order; then
    the filters that mention a variable of an optional block; then ``negations``.
    """

    nodes: tuple[NodeVar, ...]
    """Introduced here, in the order of their first mention."""
    hops: tuple[Hop, ...]
    filters: tuple[Expr, ...]
    optionals: tuple[Pattern, ...] = ()
    negations: tuple[Pattern, ...] = ()
    outer: tuple[str, ...] = ()
    """Variables of enclosing blocks that this one mentions, also in its inner blocks; sorted."""


# ---------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One result column."""

    name: str
    value: Expr
    type: ValueType


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderKey:
    value: Expr
    """Over bindings, or an ``OutputRef`` (always so with aggregates or ``distinct``). A score
    function stands first or not at all."""
    descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A read. ``limit`` and ``offset`` are an integer ``Const`` or ``Param``."""

    pattern: Pattern
    outputs: tuple[Output, ...]
    distinct: bool
    order: tuple[OrderKey, ...]
    limit: Const | Param | None
    offset: Const | Param | None

    @property
    def aggregated(self) -> bool:
        """Whether rows are grouped; outputs that are no aggregate are then the group key."""
        return any(isinstance(o.value, AggregateCall) for o in self.outputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    column: str
    """As stored: property name, or ``src``/``dst`` of an edge."""
    value: Const | Param | Now


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    kind: EntityKind
    type_name: str
    assignments: tuple[Assignment, ...]
    upsert: bool
    """Keep what is not assigned of an entity that exists, instead of clearing it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    kind: EntityKind
    type_name: str
    assignments: tuple[Assignment, ...]
    where: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    kind: EntityKind
    type_name: str
    where: Expr


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """All inserts and updates, or all deletes."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamDecl:
    name: str
    type: PropertyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    name: str | None
    params: tuple[ParamDecl, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    warnings: tuple[Any, ...] = field(default=(), compare=False)
    """Diagnostics that do not keep the query from running."""


# ---------------------------------------------------------------- walking


def children(expr: Expr) -> tuple[Expr, ...]:
    """Direct operands of an expression; blocks are not entered."""
    match expr:
        case Compare(left=left, right=right):
            return (left, right)
        case Contains(values=values, item=item) | InList(item=item, values=values):
            return (values, item)
        case TextTest(text=text, part=part):
            return (text, part)
        case IsNull(operand=operand) | Not(operand=operand) | AggregateCall(operand=operand):
            return (operand,)
        case And(operands=operands) | Or(operands=operands):
            return operands
        case TextMatch(query=query, edits=edits):
            return (query,) if edits is None else (query, edits)
        case Bm25(query=query) | Nearest(query=query):
            return (query,)
        case Rrf(arms=arms, k=k):
            return (*arms, k)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it; blocks are not entered."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def variables(expr: Expr) -> frozenset[str]:
    """Bound variables that the expression needs, including outer ones of its blocks."""
    found: set[str] = set()
    for part in walk(expr):
        match part:
            case Prop(variable=v) | Entity(variable=v) | TextMatch(variable=v):
                found.add(v)
            case Bm25(variable=v) | Nearest(variable=v):
                found.add(v)
            case Exists(block=block) | CountOf(block=block):
                found.update(block.outer)
            case _:
                pass
    return frozenset(found)
