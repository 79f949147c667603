"""A query text as a tree: what was written, where, and nothing about what it means.

    .gq text -> tokens -> [AST] -> check -> typed query -> plan -> rows

Every node carries its place. Names are kept as they were written; nothing is resolved here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from omnigraph.lang.cursor import Name
from omnigraph.lang.source import Span

CompareOp = Literal["=", "!=", "<", "<=", ">", ">=", "contains", "starts_with"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AstNode:
    """Something that was written, with its place."""

    span: Span


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class NullLiteral(AstNode):
    """``null``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoolLiteral(AstNode):
    value: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IntLiteral(AstNode):
    value: int
    """With its sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatLiteral(AstNode):
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StringLiteral(AstNode):
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DateLiteral(AstNode):
    """``date("2026-01-02")``; the text is checked later."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DateTimeLiteral(AstNode):
    """``datetime("2026-01-02T03:04:05Z")``."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLiteral(AstNode):
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable(AstNode):
    """``$v``: a binding or a parameter. ``$_`` has the name ``_``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyRef(AstNode):
    """``$v.name``."""

    variable: Name
    property: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class NameRef(AstNode):
    """A bare word: an output column in ``order``, a property in a mutation's ``where``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(AstNode):
    """``now()``, ``count(distinct $v)``, ``search($d.body, $q)`` … known or not."""

    function: Name
    args: tuple[Expr, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistsExpr(AstNode):
    """``exists { … }``."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CountExpr(AstNode):
    """``count { … }``: how many solutions the block has."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareExpr(AstNode):
    op: CompareOp
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNullExpr(AstNode):
    """``x is null`` or, negated, ``x is not null``."""

    operand: Expr
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class In(AstNode):
    """``x in [1, 2]``, ``x not in $list``."""

    operand: Expr
    values: Expr
    negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NotExpr(AstNode):
    operand: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class AndExpr(AstNode):
    """Two or more operands, flattened."""

    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OrExpr(AstNode):
    operands: tuple[Expr, ...]


SingleLiteral = (
    BoolLiteral | IntLiteral | FloatLiteral | StringLiteral | DateLiteral | DateTimeLiteral
)
Expr = (
    NullLiteral
    | SingleLiteral
    | ListLiteral
    | Variable
    | PropertyRef
    | NameRef
    | Call
    | ExistsExpr
    | CountExpr
    | CompareExpr
    | IsNullExpr
    | In
    | NotExpr
    | AndExpr
    | OrExpr
)

# ---------------------------------------------------------------- match clauses


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyMatch(AstNode):
    """``code: "AAR"`` inside a binding, ``code: $c`` inside an insert."""

    property: Name
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding(AstNode):
    """``$v: Vessel { flag: "dk" }``."""

    variable: Name
    type_name: Name
    matches: tuple[PropertyMatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HopBounds(AstNode):
    """``{low, high}``; ``high`` None when it was left out."""

    low: int
    high: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traversal(AstNode):
    """``$a $e:word{1,3} $b`` or ``$a <word> $b``."""

    source: Name
    edge_variable: Name | None
    word: Name
    undirected: bool
    bounds: HopBounds | None
    target: Name


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterClause(AstNode):
    condition: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Negation(AstNode):
    """``not { … }``."""

    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionalBlock(AstNode):
    """``optional { … }``."""

    clauses: tuple[Clause, ...]


Clause = Binding | Traversal | FilterClause | Negation | OptionalBlock

# ---------------------------------------------------------------- bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection(AstNode):
    value: Expr
    alias: Name | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering(AstNode):
    key: Expr
    direction: Name | None
    """``asc`` or ``desc`` if written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBody(AstNode):
    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    distinct: bool
    order: tuple[Ordering, ...]
    limit: Expr | None
    """An ``IntLiteral`` or a ``Variable``."""
    offset: Expr | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertStatement(AstNode):
    """``insert T { … }`` or ``upsert T { … }``."""

    upsert: bool
    type_name: Name
    assignments: tuple[PropertyMatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateStatement(AstNode):
    type_name: Name
    assignments: tuple[PropertyMatch, ...]
    where: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStatement(AstNode):
    type_name: Name
    where: Expr


Statement = InsertStatement | UpdateStatement | DeleteStatement


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationBody(AstNode):
    statements: tuple[Statement, ...]


Body = ReadBody | MutationBody

# ---------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamType(AstNode):
    """``String``, ``[I64]?``, ``Vector(8)``; the words are checked later."""

    base: Name
    is_list: bool
    vector_size: int | None
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamDefinition(AstNode):
    name: Name
    type: ParamType


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryAnnotation(AstNode):
    """``@description("…")`` or ``@instruction("…")``."""

    name: Name
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryDecl(AstNode):
    name: Name | None
    """None for a bare body such as ``match { … } return { … }`` typed at a prompt."""
    params: tuple[ParamDefinition, ...]
    annotations: tuple[QueryAnnotation, ...]
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFile:
    queries: tuple[QueryDecl, ...]
