"""What every part of the query parser stands on: the cursor, reports, and where to go on.

    tokens -> [state] <- expressions <- clauses <- bodies <- queries

A mistake ends the item it is in: a clause, a projection, a statement. Reading goes on at the next
item of the same block, found by brackets, commas and line starts, so that one run reports several
mistakes and none of them twice. Line ends guide recovery only; what is legal never depends on them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from enum import Enum, auto
from itertools import accumulate
from typing import NoReturn, TypeVar, Unpack

from omnigraph.lang.cursor import Cursor, ParseFailure, Token, TokenKind
from omnigraph.lang.source import Help, Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast
from omnigraph.query.codes import QueryFindings
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.lexical import (
    BLOCK_PARTS,
    BOUNDARIES,
    COUNT_PARTS,
    STATEMENTS,
    read_tokens,
)

NESTING_MAX = 64
"""Deeper than people write, and shallow enough for every recursive step that follows."""
_OPENERS = {")": "(", "]": "[", "}": "{"}
_GOES_ON = frozenset({"and", "or", "in", "is", "contains", "starts_with", "as", "asc", "desc"})
"""Words that, at the start of a line, continue what stands before it."""
T = TypeVar("T")


class Commas(Enum):
    """What separates the items of a block."""

    NEVER = auto()
    OPTIONAL = auto()
    REQUIRED = auto()


class ParserState:
    """The place in the text, and the ways to complain about it."""

    def __init__(self, findings: QueryFindings) -> None:
        self.findings = findings
        readable = read_tokens(findings)
        self.tokens = readable.tokens
        self.cursor = Cursor(readable.tokens)
        self._holes = readable.holes
        self._cut_off = readable.cut_off
        self._depth = 0
        self._reported_at = -1
        self._mistakes = readable.mistakes
        self._given_up = 0
        self._nesting: list[int] | None = None
        self.bare_properties = False
        """Whether a word on its own is a property: in the `where` of a mutation."""
        self.declared: frozenset[str] = frozenset()
        """The parameters of the query that is read."""

    # -- complaints ------------------------------------------------------------------------------

    def complain(self, code: SyntaxCode, span: Span, message: str, **help: Unpack[Help]) -> None:
        """Report a mistake whose meaning is clear; reading goes on as if it were put right."""
        self._reported_at = span.start
        self._given_up += 1
        self.findings.add(code, span, message, **help)

    def fail(
        self,
        expected: str,
        *,
        code: SyntaxCode = SyntaxCode.UNEXPECTED_TOKEN,
        hint: str | None = None,
    ) -> NoReturn:
        """Give this item up: the current token is not what has to stand here."""
        self.cursor.fail(expected, hint=hint, code=code)

    def report(self, failure: ParseFailure) -> None:
        """Report why an item was given up, unless that follows from an earlier report."""
        self._given_up += 1
        if self._cut_off and self.cursor.at_end:
            return  # The rest of the text is inside the string or comment already reported.
        if failure.span.start in self._holes or failure.span.start == self._reported_at:
            return
        code = SyntaxCode(failure.code) if failure.code else SyntaxCode.UNEXPECTED_TOKEN
        self.complain(code, failure.span, failure.message, **failure.help)

    def mistakes_before(self, place: int) -> int:
        """How much was wrong up to this place: more at the end of a query if it is not intact."""
        return self._given_up + bisect_left(self._mistakes, place)

    # -- nesting ---------------------------------------------------------------------------------

    def enter(self, opener: Token) -> None:
        """One level deeper. Recovery restores the level, so failures need no clean-up."""
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise ParseFailure(
                f"nested more than {NESTING_MAX} levels deep",
                opener.span,
                code=SyntaxCode.NESTED_TOO_DEEP,
                hint="split the condition, or take out what changes nothing",
            )

    @property
    def depth(self) -> int:
        return self._depth

    def give_up(self, failure: ParseFailure, depth: int) -> None:
        """Report a failure and come back to the level at which its item started."""
        self._depth = depth
        self.report(failure)

    def leave(self, levels: int = 1) -> None:
        self._depth -= levels

    # -- names -----------------------------------------------------------------------------------

    def name(self, what: str, *, hint: str | None = None) -> ast.Name:
        """A word that is no type name."""
        token = self.cursor.here
        if token.is_type_name:
            lowered = token.text.lower()
            if not token.text.isupper():
                lowered = f"{lowered[0]}{token.text[1:]}"
            self.complain(
                SyntaxCode.NAME_CASE,
                token.span,
                f"unexpected {token}",
                expected=f"{what} that starts with a lower-case letter or `_`",
                hint=f"write `{lowered}`",
            )
        elif not token.is_identifier:
            self.fail(what, hint=hint)
        return self.cursor.take().name

    def type_name(self, what: str) -> ast.Name:
        """A word that starts with an upper-case letter."""
        token = self.cursor.here
        if token.is_identifier:
            raised = f"{token.text[0].upper()}{token.text[1:]}"
            self.complain(
                SyntaxCode.TYPE_NAME_CASE,
                token.span,
                f"unexpected {token}",
                expected=f"{what} that starts with an upper-case letter",
                hint=f"write `{raised}`" if raised != token.text else None,
            )
        elif not token.is_type_name:
            self.fail(what)
        return self.cursor.take().name

    def variable(self, what: str) -> ast.Name:
        """A variable; a word without its dollar sign counts as one."""
        token = self.cursor.here
        if token.is_identifier:
            self.dollar_missing(token)
        elif token.kind is not TokenKind.VARIABLE:
            self.fail(what)
        return self.cursor.take().name

    def dollar_missing(self, token: Token) -> None:
        self.complain(
            SyntaxCode.DOLLAR_MISSING,
            token.span,
            f"unexpected {token}",
            expected="a variable",
            hint=f"write `${token.text}`",
        )

    def keyword(self, word: str, *, hint: str | None = None) -> Token:
        """This very word."""
        return self.cursor.accept_word(word) or self.fail(
            f"`{word}`", hint=hint or self.similar((word,))
        )

    def similar(self, words: Sequence[str]) -> str | None:
        """A hint if the current token nearly is one of these words."""
        token = self.cursor.here
        return did_you_mean(token.text, words) if token.kind is TokenKind.WORD else None

    def listed(self, item: Callable[[], T], closer: str) -> tuple[T, ...]:
        """`item, item … closer`; there may be no item."""
        items = () if self.cursor.at_punct(closer) else self.cursor.separated(item)
        if not self.cursor.accept_punct(closer):
            self.fail(f"`,` or `{closer}`")
        return items

    # -- items of a block ------------------------------------------------------------------------

    def block(
        self,
        owner: str,
        item: Callable[[], T],
        commas: Commas,
        *,
        hint: str | None = None,
        foreign: Callable[[], bool] = lambda: False,
    ) -> tuple[T, ...]:
        """`{ item … }`. Items that cannot be read are reported and passed over.

        Where something ``foreign`` starts, as where a part of the query does, the block lacks its
        closing brace.
        """
        self.enter(self.cursor.here)
        opener = self.cursor.expect_punct("{", hint=hint)
        items: list[T] = []
        readable = True
        while not self.cursor.at_punct("}"):
            if self.at_boundary() or foreign():
                self.not_closed(opener, owner)
                break
            if self._needless_comma(commas):
                continue
            started, depth = self.cursor.index, self._depth
            try:
                items.append(item())
                if not foreign():
                    self._separator(commas)
            except ParseFailure as failure:
                readable = False
                self.give_up(failure, depth)
                self._skip_item(started, commas)
        else:
            self.cursor.take()
            if not items and readable:
                span = opener.span.to(self.cursor.last_span)
                self.complain(SyntaxCode.EMPTY_BLOCK, span, f"nothing stands in `{owner} {{ }}`")
        self.leave()
        return tuple(items)

    def _needless_comma(self, commas: Commas) -> bool:
        comma = self.cursor.here
        if commas is not Commas.NEVER or not comma.is_punct(","):
            return False
        hint = "nothing separates the clauses of a block; leave the comma out"
        self.complain(SyntaxCode.UNEXPECTED_TOKEN, comma.span, "unexpected `,`", hint=hint)
        self.cursor.take()
        return True

    def _separator(self, commas: Commas) -> None:
        if commas is Commas.NEVER or self.cursor.accept_punct(",") or self.cursor.at_punct("}"):
            return
        if commas is Commas.REQUIRED and not self.at_boundary():
            self.fail("`,` or `}`")

    def not_closed(self, opener: Token, owner: str) -> None:
        """Report that a block ends without its brace; reading goes on as if it were there."""
        line, _ = self.findings.source.position(opener.span.start)
        expected = f"`}}` that closes `{owner} {{` of line {line}"
        try:
            self.fail(expected, code=SyntaxCode.BLOCK_NOT_CLOSED)
        except ParseFailure as failure:
            self.report(failure)

    # -- where to go on --------------------------------------------------------------------------

    def at_boundary(self) -> bool:
        """Whether no item of a block can start here: a part of a query does, or the text ends."""
        token = self.cursor.here
        if token.kind is not TokenKind.WORD or token.text not in BOUNDARIES:
            return token.kind is TokenKind.END
        return self.at_part() or self.at_statement() or self.at_query()

    def at_part(self) -> bool:
        token, following = self.cursor.here, self.cursor.peek()
        if token.kind is not TokenKind.WORD:
            return False
        if token.text in COUNT_PARTS:
            return following.kind in (TokenKind.INT, TokenKind.VARIABLE)
        distinct = token.text == "return" and following.is_word("distinct")
        return token.text in BLOCK_PARTS and (following.is_punct("{") or distinct)

    def at_statement(self) -> bool:
        token = self.cursor.here
        named = token.kind is TokenKind.WORD and token.text in STATEMENTS
        return named and self.cursor.peek().is_type_name

    def at_query(self) -> bool:
        named = self.cursor.at_word("query") and self.cursor.peek().kind is TokenKind.WORD
        return named and (self.cursor.peek(2).is_punct("(") or self.cursor.peek(2).is_punct("{"))

    def skip_to(self, wanted: Callable[[], bool]) -> None:
        """On to the next place of this kind, or to the end."""
        while not self.cursor.at_end and (not wanted() or self._named_here()):
            self.cursor.take()

    def skip_part(self) -> None:
        """On to the next part, statement or query, or to the brace that closes the body."""
        braces = 0
        while not self._at_clear_boundary():
            if self.cursor.at_punct("}") and braces <= 0:
                return
            braces += _brace(self.cursor.take())

    def _skip_item(self, started: int, commas: Commas) -> None:
        """On to the next item of a block, or to the brace that closes the block.

        Braces count as the parser met them, so that a missing one is noticed where it is missed. Of
        the other brackets only pairs count: one that is not closed must not hide all that follows.
        """
        nesting = self._nesting_of_tokens()
        braces = sum(map(_brace, self.tokens[started : self.cursor.index]))
        if self.cursor.index == started:
            braces += _brace(self.cursor.take())
        while not self._at_clear_boundary():
            if braces <= 0 and self.cursor.at_punct("}"):
                return
            outside = braces <= 0 and nesting[self.cursor.index] <= nesting[started]
            if outside and self._at_next_item(commas):
                return
            braces += _brace(self.cursor.take())

    def _at_clear_boundary(self) -> bool:
        # Inside an item that was given up any token may come, names like keywords among them.
        return self.at_boundary() and (self.cursor.at_end or not self._named_here())

    def _at_next_item(self, commas: Commas) -> bool:
        token = self.cursor.here
        if commas is not Commas.NEVER and self.cursor.accept_punct(","):
            return True
        if token.kind is TokenKind.PUNCT:
            return False
        if token.kind is TokenKind.WORD and token.text in _GOES_ON:
            return False
        return self._starts_line(token) or (
            commas is Commas.NEVER
            and token.kind is TokenKind.VARIABLE
            and self.cursor.peek().is_punct(":")
            and self.cursor.peek(2).is_type_name
        )

    def _starts_line(self, token: Token) -> bool:
        return "\n" in self.findings.source.text[self.cursor.last_span.end : token.span.start]

    def _named_here(self) -> bool:
        """Whether a keyword stands where a name would, as the edge in `$a limit $b`."""
        if self.cursor.index == 0:
            return False
        before = self.tokens[self.cursor.index - 1]
        if before.kind is TokenKind.PUNCT:
            return before.text in (".", "<", ":")
        return before.kind is TokenKind.VARIABLE or before.is_word("as")

    def _nesting_of_tokens(self) -> list[int]:
        """How many pairs of parentheses and brackets enclose each token."""
        if self._nesting is None:
            self._nesting = _nesting(self.tokens)
        return self._nesting


def _brace(token: Token) -> int:
    """By how many levels a token changes the depth of braces."""
    return token.is_punct("{") - token.is_punct("}")


def _nesting(tokens: Sequence[Token]) -> list[int]:
    steps = [0] * len(tokens)
    stack: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind is not TokenKind.PUNCT:
            continue
        if token.text in "([{":
            stack.append(i)
        elif (opener := _OPENERS.get(token.text)) is not None:
            # Inside braces everything is closed with them at the latest.
            while stack and tokens[stack[-1]].text != opener and opener == "{":
                stack.pop()
            if stack and tokens[stack[-1]].text == opener:
                steps[stack.pop()], steps[i] = (0, 0) if opener == "{" else (1, -1)
    return list(accumulate(steps, initial=0))
