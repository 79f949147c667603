"""The body of a query: the parts of a read, or the statements of a mutation.

    state <- expressions <- clauses <- [bodies] <- queries

All parts are taken as they come and put in order afterwards, so that a part in the wrong place is
one clear complaint and the rest of the body is read all the same.
"""

from __future__ import annotations

from omnigraph.lang.cursor import ParseFailure, Token, TokenKind
from omnigraph.lang.source import Span
from omnigraph.query import ast
from omnigraph.query.parse.clauses import Clauses
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.lexical import BODY_WORDS, FOREIGN_PARTS, READ_PARTS, STATEMENTS
from omnigraph.query.parse.state import Commas

_RANK = {"match": 0, "return": 1, "order": 2, "limit": 3, "offset": 3}


class _Draft:
    """A body while it is read."""

    def __init__(self, start: Span) -> None:
        self.start = start
        self.clauses: tuple[ast.Clause, ...] = ()
        self.projections: tuple[ast.Projection, ...] = ()
        self.distinct = False
        self.order: tuple[ast.Ordering, ...] = ()
        self.counts: dict[str, ast.Expr] = {}
        self.statements: list[ast.Statement] = []
        self.parts: list[str] = []
        """Words of the parts and statements seen so far."""
        self.mixed = False
        self.complete = True
        """Whether all of it was parts that the language knows."""

    @property
    def reads(self) -> bool:
        return bool(self.parts) and self.parts[0] in READ_PARTS


class Bodies(Clauses):
    """Reads what stands between the braces of a query."""

    def body(self) -> ast.Body:
        """Everything up to the closing brace."""
        draft = _Draft(self.cursor.here.span)
        while not self._at_body_end():
            started, depth = self.cursor.index, self.depth
            try:
                self._part(draft)
            except ParseFailure as failure:
                self.give_up(failure, depth)
                if self.cursor.index == started:
                    self.cursor.take()
                self.skip_part()
        return self._finished(draft)

    def _at_body_end(self) -> bool:
        if self.cursor.at_punct("}"):
            return not self._at_stray_brace()
        return self.cursor.at_end or self.at_query()

    def _at_stray_brace(self) -> bool:
        """Whether the body goes on behind a brace that seems to close it."""
        word, following = self.cursor.peek(1), self.cursor.peek(2)
        if word.kind is not TokenKind.WORD or word.text not in READ_PARTS[1:]:
            return False
        return following.is_punct("{") or following.kind in (TokenKind.INT, TokenKind.VARIABLE)

    def _part(self, draft: _Draft) -> None:
        token = self.cursor.here
        if token.kind is TokenKind.WORD and token.text in READ_PARTS:
            self._read_part(draft, self.cursor.take())
        elif token.kind is TokenKind.WORD and token.text in STATEMENTS:
            self._refuse_mixture(draft, token, reads=False)
            draft.statements.append(self._statement(self.cursor.take()))
        elif token.is_word("where"):
            self._refused_where(draft)
        elif token.is_punct("}"):
            self.cursor.take()
            hint = "this brace closes nothing"
            self.complain(SyntaxCode.UNEXPECTED_TOKEN, token.span, "unexpected `}`", hint=hint)
        else:
            self._unknown_part(draft)

    def _unknown_part(self, draft: _Draft) -> None:
        token = self.cursor.here
        draft.complete = False
        if not draft.parts:
            expected = "`match`, `insert`, `upsert`, `update` or `delete`"
        elif draft.reads:
            left = [f"`{word}`" for word in READ_PARTS[1:] if word not in draft.parts]
            expected = ", ".join([*left, "or the end of the query"])
        else:
            expected = "`insert`, `upsert`, `update`, `delete` or the end of the query"
        foreign = FOREIGN_PARTS.get(token.text.lower()) if token.kind is TokenKind.WORD else None
        self.fail(expected, hint=foreign or self.similar(BODY_WORDS))

    def _refuse_mixture(self, draft: _Draft, token: Token, *, reads: bool) -> None:
        if draft.parts and draft.reads != reads and not draft.mixed:
            draft.mixed = True
            hint = "make two queries of it"
            message = f"unexpected {token}: a query either reads or changes data"
            self.complain(SyntaxCode.MIXED_BODY, token.span, message, hint=hint)
        draft.parts.append(token.text)

    def _refused_where(self, draft: _Draft) -> None:
        token = self.cursor.take()
        hint = "put the condition into `match { … }`"
        if draft.statements:
            hint = "only `update` and `delete` have a condition"
        self.complain(SyntaxCode.WHERE_MISPLACED, token.span, "unexpected `where`", hint=hint)
        self.expression()

    # -- reads -----------------------------------------------------------------------------------

    def _read_part(self, draft: _Draft, word: Token) -> None:
        self._check_place(draft, word)
        self._refuse_mixture(draft, word, reads=True)
        if word.text == "match":
            draft.clauses += self.clauses("match")
        elif word.text == "return":
            self._return(draft)
        elif word.text == "order":
            self._order(draft)
        else:
            draft.counts[word.text] = self._count(word)

    def _check_place(self, draft: _Draft, word: Token) -> None:
        if word.text in draft.parts:
            message = f"a query has one `{word.text}`"
            self.complain(SyntaxCode.REPEATED_PART, word.span, message)
            return
        later = [p for p in draft.parts if _RANK.get(p, 0) > _RANK[word.text]]
        if later:
            message = f"`{word.text}` stands before `{later[0]}`"
            hint = "the order is match, return, order, limit, offset"
            self.complain(SyntaxCode.PART_ORDER, word.span, message, hint=hint)

    def _return(self, draft: _Draft) -> None:
        draft.distinct = self.cursor.accept_word("distinct") is not None
        hint = "projections stand in braces: `return { $v.name, $v.age }`"
        draft.projections = self.block("return", self._projection, Commas.OPTIONAL, hint=hint)

    def _projection(self) -> ast.Projection:
        start = self.cursor.here
        if start.is_identifier and self.cursor.peek().is_punct(":"):
            hint = f"the name of a column stands behind it: `… as {start.text}`"
            self.cursor.take()
            self.fail("a projection", hint=hint)
        if self._accept_distinct():
            hint = "write `return distinct { … }`"
            message = "unexpected `distinct`"
            self.complain(SyntaxCode.PART_ORDER, start.span, message, hint=hint)
        value = self.expression()
        alias = None
        if self.cursor.accept_word("as"):
            quoted = self.cursor.here.kind is TokenKind.STRING
            hint = "names of columns are written without quotes" if quoted else None
            alias = self.name("the name of the column", hint=hint)
        span = start.span.to(self.cursor.last_span)
        return ast.Projection(value=value, alias=alias, span=span)

    def _order(self, draft: _Draft) -> None:
        hint = "order keys stand in braces: `order { $v.name desc }`"
        if self.cursor.at_word("by") and self.cursor.peek().is_punct("{"):
            span = self.cursor.take().span
            self.complain(SyntaxCode.UNEXPECTED_TOKEN, span, "unexpected `by`", hint=hint)
        draft.order = self.block("order", self._ordering, Commas.REQUIRED, hint=hint)

    def _ordering(self) -> ast.Ordering:
        start = self.cursor.here.span
        key = self.expression()
        direction = None
        if self.cursor.at_word("asc") or self.cursor.at_word("desc"):
            direction = self.cursor.take().name
        span = start.to(self.cursor.last_span)
        return ast.Ordering(key=key, direction=direction, span=span)

    def _count(self, word: Token) -> ast.Expr:
        token = self.cursor.here
        if token.kind is TokenKind.INT and not self.cursor.peek().is_punct("."):
            self.cursor.take()
            if self.cursor.at_punct(","):
                hint = "write `limit` and `offset` separately: `limit 10 offset 20`"
                self.fail("the end of the query", hint=hint)
            return ast.IntLiteral(value=int(token.text), span=token.span)
        bare = token.is_identifier and token.text not in BODY_WORDS
        if token.kind is TokenKind.VARIABLE or bare:
            name = self.variable("a parameter")
            return ast.Variable(name=name.text, span=name.span)
        hint = f"for example `{word.text} 10` or `{word.text} $n`"
        self.fail("a whole number or a parameter", hint=hint)

    # -- statements ------------------------------------------------------------------------------

    def _statement(self, word: Token) -> ast.Statement:
        for needless in ("into", "from"):
            if self.cursor.at_word(needless):
                token = self.cursor.take()
                hint = f"leave `{needless}` out"
                message = f"unexpected {token}"
                self.complain(SyntaxCode.UNEXPECTED_TOKEN, token.span, message, hint=hint)
        type_name = self.type_name("the name of a type")
        if word.text in ("insert", "upsert"):
            return self._insert(word, type_name)
        if word.text == "update":
            return self._update(word, type_name)
        where = self._where(word, type_name)
        span = word.span.to(self.cursor.last_span)
        return ast.DeleteStatement(type_name=type_name, where=where, span=span)

    def _insert(self, word: Token, type_name: ast.Name) -> ast.InsertStatement:
        assignments = self._assignments(f"{word.text} {type_name.text}")
        return ast.InsertStatement(
            upsert=word.text == "upsert",
            type_name=type_name,
            assignments=assignments,
            span=word.span.to(self.cursor.last_span),
        )

    def _update(self, word: Token, type_name: ast.Name) -> ast.UpdateStatement:
        hint = f"write `update {type_name.text} set {{ … }} where …`"
        if self.cursor.at_punct("{"):
            span = self.cursor.here.span
            self.complain(
                SyntaxCode.UNEXPECTED_TOKEN, span, "unexpected `{`", expected="`set`", hint=hint
            )
        else:
            self.keyword("set", hint=hint)
        assignments = self._assignments(f"update {type_name.text} set")
        where = self._where(word, type_name)
        span = word.span.to(self.cursor.last_span)
        return ast.UpdateStatement(
            type_name=type_name, assignments=assignments, where=where, span=span
        )

    def _assignments(self, owner: str) -> tuple[ast.PropertyMatch, ...]:
        hint = f"values stand in braces: `{owner} {{ name: $name }}`"
        return self.block(owner, self.property_match, Commas.OPTIONAL, hint=hint)

    def _where(self, word: Token, type_name: ast.Name) -> ast.Expr:
        if self.cursor.accept_word("where"):
            self.bare_properties = True
            try:
                return self.expression()
            finally:
                self.bare_properties = False
        token = self.cursor.here
        failure = ParseFailure(
            f"unexpected {token}",
            token.span,
            code=SyntaxCode.WHERE_MISSING,
            expected="`where`",
            hint=f"say which rows: `{word.text} {type_name.text} … where …`",
        )
        if not (self.at_boundary() or token.is_punct("}")):
            raise failure
        self.report(failure)
        return ast.BoolLiteral(value=True, span=token.span)

    # -- the whole -------------------------------------------------------------------------------

    def _finished(self, draft: _Draft) -> ast.Body:
        span = draft.start.to(self.cursor.last_span)
        if not draft.reads:
            return ast.MutationBody(statements=tuple(draft.statements), span=span)
        token = self.cursor.here
        if not draft.complete:
            pass  # What is missing may be what could not be read.
        elif "return" not in draft.parts:
            self._missing(SyntaxCode.RETURN_MISSING, token, "return { … }")
        elif "match" not in draft.parts:
            self._missing(SyntaxCode.UNEXPECTED_TOKEN, token, "match { … }")
        return ast.ReadBody(
            clauses=draft.clauses,
            projections=draft.projections,
            distinct=draft.distinct,
            order=draft.order,
            limit=draft.counts.get("limit"),
            offset=draft.counts.get("offset"),
            span=span,
        )

    def _missing(self, code: SyntaxCode, token: Token, part: str) -> None:
        message = f"the query has no `{part.split()[0]}`"
        failure = ParseFailure(message, token.span, code=code, expected=f"`{part}`")
        self.report(failure)
