"""A catalog as schema text: for a schema that no one has written, such as a merged one.

    catalog -> [render] -> .pg text

What an interface brings is declared in its nodes, with the rules that hold there, so the text means
the same types whatever it was made from. Comments and hints are nowhere in a catalog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    EdgeType,
    GraphType,
    InterfaceType,
    NodeType,
    Property,
)
from omnigraph.schema.format import format_schema

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def render(catalog: Catalog) -> str:
    """The text, in canonical layout."""
    parts = [_interface(i) for i in catalog.interfaces.values()]
    parts += [_node(n) for n in catalog.nodes.values()]
    parts += [_edge(e) for e in catalog.edges.values()]
    return format_schema("\n".join(parts) + "\n")


def _interface(interface: InterfaceType) -> str:
    return f"interface {interface.name} {{\n{_lines(map(_property, interface.properties))}\n}}"


def _node(node: NodeType) -> str:
    implements = f" implements {', '.join(node.implements)}" if node.implements else ""
    body = [*map(_property, node.properties), *_groups(node)]
    for bounds in node.ranges:
        low, high = (_number(b) for b in (bounds.low, bounds.high))
        body.append(f"@range({bounds.property_name}, {low}..{high})")
    body += [f"@check({c.property_name}, {_quoted(c.pattern)})" for c in node.checks]
    return f"node {node.name}{_header(node)}{implements} {{\n{_lines(body)}\n}}"


def _edge(edge: EdgeType) -> str:
    low, high = edge.cardinality.low, edge.cardinality.high
    bounded = edge.cardinality != Cardinality()
    card = f" @card({low}..{'' if high is None else high})" if bounded else ""
    head = f"edge {edge.name}: {edge.source} -> {edge.target}{card}{_header(edge)}"
    body = [*map(_property, edge.properties), *_groups(edge)]
    return f"{head} {{\n{_lines(body)}\n}}" if body else head


def _groups(graph_type: GraphType) -> Iterator[str]:
    is_keyed_edge = isinstance(graph_type, EdgeType) and graph_type.keyed
    members = [*(("@src", "@dst") if is_keyed_edge else ()), *graph_type.key]
    if members:
        yield f"@key({', '.join(members)})"
    yield from (f"@unique({', '.join(group)})" for group in graph_type.unique)
    # A key is an index on each of its members.
    keys = {(name,) for name in graph_type.key}
    yield from (f"@index({', '.join(g)})" for g in graph_type.indexes if g not in keys)


def _property(prop: Property) -> str:
    parts = [f"{prop.name}: {prop.type}"]
    if prop.embed is not None:
        model = f", model = {_quoted(prop.embed.model)}" if prop.embed.model else ""
        parts.append(f"@embed({_quoted(prop.embed.source)}{model})")
    if prop.description is not None:
        parts.append(f"@description({_quoted(prop.description)})")
    return " ".join([*parts, *map(_annotation, prop.annotations)])


def _header(graph_type: GraphType) -> str:
    parts = [
        f"@{word}({_quoted(text)})"
        for word, text in (
            ("description", graph_type.description),
            ("instruction", graph_type.instruction),
        )
        if text is not None
    ]
    return "".join(f" {part}" for part in [*parts, *map(_annotation, graph_type.annotations)])


def _annotation(annotation: Annotation) -> str:
    if annotation.value is None:
        return f"@{annotation.name}"
    named = [f"{name} = {_quoted(value)}" for name, value in annotation.arguments]
    return f"@{annotation.name}({', '.join([_quoted(annotation.value), *named])})"


def _lines(parts: Iterable[str]) -> str:
    return "\n".join(f"  {part}" for part in parts)


def _quoted(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _number(bound: float | None) -> str:
    if bound is None:
        return ""
    # The language knows no exponents.
    return str(bound) if isinstance(bound, int) else format(Decimal(repr(bound)), "f")
