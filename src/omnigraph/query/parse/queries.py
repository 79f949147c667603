"""Whole texts: named queries with their parameters, or one body without a name.

state <- expressions <- clauses <- bodies <- [queries]
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import Diagnostic, QueryError
from omnigraph.lang.cursor import ParseFailure, Token, TokenKind
from omnigraph.lang.source import Source
from omnigraph.lang.suggest import closest, did_you_mean, misspelling_of
from omnigraph.query import ast
from omnigraph.query.codes import QueryFindings
from omnigraph.query.parse.bodies import Bodies
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.lexical import BODY_WORDS, FOREIGN_PARTS, QUERY_ANNOTATIONS

_ALONE = "a body without a name is the whole text; name it: `query name() { … }`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadQueries:
    """What could be read of a text."""

    file: ast.QueryFile
    """All queries that have a body; some of it may be missing."""
    intact: tuple[ast.QueryDecl, ...]
    """Those in which nothing is wrong: only they can be looked at further."""
    diagnostics: tuple[Diagnostic, ...]
    """Everything that cannot be read, in the order of the text."""


class Queries(Bodies):
    """Reads a text from its first token to its last."""

    def file(self) -> ReadQueries:
        queries: list[ast.QueryDecl] = []
        intact: list[ast.QueryDecl] = []
        if self.cursor.at_end and not self.findings.diagnostics:
            hint = "write `query name() { match { … } return { … } }`"
            here = self.cursor.here.span
            self.complain(SyntaxCode.EMPTY_TEXT, here, "the text holds no query", hint=hint)
        while not self.cursor.at_end:
            started, depth = self.cursor.index, self.depth
            before = self.mistakes_before(self.cursor.here.span.start)
            try:
                queries.append(self._entry(first=not queries))
                if self.mistakes_before(self.cursor.last_span.end) == before:
                    intact.append(queries[-1])
            except ParseFailure as failure:
                self.give_up(failure, depth)
                if self.cursor.index == started:
                    self.cursor.take()
                self.skip_to(self.at_query)
        return ReadQueries(
            file=ast.QueryFile(queries=tuple(queries)),
            intact=tuple(intact),
            diagnostics=self.findings.diagnostics,
        )

    def _entry(self, *, first: bool) -> ast.QueryDecl:
        token = self.cursor.here
        if self._at_header():
            return self._query(self.cursor.take())
        if token.kind is TokenKind.WORD and token.text in BODY_WORDS:
            if not first:
                message = f"unexpected {token}"
                self.complain(SyntaxCode.NO_QUERY, token.span, message, hint=_ALONE)
            return self._bare_body()
        hint = self.similar(("query", *BODY_WORDS))
        if token.kind is TokenKind.WORD:
            hint = FOREIGN_PARTS.get(token.text.lower(), hint)
        elif token.is_punct("@"):
            hint = "annotations stand behind the parameters of a query"
        elif token.is_punct("}"):
            hint = "this brace closes nothing"
        self.fail("`query`, `match` or a statement", code=SyntaxCode.NO_QUERY, hint=hint)

    def _at_header(self) -> bool:
        """`query`, or a word that nearly is it and that a name and parameters follow."""
        token = self.cursor.here
        if token.is_word("query"):
            return True
        parameters = self.cursor.peek(2).is_punct("(") or self.cursor.peek(2).is_punct("{")
        if token.kind is not TokenKind.WORD or not self.cursor.peek().is_identifier:
            return False
        if not parameters or token.text in BODY_WORDS or not misspelling_of(token.text, ["query"]):
            return False
        hint = did_you_mean(token.text, ["query"])
        self.complain(SyntaxCode.NO_QUERY, token.span, f"unexpected {token}", hint=hint)
        return True

    def _bare_body(self) -> ast.QueryDecl:
        body = self.body()
        if self.at_query():
            token = self.cursor.here
            self.complain(SyntaxCode.NO_QUERY, token.span, "unexpected `query`", hint=_ALONE)
        return ast.QueryDecl(name=None, params=(), annotations=(), body=body, span=body.span)

    # -- named queries ---------------------------------------------------------------------------

    def _query(self, word: Token) -> ast.QueryDecl:
        name = self.name("the name of the query")
        params: tuple[ast.ParamDefinition, ...] = ()
        annotations: tuple[ast.QueryAnnotation, ...] = ()
        depth = self.depth
        try:
            params = self._params(name)
            self.declared = frozenset(param.name.text for param in params)
            annotations = self._annotations()
            if not self.cursor.at_punct("{"):
                self.fail("`{` or an annotation")
        except ParseFailure as failure:
            self.give_up(failure, depth)
            self.skip_to(self._at_body_or_query)
        if not self.cursor.at_punct("{"):
            self.fail("`{`")
        body = self._braced_body(name)
        span = word.span.to(self.cursor.last_span)
        return ast.QueryDecl(
            name=name, params=params, annotations=annotations, body=body, span=span
        )

    def _at_body_or_query(self) -> bool:
        return self.cursor.at_punct("{") or self.at_query()

    def _braced_body(self, name: ast.Name) -> ast.Body:
        opener = self.cursor.take()
        if self.cursor.at_punct("}"):
            span = opener.span.to(self.cursor.here.span)
            message = f"the query `{name.text}` has no body"
            self.complain(
                SyntaxCode.EMPTY_BLOCK, span, message, expected="`match { … } return { … }`"
            )
        body = self.body()
        if not self.cursor.accept_punct("}"):
            self.not_closed(opener, f"query {name.text}(…)")
        return body

    def _params(self, name: ast.Name) -> tuple[ast.ParamDefinition, ...]:
        if self.cursor.at_punct("{") or self.cursor.at_punct("@"):
            hint = f"a query without parameters is written `query {name.text}() {{ … }}`"
            token = self.cursor.here
            message = f"unexpected {token}"
            self.complain(
                SyntaxCode.UNEXPECTED_TOKEN, token.span, message, expected="`(`", hint=hint
            )
            return ()
        self.cursor.expect_punct("(")
        return self.listed(self._param, ")")

    def _param(self) -> ast.ParamDefinition:
        name = self.variable("a parameter such as `$name: String`")
        self.cursor.expect_punct(":", hint=f"every parameter has a type: `${name.text}: String`")
        kind = self._param_type()
        return ast.ParamDefinition(name=name, type=kind, span=name.span.to(kind.span))

    def _param_type(self) -> ast.ParamType:
        start = self.cursor.here
        is_list = self.cursor.accept_punct("[") is not None
        if self.cursor.at_word("enum"):
            self.fail("a type", hint="a parameter for an enum is a `String`")
        if self.cursor.here.kind is not TokenKind.WORD:
            self.fail("a type such as `String`, `I64` or `Date`")
        base = self.cursor.take().name
        vector_size = None
        if is_list:
            if self.cursor.at_punct("?"):
                self.fail("`]`", hint=f"a list is nullable as a whole: `[{base.text}]?`")
            self.cursor.expect_punct("]", hint="a list holds plain scalars")
        elif base.text == "Vector":
            self.cursor.expect_punct("(", hint="a vector has a size: `Vector(8)`")
            vector_size = int(self.cursor.expect_kind(TokenKind.INT).text)
            self.cursor.expect_punct(")")
        nullable = self.cursor.accept_punct("?") is not None
        if self.cursor.at_punct("="):
            hint = "parameters have no default; a nullable one may be left out: `String?`"
            self.fail("`,` or `)`", hint=hint)
        return ast.ParamType(
            base=base,
            is_list=is_list,
            vector_size=vector_size,
            nullable=nullable,
            span=start.span.to(self.cursor.last_span),
        )

    # -- annotations -----------------------------------------------------------------------------

    def _annotations(self) -> tuple[ast.QueryAnnotation, ...]:
        found: list[ast.QueryAnnotation] = []
        while self.cursor.at_punct("@"):
            annotation = self._annotation(self.cursor.take())
            if any(a.name.text == annotation.name.text for a in found):
                message = f"a query has one `@{annotation.name.text}`"
                self.complain(SyntaxCode.REPEATED_PART, annotation.span, message)
            found.append(annotation)
        return tuple(found)

    def _annotation(self, at: Token) -> ast.QueryAnnotation:
        name = self.name("the name of an annotation")
        if name.text not in QUERY_ANNOTATIONS:
            meant = closest(name.text, QUERY_ANNOTATIONS)
            self.complain(
                SyntaxCode.QUERY_ANNOTATION,
                at.span.to(name.span),
                f"queries have no `@{name.text}`",
                expected=" or ".join(f"`@{word}`" for word in QUERY_ANNOTATIONS),
                hint=f"did you mean `@{meant}`?" if meant else None,
            )
            self._skip_arguments()
            return ast.QueryAnnotation(name=name, value="", span=at.span.to(self.cursor.last_span))
        self.cursor.expect_punct("(")
        text = self.cursor.here
        if text.kind is not TokenKind.STRING:
            self.fail(f'a string such as `@{name.text}("…")`', code=SyntaxCode.QUERY_ANNOTATION)
        self.cursor.take()
        self.cursor.expect_punct(")")
        span = at.span.to(self.cursor.last_span)
        return ast.QueryAnnotation(name=name, value=text.text, span=span)

    def _skip_arguments(self) -> None:
        if self.cursor.accept_punct("("):
            while not (self.cursor.at_end or self.cursor.at_punct("{")):
                if self.cursor.take().is_punct(")"):
                    break


# -- parser ----------------------------------------------------------------------------------------
# The way of a query text to its tree.
#
# source -> tokens -> [AST] -> check -> typed query


def parse_queries(source: Source) -> ast.QueryFile:
    """All queries of a text. Raises ``QueryError`` with everything that cannot be read."""
    found = read_queries(source)
    if found.diagnostics:
        raise QueryError(source.name, found.diagnostics)
    return found.file


def read_queries(source: Source) -> ReadQueries:
    """The same without raising: mistakes in one query do not hide the others."""
    return Queries(QueryFindings(source)).file()
