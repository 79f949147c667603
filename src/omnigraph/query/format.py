"""The canonical layout of a query text; comments stay where they are.

    .gq text -> AST -> [marks] -> pretty -> .gq text

The AST says what the tokens are to the layout: where items start, which braces hold lists, what
touches what. The tokens themselves are printed as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, cast

from omnigraph.lang.cursor import Token
from omnigraph.lang.lexer import tokenize
from omnigraph.lang.pretty import TextMarks, pretty
from omnigraph.lang.source import Source, Span
from omnigraph.query import ast
from omnigraph.query.parse import parse_queries
from omnigraph.query.parse.lexical import READ_PARTS

_COMMAS = ", "


def format_queries(text: str, name: str = "query.gq") -> str:
    """The text in canonical layout. Raises ``QueryError`` if it cannot be read."""
    source = Source(name=name, text=text)
    queries = parse_queries(source)
    marker = _Marker(tokenize(source)[0])
    marker.visit(queries)
    return pretty(source, marker.marks(named=queries.queries[0].name is not None))


class _Marker:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.index = {token.span.start: i for i, token in enumerate(tokens)}
        self.items: set[int] = set()
        self.separators: dict[int, str] = {}
        self.glued: set[int] = set()
        self.plain: set[int] = set()
        self.annotations: set[int] = set()
        self.ors: set[int] = set()
        self.ands: set[int] = set()

    def marks(self, *, named: bool) -> TextMarks:
        return TextMarks(
            items=frozenset(self.items),
            separators=self.separators,
            glued=frozenset(self.glued),
            plain=frozenset(self.plain),
            breaks=(frozenset(self.annotations), frozenset(self.ors), frozenset(self.ands)),
            declarations=named,
        )

    def visit(self, node: object) -> None:
        """Mark what this node says about its tokens, then its parts."""
        match node:
            case ast.QueryDecl(name=ast.Name() as name):
                self._query(node, name)
            case ast.ReadBody():
                self._read(node)
            case ast.InsertStatement() | ast.UpdateStatement() | ast.Binding():
                self._item(node.span)
                self._assignments(node)
            case ast.Traversal():
                self._item(node.span)
                self._traversal(node)
            case ast.DeleteStatement() | ast.FilterClause() | ast.Negation() | ast.OptionalBlock():
                self._item(node.span)
            case ast.Projection() | ast.Ordering() | ast.PropertyMatch():
                self._item(node.span)
            case ast.QueryAnnotation():
                self.annotations.add(node.span.start)
                self._glue(self._at(node.name.span) + 1)
            case ast.ParamType(vector_size=int()):
                self._glue(self._at(node.base.span) + 1)
            case ast.Call() | ast.DateLiteral() | ast.DateTimeLiteral():
                self._glue(self._at(node.span) + 1)
            case ast.AndExpr():
                self._connectives(node.operands, "and", self.ands)
            case ast.OrExpr():
                self._connectives(node.operands, "or", self.ors)
            case _:
                pass
        for part in _parts(node):
            self.visit(part)

    def _query(self, query: ast.QueryDecl, name: ast.Name) -> None:
        self._item(query.span)
        self._glue(self._at(name.span) + 1)
        self.separators[self.tokens[self._at(query.body.span) - 1].span.start] = " "

    def _read(self, read: ast.ReadBody) -> None:
        """The words of the parts are no nodes of the tree; they stand outside all its braces."""
        depth = 0
        part = ""
        at = self._at(read.span)
        while self.tokens[at].span.start < read.span.end:
            token = self.tokens[at]
            if depth == 0 and token.text in READ_PARTS:
                part = token.text
                self.items.add(token.span.start)
            elif depth == 0 and token.is_punct("{") and part != "match":
                self.separators[token.span.start] = _COMMAS
            depth += token.is_punct("{") - token.is_punct("}")
            at += 1

    def _assignments(self, node: ast.InsertStatement | ast.UpdateStatement | ast.Binding) -> None:
        opener = self._at(node.type_name.span) + (2 if isinstance(node, ast.UpdateStatement) else 1)
        if self.tokens[opener].is_punct("{"):
            self.separators[self.tokens[opener].span.start] = _COMMAS

    def _traversal(self, traversal: ast.Traversal) -> None:
        word = self._at(traversal.word.span)
        if traversal.undirected:
            self._glue(word)
            self._glue(word + 1)
        if traversal.edge_variable is not None:
            self._glue(self._at(traversal.edge_variable.span) + 2)
        if traversal.bounds is not None:
            at = self._at(traversal.bounds.span)
            self.plain.add(traversal.bounds.span.start)
            while self.tokens[at].span.start < traversal.bounds.span.end:
                self._glue(at)
                at += 1

    def _connectives(self, operands: tuple[ast.Expr, ...], word: str, found: set[int]) -> None:
        for operand in operands[1:]:
            at = self._at(operand.span) - 1
            while not self.tokens[at].is_word(word):
                at -= 1  # Only opening parentheses stand between the word and its operand.
            found.add(self.tokens[at].span.start)

    def _item(self, span: Span) -> None:
        self.items.add(span.start)

    def _glue(self, index: int) -> None:
        self.glued.add(self.tokens[index].span.start)

    def _at(self, span: Span) -> int:
        return self.index[span.start]


def _parts(node: object) -> Iterator[object]:
    """The nodes directly below this one."""
    if not is_dataclass(node) or isinstance(node, Span | ast.Name):
        return
    for field in fields(node):
        value: Any = getattr(node, field.name)
        if isinstance(value, tuple):
            yield from cast(tuple[object, ...], value)
        else:
            yield value
