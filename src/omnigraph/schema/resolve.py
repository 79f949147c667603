"""From declarations to what they stand for, shared by the rules and ``build``.

    AST -> [resolve] -> rules, build

Types of properties, constraint groups (a property's own ``@unique`` is a group of one), nodes with
their interfaces copied in, range bounds in the property's own type. Nothing is reported here: what
does not resolve is None or left out, and the rules say why.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from omnigraph.lang.source import Span
from omnigraph.schema import ast, temporal
from omnigraph.schema.catalog import INTEGER_RANGES, Embed, PropertyType, Scalar
from omnigraph.schema.words import BASE_TYPES, GROUPS, VECTOR_SIZE_MAX


def property_type(ref: ast.TypeRef) -> PropertyType | None:
    """The type that is meant, or None if there is no such type."""
    if ref.form == "enum":
        values = tuple(sorted({v.text for v in ref.enum_values}))
        return PropertyType(scalar=Scalar.STRING, nullable=ref.nullable, enum_values=values)
    if ref.form == "vector":
        if not 1 <= ref.size <= VECTOR_SIZE_MAX:
            return None
        return PropertyType(scalar=Scalar.VECTOR, nullable=ref.nullable, vector_size=ref.size)
    if ref.base.text not in BASE_TYPES:
        return None
    is_list = ref.form == "list"
    return PropertyType(scalar=Scalar(ref.base.text), is_list=is_list, nullable=ref.nullable)


def annotation(
    owner: ast.PropertyDecl | ast.NodeDecl | ast.EdgeDecl, word: str
) -> ast.AnnotationDecl | None:
    """The first annotation of this name."""
    return next((a for a in owner.annotations if a.name.text == word), None)


def embed_of(prop: ast.PropertyDecl) -> Embed | None:
    """What ``@embed`` says, if it is there and says something."""
    found = annotation(prop, "embed")
    if found is None or found.value is None:
        return None
    model = next((v.text for name, v in found.arguments if name.text == "model"), None)
    return Embed(source=found.value.text, model=model)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A ``@key``, ``@unique`` or ``@index`` over members; ``@src`` and ``@dst`` are not listed."""

    word: str
    members: tuple[ast.Name, ...]
    span: Span

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(m.text for m in self.members)


def property_groups(
    properties: Iterable[ast.PropertyDecl], *, words: Sequence[str] = GROUPS
) -> list[Group]:
    """Groups of one member that stand on the properties themselves; a repeated one counts once."""
    return [
        Group(word=word, members=(p.name,), span=a.span)
        for p in properties
        for word in words
        if (a := annotation(p, word)) is not None
    ]


def body_groups(constraints: Iterable[ast.ConstraintDecl]) -> list[Group]:
    """Groups that stand as lines of a body."""
    return [
        Group(word=c.word.text, members=tuple(member_names(c)), span=c.span)
        for c in constraints
        if c.word.text in GROUPS
    ]


def member_names(constraint: ast.ConstraintDecl) -> list[ast.Name]:
    """Arguments that are property names."""
    return [n for a in constraint.arguments if (n := as_name(a)) is not None]


def as_name(argument: ast.ConstraintArgument) -> ast.Name | None:
    """The property name an argument is, if it is one. A property may be called ``true``."""
    if isinstance(argument, ast.Value) and argument.kind in ("word", "bool"):
        return ast.Name(text=argument.text, span=argument.span)
    return None


def edge_groups(edge: ast.EdgeDecl) -> list[Group]:
    """All groups of an edge type. An edge's key is only ever a body line."""
    own = property_groups(edge.properties, words=("unique", "index"))
    return own + body_groups(edge.constraints)


def node_groups(node: ast.NodeDecl) -> list[Group]:
    """The groups a node declares itself."""
    return property_groups(node.properties) + body_groups(node.constraints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Injected:
    """A property that an interface adds to a node."""

    interface: ast.Name
    """The name as the node wrote it."""
    property: ast.PropertyDecl


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedNode:
    """A node with everything its interfaces bring."""

    decl: ast.NodeDecl
    injected: tuple[Injected, ...]
    inherited_groups: tuple[Group, ...]

    @property
    def properties(self) -> tuple[ast.PropertyDecl, ...]:
        """Declared ones in order, then injected ones."""
        return self.decl.properties + tuple(i.property for i in self.injected)

    @property
    def groups(self) -> list[Group]:
        return node_groups(self.decl) + list(self.inherited_groups)


def expand(node: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl]) -> ExpandedNode:
    """Copy the properties of the implemented interfaces into a node.

    A property the node declares itself stays as it is, and the interface's constraints on it do not
    apply. Two interfaces may bring the same property: it is added once, and the constraints of both
    hold, because each interface declares its own.
    """
    own = {p.name.text for p in node.properties}
    injected: dict[str, Injected] = {}
    groups: dict[tuple[str, tuple[str, ...]], Group] = {}
    for name in node.implements:
        interface = interfaces.get(name.text)
        if interface is None:
            continue
        brought = [p for p in interface.properties if p.name.text not in own]
        for p in brought:
            injected.setdefault(p.name.text, Injected(interface=name, property=p))
        for group in property_groups(brought):
            groups.setdefault((group.word, group.names), group)
    return ExpandedNode(
        decl=node,
        injected=tuple(injected.values()),
        inherited_groups=tuple(groups.values()),
    )


def bound_value(bound: Fraction, scalar: Scalar) -> int | float | None:
    """A range bound as a value of the property's type, or None if it is none.

    On an integer property it must be exact. On a float property it means the nearest float of that
    width, which is also what the same digits in data become; only an infinite one is none.
    """
    if scalar in INTEGER_RANGES:
        low, high = INTEGER_RANGES[scalar]
        return int(bound) if bound.denominator == 1 and low <= bound <= high else None
    try:
        value = float(bound)
        if scalar is Scalar.F32:
            (value,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return None
    return value + 0.0  # No negative zero: a bound has one spelling.


# -- literals --------------------------------------------------------------------------------------
# A literal of the schema language as a value of a property's type.
#
#     `@backfill(0)` -> [literals] -> rules (is it one?), migration (which one?)
#
# Texts stand for texts, enum values, days and instants; numbers for numbers, exactly or rounded
# once as data would be. Lists, vectors and blobs have no literals.


Literal = str | int | float | bool
"""Days and instants as whole numbers since 1970: the values that Arrow stores."""


def literal_value(value: ast.Value, wanted: PropertyType) -> Literal | None:
    """The value that is meant, or None if the literal is none of this type."""
    if wanted.is_list or wanted.scalar in (Scalar.VECTOR, Scalar.BLOB):
        return None
    if value.kind == "bool":
        return value.text == "true" if wanted.scalar is Scalar.BOOL else None
    if value.kind == "number":
        numeric = wanted.scalar.is_numeric
        return bound_value(Fraction(value.text), wanted.scalar) if numeric else None
    if value.kind != "string":
        return None
    if wanted.enum_values is not None:
        return value.text if value.text in wanted.enum_values else None
    match wanted.scalar:
        case Scalar.STRING:
            return value.text
        case Scalar.DATE:
            return temporal.parse_day(value.text)
        case Scalar.DATETIME:
            return temporal.parse_instant(value.text)
        case _:
            return None


def literal_hint(wanted: PropertyType) -> str:
    """How a literal of this type is written."""
    if wanted.is_list or wanted.scalar in (Scalar.VECTOR, Scalar.BLOB):
        return f"`{wanted}` has no literals; name a property to copy, without quotes"
    if wanted.enum_values is not None:
        return f'write one of its values in quotes: "{wanted.enum_values[0]}"'
    examples = {
        Scalar.STRING: '"text"',
        Scalar.BOOL: "true",
        Scalar.DATE: '"2026-11-15"',
        Scalar.DATETIME: '"2026-11-15T10:00:00Z"',
        Scalar.F32: "0.5",
        Scalar.F64: "0.5",
    }
    return f"write for example `@backfill({examples.get(wanted.scalar, '0')})`"
