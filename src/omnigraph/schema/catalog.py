"""The checked schema: what every other part of the package knows about types.

    .pg text -> AST -> check -> [catalog] -> validate, load, query, storage

A catalog is immutable and carries *stable numbers*: every type, property and table incarnation gets
one from a single counter that never reuses a number, so names may change and identity stays. It
knows nothing about Lance, files or branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from omnigraph.errors import ErrorKind, NotFoundError, UsageError
from omnigraph.lang.suggest import did_you_mean

EntityKind = Literal["node", "edge"]


class Scalar(StrEnum):
    """The base types of the schema language; the value is the spelling in `.pg`."""

    STRING = "String"
    BLOB = "Blob"
    BOOL = "Bool"
    I32 = "I32"
    I64 = "I64"
    U32 = "U32"
    U64 = "U64"
    F32 = "F32"
    F64 = "F64"
    DATE = "Date"
    DATETIME = "DateTime"
    VECTOR = "Vector"

    @property
    def is_integer(self) -> bool:
        return self in INTEGER_RANGES

    @property
    def is_float(self) -> bool:
        return self in (Scalar.F32, Scalar.F64)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float


INTEGER_RANGES: dict[Scalar, tuple[int, int]] = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
"""The least and the greatest value of each integer type."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyType:
    """A declared type. Equal ones agree in scalar, list flag, nullability, enum set and size."""

    scalar: Scalar
    is_list: bool = False
    nullable: bool = False
    enum_values: tuple[str, ...] | None = None
    """Sorted; only with ``Scalar.STRING`` and never in a list."""
    vector_size: int | None = None
    """Only with ``Scalar.VECTOR``."""

    @property
    def is_enum(self) -> bool:
        return self.enum_values is not None

    def __str__(self) -> str:
        if self.enum_values is not None:
            core = f"enum({', '.join(self.enum_values)})"
        elif self.vector_size is not None:
            core = f"Vector({self.vector_size})"
        else:
            core = f"[{self.scalar}]" if self.is_list else str(self.scalar)
        return core + ("?" if self.nullable else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """An annotation that has no meaning to us but is kept: ``@name(value, k = v)``."""

    name: str
    value: str | None = None
    arguments: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Embed:
    """``@embed(source, model = "…")``: this vector is the embedding of that text property."""

    source: str
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What rows get that have no value: a literal, or the value of another property."""

    value: str | int | float | bool | None = None
    """Days and instants as whole numbers since 1970: the values that Arrow stores."""
    copy_of: int | None = None
    """The stable number of a property of the same type."""
    text: str
    """As it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A declared property with its stable number."""

    id: int
    name: str
    type: PropertyType
    description: str | None = None
    embed: Embed | None = None
    annotations: tuple[Annotation, ...] = ()
    backfill: Backfill | None = field(default=None, compare=False)
    """What rows got that were there before it, and rows of such a time still get when a merge
    brings them. It says nothing about the property itself, so it does not count as a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """``@range(p, low..high)``: inclusive; bounds are values of the property's own type."""

    property_name: str
    low: int | float | None
    high: int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """``@check(p, "regex")``: the value must match somewhere (unanchored)."""

    property_name: str
    pattern: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cardinality:
    """``@card(low..high)``: bounds on edges per source node; ``high`` None is unbounded."""

    low: int = 0
    high: int | None = None


@dataclass(frozen=True, kw_only=True)
class GraphType(ABC):
    """What node and edge types share: identity, properties, constraints, one table."""

    id: int
    """Stable number of the type."""
    incarnation: int
    """Stable number of this life of its table."""
    name: str
    properties: tuple[Property, ...]
    """In declaration order, interface-injected ones last."""
    key: tuple[str, ...] = ()
    """Members of the key, ordered by stable property number; on edges after ``@src``, ``@dst``."""
    unique: tuple[tuple[str, ...], ...] = ()
    """Unique groups; members are property names, on edges also ``src`` and ``dst``."""
    indexes: tuple[tuple[str, ...], ...] = ()
    """Declared intent to index (keys included); members as in ``unique``."""
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    @abstractmethod
    def kind(self) -> EntityKind:
        """Node or edge."""

    @property
    def table_key(self) -> str:
        """``node:Name`` or ``edge:Name``."""
        return f"{self.kind}:{self.name}"

    @property
    def stable_id(self) -> tuple[int, int]:
        """The type and the life of its table: what it is, whatever it is called."""
        return self.id, self.incarnation

    @property
    def table_path(self) -> str:
        """Where the table lives, relative to the graph's root. Never derived from a name."""
        return f"{self.kind}s/{self.id:016x}-{self.incarnation:016x}"

    @cached_property
    def by_name(self) -> Mapping[str, Property]:
        """Properties by name."""
        return {p.name: p for p in self.properties}

    @property
    @abstractmethod
    def system_columns(self) -> tuple[str, ...]:
        """Columns every row has beside its properties."""

    @property
    def end_columns(self) -> tuple[str, ...]:
        """``src`` and ``dst`` of an edge. A node may have properties of these names."""
        return self.system_columns[1:]


@dataclass(frozen=True, kw_only=True)
class NodeType(GraphType):
    """A node type. A property ``id`` may only be ``id: String @key``: it *is* the entity id."""

    implements: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()

    @property
    def kind(self) -> EntityKind:
        return "node"

    @property
    def system_columns(self) -> tuple[str, ...]:
        return ("id",)


@dataclass(frozen=True, kw_only=True)
class EdgeType(GraphType):
    """An edge type between two node types."""

    source: str
    """Name of the node type edges start at."""
    target: str
    cardinality: Cardinality = field(default_factory=Cardinality)
    keyed: bool = False
    """Declared ``@key(@src, @dst, …)``: the id follows from src, dst and the members of ``key``."""

    @property
    def kind(self) -> EntityKind:
        return "edge"

    @property
    def system_columns(self) -> tuple[str, ...]:
        return ("id", "src", "dst")


@dataclass(frozen=True, kw_only=True)
class InterfaceType:
    """A named bundle of properties; creates no storage."""

    id: int
    name: str
    properties: tuple[Property, ...]


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """A whole accepted schema."""

    interfaces: Mapping[str, InterfaceType]
    nodes: Mapping[str, NodeType]
    """By name, in declaration order."""
    edges: Mapping[str, EdgeType]
    next_id: int
    """The next free stable number."""
    aliases: Mapping[int, int] = field(default_factory=dict[int, int], compare=False)
    """Numbers under which other branches know the same things, and the numbers that they have
    here: two branches added them apart from each other, and a merge made them one."""

    @cached_property
    def _edges_folded(self) -> Mapping[str, EdgeType]:
        return {name.lower(): edge for name, edge in self.edges.items()}

    @cached_property
    def _tables(self) -> Mapping[str, GraphType]:
        return {t.table_key: t for t in self.types()}

    def types(self) -> Iterator[GraphType]:
        """All node types, then all edge types, in declaration order."""
        yield from self.nodes.values()
        yield from self.edges.values()

    def edge(self, word: str) -> EdgeType | None:
        """An edge type by its name in any case."""
        return self.edges.get(word) or self._edges_folded.get(word.lower())

    def table(self, table_key: str) -> GraphType:
        """The type behind ``node:Name`` or ``edge:Name``."""
        return self._tables[table_key]

    def edges_at(self, node_name: str) -> Iterator[EdgeType]:
        """Edge types that start or end at this node type."""
        return (e for e in self.edges.values() if node_name in (e.source, e.target))


# -- lookup ----------------------------------------------------------------------------------------
# A type by the name that was given, or an error that helps.


def type_named(catalog: Catalog, name: str) -> GraphType:
    """The node type of this name, else the edge type (in any case). Raises ``NotFoundError``."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a type is named by a text, not by {name!r}")
    found = catalog.nodes.get(name) or catalog.edge(name)
    if found is None:
        raise type_not_found(catalog, name)
    return found


def type_not_found(catalog: Catalog, name: str) -> NotFoundError:
    """There is no such type."""
    known = [t.name for t in catalog.types()]
    return NotFoundError(
        f"no type '{name}' in this graph",
        kind=ErrorKind.TYPE_NOT_FOUND,
        hint=did_you_mean(name, known) or f"it has {', '.join(known) or 'no types'}",
        details={"type_name": name},
    )
