"""Rules about names: declared once, known where used, not reserved (codes S1xx)."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.source import Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.resolve import ExpandedNode, annotation, property_type
from omnigraph.schema.words import RESERVED_EDGE_NAMES, RESERVED_NAMES


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
        # Its own type and annotation are judged at the interface.
        inherits_key = annotation(i.property, "key") is not None
        if i.property.name.text == "id" and inherits_key and key != [("id",)]:
            _report_id(node.decl.name, i.interface, findings)


def _is_string(prop: ast.PropertyDecl) -> bool:
    resolved = property_type(prop.type)
    return resolved is not None and str(resolved) == "String"


def _report_id(owner: ast.Name, at: ast.Name, findings: SchemaFindings) -> None:
    message = f"property `{owner}.id` is not the entity id"
    findings.add(SchemaCode.ID_PROPERTY, at.span, message, hint=_ID_HINT)
