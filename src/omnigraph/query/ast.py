"""A query text as a tree: what was written, where, and nothing about what it means.

    .gq text -> tokens -> [AST] -> check -> typed query -> plan -> rows

Every node carries its place. Names are kept as they were written; nothing is resolved here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.source import Span

CompareOp = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A word and its place. A variable's name stands without its ``$``."""

    text: str
    span: Span


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class NullLiteral:
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class BoolLiteral:
    value: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class IntLiteral:
    value: int
    """With its sign."""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatLiteral:
    value: float
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class StringLiteral:
    value: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DateLiteral:
    """``date("2026-01-02")``; the text is checked later."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTimeLiteral:
    """``datetime("2026-01-02T03:04:05Z")``."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLiteral:
    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """``$v``: a binding or a parameter. ``$_`` has the name ``_``."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyRef:
    """``$v.name``."""

    variable: Name
    property: Name
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRef:
    """A bare word: an output column in ``order``, a property in a mutation's ``where``."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``now()``, ``count(distinct $v)``, ``search($d.body, $q)`` … known or not."""

    function: Name
    args: tuple[Expr, ...]
    distinct: bool = False
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Exists:
    """``exists { … }``."""

    clauses: tuple[Clause, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CountOf:
    """``count { … }``: how many solutions the block has."""

    clauses: tuple[Clause, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Compare:
    op: CompareOp
    left: Expr
    right: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull:
    """``x is null`` or, negated, ``x is not null``."""

    operand: Expr
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class In:
    """``x in [1, 2]``, ``x not in $list``."""

    operand: Expr
    values: Expr
    negated: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Not:
    operand: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class And:
    """Two or more operands, flattened."""

    operands: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Or:
    operands: tuple[Expr, ...]
    span: Span


Literal_ = (
    NullLiteral
    | BoolLiteral
    | IntLiteral
    | FloatLiteral
    | StringLiteral
    | DateLiteral
    | DateTimeLiteral
    | ListLiteral
)
Expr = (
    Literal_
    | Variable
    | PropertyRef
    | NameRef
    | Call
    | Exists
    | CountOf
    | Compare
    | IsNull
    | In
    | Not
    | And
    | Or
)

# ---------------------------------------------------------------- match clauses


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyMatch:
    """``code: "AAR"`` inside a binding, ``code: $c`` inside an insert."""

    property: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """``$v: Vessel { flag: "dk" }``."""

    variable: Name
    type_name: Name
    matches: tuple[PropertyMatch, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class HopBounds:
    """``{low, high}``; ``high`` None when it was left out."""

    low: int
    high: int | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Traversal:
    """``$a $e:word{1,3} $b`` or ``$a <word> $b``."""

    source: Name
    edge_variable: Name | None
    word: Name
    undirected: bool
    bounds: HopBounds | None
    target: Name
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    condition: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation:
    """``not { … }``."""

    clauses: tuple[Clause, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalBlock:
    """``optional { … }``."""

    clauses: tuple[Clause, ...]
    span: Span


Clause = Binding | Traversal | Filter | Negation | OptionalBlock

# ---------------------------------------------------------------- bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    value: Expr
    alias: Name | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    key: Expr
    direction: Name | None
    """``asc`` or ``desc`` if written."""
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool
    order: tuple[Ordering, ...]
    limit: Expr | None
    """An ``IntLiteral`` or a ``Variable``."""
    offset: Expr | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """``insert T { … }`` or ``upsert T { … }``."""

    upsert: bool
    type_name: Name
    assignments: tuple[PropertyMatch, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    type_name: Name
    assignments: tuple[PropertyMatch, ...]
    where: Expr
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    type_name: Name
    where: Expr
    span: Span


Statement = Insert | Update | Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    statements: tuple[Statement, ...]
    span: Span


Body = Read | Mutation

# ---------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamType:
    """``String``, ``[I64]?``, ``Vector(8)``; the words are checked later."""

    base: Name
    is_list: bool
    vector_size: int | None
    nullable: bool
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    name: Name
    type: ParamType
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnnotation:
    """``@description("…")`` or ``@instruction("…")``."""

    name: Name
    value: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    name: Name | None
    """None for a bare body such as ``match { … } return { … }`` typed at a prompt."""
    params: tuple[Param, ...]
    annotations: tuple[QueryAnnotation, ...]
    body: Body
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFile:
    queries: tuple[Query, ...]
