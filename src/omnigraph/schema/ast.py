"""What the parser reads: declarations exactly as written, each with its place in the text.

    .pg text -> [AST] -> check -> catalog

Names are not resolved and nothing is checked here; hints such as ``@rename_from`` are kept, because
migration reads them from the AST while the catalog no longer has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from omnigraph.lang.cursor import Name
from omnigraph.lang.source import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRef:
    """A property's type as written."""

    form: Literal["base", "list", "enum", "vector"]
    base: Name
    """The base type, or the word ``enum`` or ``Vector``."""
    nullable: bool
    span: Span
    enum_values: tuple[Name, ...] = ()
    size: int = 0
    arguments: str = ""
    """Of a type that does not exist: what stands in parentheses behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A literal, or a bare word that stands for its own text."""

    kind: Literal["string", "number", "bool", "word"]
    text: str
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeValue:
    """``low..high``; at least one bound is there."""

    low: Fraction | None
    high: Fraction | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointRef:
    """``@src`` or ``@dst`` as a member of an edge key."""

    name: Name
    span: Span


ConstraintArgument = Value | RangeValue | EndpointRef


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationDecl:
    """``@name``, ``@name(value)`` or ``@name(value, word = literal, …)``."""

    name: Name
    span: Span
    value: Value | None = None
    arguments: tuple[tuple[Name, Value], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyDecl:
    """``name: Type @annotation …``"""

    name: Name
    type: TypeRef
    annotations: tuple[AnnotationDecl, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintDecl:
    """A body line such as ``@unique(a, b)``."""

    word: Name
    arguments: tuple[ConstraintArgument, ...]
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class CardDecl:
    """``@card(low..high)``."""

    low: int
    high: int | None
    span: Span


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceDecl:
    """``interface Name { … }``"""

    name: Name
    properties: tuple[PropertyDecl, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDecl:
    """``node Name @annotation … implements A, B { … }``"""

    name: Name
    properties: tuple[PropertyDecl, ...]
    constraints: tuple[ConstraintDecl, ...] = ()
    annotations: tuple[AnnotationDecl, ...] = ()
    implements: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeDecl:
    """``edge Name: Source -> Target @card(…) @annotation … { … }``"""

    name: Name
    source: Name
    target: Name
    properties: tuple[PropertyDecl, ...] = ()
    constraints: tuple[ConstraintDecl, ...] = ()
    annotations: tuple[AnnotationDecl, ...] = ()
    card: CardDecl | None = None


Declaration = InterfaceDecl | NodeDecl | EdgeDecl


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDecl:
    """A whole text, each kind in the order of declaration."""

    interfaces: tuple[InterfaceDecl, ...] = ()
    nodes: tuple[NodeDecl, ...] = ()
    edges: tuple[EdgeDecl, ...] = ()
