"""Rules about names (codes S1xx) and about the types of properties (codes S2xx)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from omnigraph.lang.source import Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.codes import SchemaCode, SchemaFindings
from omnigraph.schema.resolve import ExpandedNode, annotation, embed_of, property_type
from omnigraph.schema.words import (
    BASE_TYPES,
    RESERVED_EDGE_NAMES,
    RESERVED_NAMES,
    TYPE_ALIASES,
    TYPE_SHAPES,
    TYPE_WORDS,
    VECTOR_SIZE_MAX,
)


def check_declares_something(schema: ast.SchemaDecl, findings: SchemaFindings) -> None:
    """A graph without types could never hold anything: the wrong file, most likely."""
    if not (schema.interfaces or schema.nodes or schema.edges):
        end = len(findings.source.text)
        findings.add(
            SchemaCode.EMPTY_SCHEMA,
            Span(start=end, end=end),
            "a schema needs at least one type",
            hint="declare one, for example `node Person { name: String @key }`",
        )


def check_declared_once(schema: ast.SchemaDecl, findings: SchemaFindings) -> None:
    """Interfaces, nodes and edges are three name spaces; edges are compared without case."""
    spaces: list[tuple[str, SchemaCode, Iterable[ast.Declaration]]] = [
        ("interface", SchemaCode.DUPLICATE_INTERFACE, schema.interfaces),
        ("node type", SchemaCode.DUPLICATE_NODE, schema.nodes),
        ("edge type", SchemaCode.DUPLICATE_EDGE, schema.edges),
    ]
    for what, code, declarations in spaces:
        seen: set[str] = set()
        for d in declarations:
            if d.name.text in seen:
                findings.add(code, d.name.span, f"{what} `{d.name}` is declared twice")
            seen.add(d.name.text)
    folded: dict[str, str] = {}
    for edge in schema.edges:
        first = folded.setdefault(edge.name.text.lower(), edge.name.text)
        if first != edge.name.text:
            findings.add(
                SchemaCode.EDGE_CASE_COLLISION,
                edge.name.span,
                f"edge type `{edge.name}` collides with `{first}`",
                hint="queries find edges without regard to upper and lower case",
            )


def check_properties(owner: ast.Declaration, findings: SchemaFindings) -> None:
    """No name twice, no reserved name."""
    seen: set[str] = set()
    for p in owner.properties:
        name = p.name
        if name.text in seen:
            message = f"property `{owner.name}.{name}` is declared twice"
            findings.add(SchemaCode.DUPLICATE_PROPERTY, name.span, message)
        seen.add(name.text)
        if name.text in RESERVED_NAMES:
            message = f"property name `{name}` is reserved"
            findings.add(SchemaCode.RESERVED_NAME, name.span, message, hint="choose another name")
        if isinstance(owner, ast.EdgeDecl) and name.text in RESERVED_EDGE_NAMES:
            findings.add(
                SchemaCode.RESERVED_EDGE_NAME,
                name.span,
                f"property name `{name}` is reserved on edges",
                hint="every edge has an id, a source and a target already; choose another name",
            )


def check_endpoints(schema: ast.SchemaDecl, findings: SchemaFindings) -> None:
    """Edges run between declared node types."""
    nodes = {n.name.text for n in schema.nodes}
    for edge in schema.edges:
        for end in (edge.source, edge.target):
            if end.text not in nodes:
                message = f"unknown node type `{end}` in edge `{edge.name}`"
                hint = did_you_mean(end.text, nodes)
                findings.add(SchemaCode.UNKNOWN_ENDPOINT, end.span, message, hint=hint)


def check_implements(
    node: ast.NodeDecl, interfaces: Iterable[ast.InterfaceDecl], findings: SchemaFindings
) -> None:
    """A node names declared interfaces, each once."""
    known = {i.name.text for i in interfaces}
    seen: set[str] = set()
    for name in node.implements:
        if name.text in seen:
            message = f"node `{node.name}` implements `{name}` twice"
            findings.add(SchemaCode.REPEATED_INTERFACE, name.span, message)
        elif name.text not in known:
            message = f"unknown interface `{name}`"
            hint = did_you_mean(name.text, known)
            findings.add(SchemaCode.UNKNOWN_INTERFACE, name.span, message, hint=hint)
        seen.add(name.text)


_ID_HINT = "write `id: String @key` as the only key member, or choose another name"


def check_id_of_interface(interface: ast.InterfaceDecl, findings: SchemaFindings) -> None:
    """A property called id in an interface must be able to be the id of a node."""
    for p in interface.properties:
        if p.name.text == "id" and not (_is_string(p) and annotation(p, "key")):
            _report_id(interface.name, p.name, findings)


def check_id_of_node(node: ExpandedNode, findings: SchemaFindings) -> None:
    """A property called id *is* the entity id, so it must be a String and the whole key."""
    key = [g.names for g in node.groups if g.word == "key"]
    for p in node.decl.properties:
        if p.name.text == "id" and not (_is_string(p) and key == [("id",)]):
            _report_id(node.decl.name, p.name, findings)
    for i in node.injected:
        # Its own type and annotation are checked at the interface.
        inherits_key = annotation(i.property, "key") is not None
        if i.property.name.text == "id" and inherits_key and key != [("id",)]:
            _report_id(node.decl.name, i.interface, findings)


def _is_string(prop: ast.PropertyDecl) -> bool:
    resolved = property_type(prop.type)
    return resolved is not None and str(resolved) == "String"


def _report_id(owner: ast.Name, at: ast.Name, findings: SchemaFindings) -> None:
    message = f"property `{owner}.id` is not the entity id"
    findings.add(SchemaCode.ID_PROPERTY, at.span, message, hint=_ID_HINT)


# -- types -----------------------------------------------------------------------------------------
# Rules about types of properties, and their agreement with interfaces (codes S2xx).


def check_type(ref: ast.TypeRef, findings: SchemaFindings) -> None:
    """The type exists and has a sensible shape."""
    if ref.form == "enum":
        seen: set[str] = set()
        for value in ref.enum_values:
            if value.text in seen:
                message = f"enum value `{value}` is listed twice"
                findings.add(SchemaCode.DUPLICATE_ENUM_VALUE, value.span, message)
            seen.add(value.text)
    elif ref.form == "vector":
        if not 1 <= ref.size <= VECTOR_SIZE_MAX:
            message = f"a vector cannot have {ref.size} elements"
            expected = f"a size from 1 to {VECTOR_SIZE_MAX}"
            findings.add(SchemaCode.VECTOR_SIZE, ref.span, message, expected=expected)
    elif ref.base.text not in BASE_TYPES:
        message = f"unknown type `{ref.base}`"
        findings.add(SchemaCode.UNKNOWN_TYPE, ref.base.span, message, hint=_unknown_type_hint(ref))
    elif ref.form == "list" and ref.base.text == "Blob":
        message = "a list cannot hold blobs"
        findings.add(SchemaCode.LIST_ELEMENT, ref.span, message, expected="a scalar type")


def _unknown_type_hint(ref: ast.TypeRef) -> str:
    word = ref.base.text.lower()
    if word in TYPE_SHAPES:
        spelling, example = TYPE_SHAPES[word]
        return f"did you mean `{spelling}{ref.arguments or example}`?"
    if word in TYPE_ALIASES:
        return f"use {TYPE_ALIASES[word]}"
    shapes = [spelling + example for spelling, example in TYPE_SHAPES.values()]
    listed = ", ".join(f"`{t}`" for t in (*BASE_TYPES, *shapes))
    return did_you_mean(ref.base.text, TYPE_WORDS) or f"the types are {listed}, and lists `[I32]`"


def check_interface_types(
    node: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl], findings: SchemaFindings
) -> None:
    """A node's own property, or an earlier interface's, has the type that an interface wants."""
    own = {p.name.text: p for p in node.properties}
    brought: dict[str, tuple[ast.Name, ast.PropertyDecl]] = {}
    for name in node.implements:
        interface = interfaces.get(name.text)
        for wanted in interface.properties if interface else ():
            word = wanted.name.text
            if word in own:
                _compare_with_own(own[word], wanted, name, findings)
                continue
            first, earlier = brought.setdefault(word, (name, wanted))
            if _differ(earlier, wanted) or embed_of(earlier) != embed_of(wanted):
                message = f"interfaces `{first}` and `{name}` declare `{word}` differently"
                hint = "give both the same type, or rename one of the properties"
                findings.add(SchemaCode.INTERFACES_DISAGREE, name.span, message, hint=hint)


def _compare_with_own(
    own: ast.PropertyDecl, wanted: ast.PropertyDecl, interface: ast.Name, findings: SchemaFindings
) -> None:
    if _differ(own, wanted):
        message = f"property `{own.name}` does not have the type interface `{interface}` wants"
        expected = f"`{property_type(wanted.type)}`"
        findings.add(SchemaCode.INTERFACE_TYPE_MISMATCH, own.type.span, message, expected=expected)


def _differ(one: ast.PropertyDecl, other: ast.PropertyDecl) -> bool:
    a, b = property_type(one.type), property_type(other.type)
    # A type that does not exist has been reported where it is written.
    return a is not None and b is not None and a != b
