"""What a query takes, gives and touches, for callers that do not read it.

typed query, catalog -> [describe] -> descriptor
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.query import typed
from omnigraph.schema.catalog import Catalog, EntityKind, Scalar

_KINDS: dict[Scalar, str] = {
    Scalar.STRING: "string",
    Scalar.BLOB: "blob",
    Scalar.BOOL: "bool",
    Scalar.I32: "int",
    Scalar.U32: "int",
    Scalar.I64: "bigint",
    Scalar.U64: "bigint",
    Scalar.F32: "float",
    Scalar.F64: "float",
    Scalar.DATE: "date",
    Scalar.DATETIME: "datetime",
    Scalar.VECTOR: "vector",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueDescriptor:
    """A result column or a parameter."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    """Of the elements of a list."""
    vector_dim: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, without absent fields."""
        names = ("name", "kind", "item_kind", "vector_dim", "nullable")
        return {n: v for n in names if (v := getattr(self, n)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Touched:
    """A node or edge type that a query reads or writes."""

    kind: EntityKind
    type_name: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"kind": self.kind, "type_name": self.type_name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """One query as others see it."""

    name: str | None
    operation: Literal["read", "mutation"]
    params: tuple[ValueDescriptor, ...]
    result: tuple[ValueDescriptor, ...]
    """In the order of the columns; nothing for a mutation."""
    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]
    description: str | None = None
    instruction: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, without absent texts."""
        texts = {"description": self.description, "instruction": self.instruction}
        return {
            "name": self.name,
            "operation": self.operation,
            **{k: v for k, v in texts.items() if v is not None},
            "params": [p.to_dict() for p in self.params],
            "result": [c.to_dict() for c in self.result],
            "reads": [t.to_dict() for t in self.reads],
            "writes": [t.to_dict() for t in self.writes],
        }


def describe(query: typed.Query, catalog: Catalog) -> Descriptor:
    """The descriptor of a query that was checked against this schema."""
    body = query.body
    result: tuple[ValueDescriptor, ...] = ()
    reads: set[Touched] = set()
    writes: set[Touched] = set()
    if isinstance(body, typed.Read):
        result = tuple(_value(o.name, o.type) for o in body.outputs)
        for pattern in patterns(body):
            reads.update(_read_by(pattern, catalog))
    else:
        for statement in body.statements:
            touched = set(_touched_by(statement, catalog))
            reads |= touched | set(_endpoints_of(statement, catalog))
            writes |= touched
    return Descriptor(
        name=query.name,
        operation="read" if isinstance(body, typed.Read) else "mutation",
        params=tuple(_value(p.name, p.type) for p in query.params),
        result=result,
        reads=tuple(sorted(reads)),
        writes=tuple(sorted(writes)),
        description=query.description,
        instruction=query.instruction,
    )


def _value(name: str, of: typed.ValueType) -> ValueDescriptor:
    if isinstance(of, typed.ObjectType):
        return ValueDescriptor(name=name, kind="object", nullable=of.nullable)
    kind = _KINDS[of.scalar]
    return ValueDescriptor(
        name=name,
        kind="list" if of.is_list else kind,
        nullable=of.nullable,
        item_kind=kind if of.is_list else None,
        vector_dim=of.vector_size,
    )


# ---------------------------------------------------------------- what is read


def patterns(read: typed.Read) -> Iterator[typed.Pattern]:
    """The match and every block in it, and in what is returned and ordered by."""
    yield from _within(read.pattern)
    for expr in (*(o.value for o in read.outputs), *(k.value for k in read.order)):
        yield from _blocks(expr)


def _within(pattern: typed.Pattern) -> Iterator[typed.Pattern]:
    yield pattern
    for inner in (*pattern.optionals, *pattern.negations):
        yield from _within(inner)
    for condition in pattern.filters:
        yield from _blocks(condition)


def _blocks(expr: typed.Expr) -> Iterator[typed.Pattern]:
    for part in typed.walk(expr):
        if isinstance(part, typed.Exists | typed.CountOf):
            yield from _within(part.block)


def _read_by(pattern: typed.Pattern, catalog: Catalog) -> Iterator[Touched]:
    for node in pattern.nodes:
        yield Touched(kind="node", type_name=node.type_name)
    for hop in pattern.hops:
        edge = catalog.edges[hop.edge]
        yield Touched(kind="edge", type_name=edge.name)
        yield Touched(kind="node", type_name=edge.source)
        yield Touched(kind="node", type_name=edge.target)


# ---------------------------------------------------------------- what is written


def _touched_by(statement: typed.Statement, catalog: Catalog) -> Iterator[Touched]:
    """The target; a node that goes takes its edges along."""
    yield Touched(kind=statement.kind, type_name=statement.type_name)
    if isinstance(statement, typed.Delete) and statement.kind == "node":
        for edge in catalog.edges_at(statement.type_name):
            yield Touched(kind="edge", type_name=edge.name)


def _endpoints_of(statement: typed.Statement, catalog: Catalog) -> Iterator[Touched]:
    """Nodes that must be there for a new edge."""
    if isinstance(statement, typed.Insert) and statement.kind == "edge":
        edge = catalog.edges[statement.type_name]
        yield Touched(kind="node", type_name=edge.source)
        yield Touched(kind="node", type_name=edge.target)
