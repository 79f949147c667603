"""The canonical layout of a schema text; comments stay where they are.

.pg text -> AST -> [marks] -> pretty -> .pg text
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from omnigraph.lang.lexer import tokenize
from omnigraph.lang.pretty import TextMarks, pretty
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import Token, TokenKind
from omnigraph.schema import ast
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.parser import parse

_ENUM_KINDS = (TokenKind.WORD, TokenKind.DIGIT_WORD, TokenKind.INT)


def format_schema(text: str, name: str = "schema.pg") -> str:
    """The text in canonical layout. Raises ``SchemaError`` if it cannot be read."""
    source = Source(name=name, text=text)
    findings = SchemaFindings(source)
    schema, _ = parse(findings)
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
