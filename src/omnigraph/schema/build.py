"""A checked AST to a catalog with stable numbers.

    AST -> check -> [build] -> catalog

Numbers are handed out by a ``Numbering`` in a fixed order: interfaces, nodes, edges, each in order
of declaration; for each its own number, the incarnation of its table, then its properties. A
numbering that looks names up in an accepted catalog can take the place of the one for new graphs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from omnigraph.errors import InternalError
from omnigraph.schema import ast
from omnigraph.schema.catalog import (
    Annotation,
    Backfill,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    EntityKind,
    InterfaceType,
    NodeType,
    Property,
    PropertyType,
    Range,
)
from omnigraph.schema.resolve import (
    Group,
    as_name,
    bound_value,
    edge_groups,
    embed_of,
    expand,
    property_type,
)
from omnigraph.schema.words import ANNOTATIONS

FIRST_ID = 1


class Numbering(Protocol):
    """Decides which stable number a declaration has."""

    def interface_id(self, decl: ast.InterfaceDecl) -> int:
        """Number of an interface."""
        ...

    def type_ids(self, kind: EntityKind, decl: ast.NodeDecl | ast.EdgeDecl) -> tuple[int, int]:
        """Number of a type and of the present life of its table."""
        ...

    def property_id(self, owner_id: int, decl: ast.PropertyDecl) -> int:
        """Number of a property of that owner."""
        ...

    def backfill(self, property_id: int) -> Backfill | None:
        """What rows got that were there before a property."""
        ...

    @property
    def next_id(self) -> int:
        """The first number that is still free."""
        ...


class FreshNumbering:
    """Everything is new: numbers in the order of asking. Rename hints have nothing to refer to."""

    def __init__(self, next_id: int = FIRST_ID) -> None:
        self._next_id = next_id

    @property
    def next_id(self) -> int:
        return self._next_id

    def _take(self) -> int:
        taken = self._next_id
        self._next_id += 1
        return taken

    def interface_id(self, decl: ast.InterfaceDecl) -> int:
        return self._take()

    def type_ids(self, kind: EntityKind, decl: ast.NodeDecl | ast.EdgeDecl) -> tuple[int, int]:
        return self._take(), self._take()

    def property_id(self, owner_id: int, decl: ast.PropertyDecl) -> int:
        return self._take()

    def backfill(self, property_id: int) -> Backfill | None:
        return None


def build(schema: ast.SchemaDecl, numbering: Numbering) -> Catalog:
    """The catalog of a schema without findings."""
    declared = {i.name.text: i for i in schema.interfaces}
    interfaces = {i.name.text: _interface(i, numbering) for i in schema.interfaces}
    nodes = {n.name.text: _node(n, declared, numbering) for n in schema.nodes}
    edges = {e.name.text: _edge(e, numbering) for e in schema.edges}
    return Catalog(interfaces=interfaces, nodes=nodes, edges=edges, next_id=numbering.next_id)


def _interface(decl: ast.InterfaceDecl, numbering: Numbering) -> InterfaceType:
    number = numbering.interface_id(decl)
    properties = _properties(number, decl.properties, numbering)
    return InterfaceType(id=number, name=decl.name.text, properties=properties)


def _node(
    decl: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl], numbering: Numbering
) -> NodeType:
    expanded = expand(decl, interfaces)
    number, incarnation = numbering.type_ids("node", decl)
    properties = _properties(number, expanded.properties, numbering)
    types = {p.name: p.type for p in properties}
    return NodeType(
        id=number,
        incarnation=incarnation,
        **_common(decl, properties, expanded.groups),
        implements=tuple(n.text for n in decl.implements),
        ranges=tuple(_range(c, types) for c in decl.constraints if c.word.text == "range"),
        checks=tuple(_check(c) for c in decl.constraints if c.word.text == "check"),
    )


def _edge(decl: ast.EdgeDecl, numbering: Numbering) -> EdgeType:
    number, incarnation = numbering.type_ids("edge", decl)
    properties = _properties(number, decl.properties, numbering)
    groups = edge_groups(decl)
    card = decl.card
    return EdgeType(
        id=number,
        incarnation=incarnation,
        **_common(decl, properties, groups),
        source=decl.source.text,
        target=decl.target.text,
        cardinality=Cardinality(low=card.low, high=card.high) if card else Cardinality(),
        keyed=any(g.word == "key" for g in groups),
    )


def _common(
    decl: ast.NodeDecl | ast.EdgeDecl, properties: tuple[Property, ...], groups: Sequence[Group]
) -> dict[str, Any]:
    """What node and edge types are both made of."""
    return {
        "name": decl.name.text,
        "properties": properties,
        "key": _key(groups, properties),
        "unique": tuple(dict.fromkeys(g.names for g in groups if g.word == "unique")),
        "indexes": _indexes(groups),
        "description": _text(decl.annotations, "description"),
        "instruction": _text(decl.annotations, "instruction"),
        "annotations": _kept(decl.annotations),
    }


def _properties(
    owner_id: int, declared: Iterable[ast.PropertyDecl], numbering: Numbering
) -> tuple[Property, ...]:
    return tuple(
        Property(
            id=(number := numbering.property_id(owner_id, p)),
            name=p.name.text,
            type=_type(p.type),
            description=_text(p.annotations, "description"),
            embed=embed_of(p),
            annotations=_kept(p.annotations),
            backfill=numbering.backfill(number),
        )
        for p in declared
    )


def _type(ref: ast.TypeRef) -> PropertyType:
    resolved = property_type(ref)
    if resolved is None:
        raise InternalError(f"type {ref.base} passed the check but does not exist")
    return resolved


def _text(annotations: Iterable[ast.AnnotationDecl], word: str) -> str | None:
    return next((a.value.text for a in annotations if a.name.text == word and a.value), None)


def _kept(annotations: Iterable[ast.AnnotationDecl]) -> tuple[Annotation, ...]:
    return tuple(
        Annotation(
            name=a.name.text,
            value=a.value.text if a.value else None,
            arguments=tuple((name.text, value.text) for name, value in a.arguments),
        )
        for a in annotations
        if a.name.text not in ANNOTATIONS
    )


def _key(groups: Iterable[Group], properties: Iterable[Property]) -> tuple[str, ...]:
    """Members by stable number, so that renaming or reordering them never changes an id."""
    members = {name for g in groups if g.word == "key" for name in g.names}
    return tuple(p.name for p in sorted(properties, key=lambda p: p.id) if p.name in members)


def _indexes(groups: Iterable[Group]) -> tuple[tuple[str, ...], ...]:
    """Declared groups; a key stands for one group per member. The endpoints need no mention."""
    found: dict[tuple[str, ...], None] = {}
    for g in groups:
        if g.word == "index":
            found[g.names] = None
        elif g.word == "key":
            found.update(dict.fromkeys((name,) for name in g.names))
    return tuple(found)


def _range(decl: ast.ConstraintDecl, types: Mapping[str, PropertyType]) -> Range:
    name, bounds = as_name(decl.arguments[0]), decl.arguments[1]
    if name is None or not isinstance(bounds, ast.RangeValue):
        raise InternalError("@range passed the check with wrong arguments")
    scalar = types[name.text].scalar
    low, high = (None if b is None else bound_value(b, scalar) for b in (bounds.low, bounds.high))
    return Range(property_name=name.text, low=low, high=high)


def _check(decl: ast.ConstraintDecl) -> Check:
    name, pattern = as_name(decl.arguments[0]), decl.arguments[1]
    if name is None or not isinstance(pattern, ast.Value):
        raise InternalError("@check passed the check with wrong arguments")
    return Check(property_name=name.text, pattern=pattern.text)
