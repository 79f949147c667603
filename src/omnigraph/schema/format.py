"""The canonical layout of a schema text; comments stay where they are.

.pg text -> AST -> [marks] -> pretty -> .pg text
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import pairwise

from omnigraph.lang.cursor import Token, TokenKind
from omnigraph.lang.lexer import tokenize
from omnigraph.lang.pretty import TextMarks, pretty
from omnigraph.lang.source import Source
from omnigraph.schema import ast
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
from omnigraph.schema.codes import SchemaFindings
from omnigraph.schema.parser import parse

_ENUM_KINDS = (TokenKind.WORD, TokenKind.DIGIT_WORD, TokenKind.INT)


def format_schema(text: str, name: str = "schema.pg") -> str:
    """The text in canonical layout. Raises ``SchemaError`` if it cannot be read."""
    return _formatted(Source(name=name, text=text), accepted=False)


def _formatted(source: Source, *, accepted: bool) -> str:
    findings = SchemaFindings(source)
    schema, _ = parse(findings, accepted=accepted)
    findings.raise_if_any()
    return pretty(source, _marks(schema, tokenize(source)[0]))


def _marks(schema: ast.SchemaDecl, tokens: list[Token]) -> TextMarks:
    index = {token.span.start: i for i, token in enumerate(tokens)}
    items: set[int] = set()
    breaks: set[int] = set()
    for declared in (*schema.interfaces, *schema.nodes, *schema.edges):
        # The keyword stands directly before the name.
        items.add(tokens[index[declared.name.span.start] - 1].span.start)
        for property_ in declared.properties:
            items.add(property_.name.span.start)
            breaks |= _starts(property_.annotations)
        if isinstance(declared, ast.InterfaceDecl):
            continue
        items |= _starts(declared.constraints)
        breaks |= _starts(declared.annotations)
        if isinstance(declared, ast.EdgeDecl) and declared.card is not None:
            breaks.add(declared.card.span.start)
        if isinstance(declared, ast.NodeDecl) and declared.implements:
            breaks.add(tokens[index[declared.implements[0].span.start] - 1].span.start)
    return TextMarks(
        items=frozenset(items),
        separators={},
        glued=frozenset(_glued(tokens)),
        plain=frozenset(),
        breaks=(frozenset(breaks),),
        declarations=True,
    )


def _starts(declared: Iterable[ast.AnnotationDecl | ast.ConstraintDecl]) -> set[int]:
    return {one.span.start for one in declared}


def _glued(tokens: list[Token]) -> set[int]:
    """Arguments touch their word; so do the parts of an enum value such as `in-progress`."""
    found = {token.span.start for token in tokens if token.is_punct("(")}
    for one, other in pairwise(tokens):
        touching = one.span.end == other.span.start
        if touching and _in_enum_value(one) and _in_enum_value(other):
            found.add(other.span.start)
    return found


def _in_enum_value(token: Token) -> bool:
    return token.kind in _ENUM_KINDS or token.is_punct("-")


# -- render ----------------------------------------------------------------------------------------
# A catalog as schema text: for a schema that no one has written, such as a merged one.
#
#     catalog -> [render] -> .pg text
#
# What an interface brings is declared in its nodes, with the rules that hold there, so the text
# means the same types whatever it was made from. Comments and hints are nowhere in a catalog.


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def render(catalog: Catalog) -> str:
    """The text, in canonical layout."""
    parts = [_interface(i) for i in catalog.interfaces.values()]
    parts += [_node(n) for n in catalog.nodes.values()]
    parts += [_edge(e) for e in catalog.edges.values()]
    return _formatted(Source(name="schema.pg", text="\n".join(parts) + "\n"), accepted=True)


def render_type(graph_type: GraphType) -> str:
    """The text of one type, for readers: a rule on one property stands behind it."""
    text = _node(graph_type, inline=True) if isinstance(graph_type, NodeType) else ""
    text = _edge(graph_type, inline=True) if isinstance(graph_type, EdgeType) else text
    return _formatted(Source(name="schema.pg", text=text + "\n"), accepted=True)


def _interface(interface: InterfaceType) -> str:
    return f"interface {interface.name} {{\n{_lines(map(_property, interface.properties))}\n}}"


def _node(node: NodeType, *, inline: bool = False) -> str:
    implements = f" implements {', '.join(node.implements)}" if node.implements else ""
    body = [*_members(node, inline=inline)]
    for bounds in node.ranges:
        low, high = (_number(b) for b in (bounds.low, bounds.high))
        body.append(f"@range({bounds.property_name}, {low}..{high})")
    body += [f"@check({c.property_name}, {_quoted(c.pattern)})" for c in node.checks]
    return f"node {node.name}{_header(node)}{implements} {{\n{_lines(body)}\n}}"


def _edge(edge: EdgeType, *, inline: bool = False) -> str:
    low, high = edge.cardinality.low, edge.cardinality.high
    bounded = edge.cardinality != Cardinality()
    card = f" @card({low}..{'' if high is None else high})" if bounded else ""
    head = f"edge {edge.name}: {edge.source} -> {edge.target}{card}{_header(edge)}"
    body = [*_members(edge, inline=inline)]
    return f"{head} {{\n{_lines(body)}\n}}" if body else head


def _members(graph_type: GraphType, *, inline: bool) -> Iterator[str]:
    """Properties, then what holds for groups of them; ``inline``, groups of one stand behind it."""
    marks: dict[str, list[str]] = {p.name: [] for p in graph_type.properties}
    lines: list[str] = []
    for word, members in _groups(graph_type):
        if inline and len(members) == 1 and members[0] in marks:
            marks[members[0]].append(f" @{word}")
        else:
            lines.append(f"@{word}({', '.join(members)})")
    yield from (_property(p) + "".join(marks[p.name]) for p in graph_type.properties)
    yield from lines


def _groups(graph_type: GraphType) -> Iterator[tuple[str, tuple[str, ...]]]:
    is_keyed_edge = isinstance(graph_type, EdgeType) and graph_type.keyed
    members = (*(("@src", "@dst") if is_keyed_edge else ()), *graph_type.key)
    if members:
        yield "key", members
    yield from (("unique", group) for group in graph_type.unique)
    # A key is an index on each of its members.
    keys = {(name,) for name in graph_type.key}
    yield from (("index", group) for group in graph_type.indexes if group not in keys)


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
