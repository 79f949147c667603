"""The clauses of a pattern: bindings, traversals, conditions, and blocks of clauses.

    state <- expressions <- [clauses] <- bodies <- queries

Nothing separates clauses, so what a clause is shows in its first tokens: `$v:` is a binding,
`$a word $b` a traversal, `not {` and `optional {` are blocks, and everything else is a condition.
"""

from __future__ import annotations

from omnigraph.lang.cursor import ParseFailure, Token, TokenKind
from omnigraph.lang.source import Span
from omnigraph.query import ast
from omnigraph.query.parse.arrows import GENERAL_HINT, arrow_at
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.expressions import Expressions
from omnigraph.query.parse.lexical import (
    COMPARISON_WORDS,
    COMPARISONS,
    FOREIGN_WORDS,
    NOT_EDGE_WORDS,
)
from omnigraph.query.parse.state import Commas

_BLOCK_WORDS = frozenset({"exists", "count", "optional", "not"})
_NO_VARIABLE = NOT_EDGE_WORDS | _BLOCK_WORDS | {"true", "false", "null", "where"}
"""Words that are never a variable whose `$` was forgotten."""
_NO_EDGE = _NO_VARIABLE | frozenset(COMPARISON_WORDS) | frozenset(FOREIGN_WORDS)
_BOUND_TOKENS_MAX = 6


class Clauses(Expressions):
    """Reads what stands in `match { … }` and in the blocks inside it."""

    def clauses(self, owner: str) -> tuple[ast.Clause, ...]:
        hint = f"`{owner}` is followed by its clauses in braces"
        return self.block(owner, self._clause, Commas.NEVER, hint=hint)

    def _clause(self) -> ast.Clause:
        self._pass_over_where()
        token, following = self.cursor.here, self.cursor.peek()
        if token.kind is TokenKind.VARIABLE:
            if following.is_punct(":"):
                return self._binding()
            if self._at_traversal():
                return self._traversal()
            self._refuse_arrow()
        elif token.is_punct("("):
            self._refuse_drawn_node()
        elif token.kind is TokenKind.WORD:
            if following.is_punct("{") and token.text == "not":
                return self._negation()
            if token.text == "optional" and self._optional_follows(following):
                return self._optional()
            if self._at_bare_variable():
                return self._binding() if following.is_punct(":") else self._traversal()
        condition = self.expression()
        return ast.FilterClause(condition=condition, span=token.span.to(self.cursor.last_span))

    def _refuse_arrow(self) -> None:
        """`$a -k-> $b` is no condition that calculates: it is a traversal, drawn."""
        variable = self.cursor.here
        arrow = arrow_at(self.findings.source.text, variable.span.end)
        if arrow is not None:
            raise ParseFailure(
                f"`{arrow.text}` is no traversal here",
                arrow.span,
                code=SyntaxCode.FOREIGN_OPERATOR,
                hint=arrow.hint(variable.text),
            )

    def _refuse_drawn_node(self) -> None:
        """`(p:Person)`, or `($p)` with an arrow behind it."""
        inner, following, then = (self.cursor.peek(ahead) for ahead in (1, 2, 3))
        if inner.kind not in (TokenKind.VARIABLE, TokenKind.WORD):
            return
        drawn = following.is_punct(":") and then.kind is TokenKind.WORD
        arrow = following.is_punct(")") and arrow_at(self.findings.source.text, following.span.end)
        if drawn or arrow:
            raise ParseFailure(
                "nodes are not drawn in parentheses here",
                self.cursor.here.span,
                code=SyntaxCode.FOREIGN_OPERATOR,
                hint=GENERAL_HINT,
            )

    def _pass_over_where(self) -> None:
        while self.cursor.at_word("where") and self.cursor.peek().text not in COMPARISONS:
            hint = "conditions stand in `match` as they are, without `where`"
            token = self.cursor.take()
            self.complain(SyntaxCode.WHERE_MISPLACED, token.span, "unexpected `where`", hint=hint)

    def _negation(self) -> ast.Negation:
        start = self.cursor.take().span
        clauses = self.clauses("not")
        return ast.Negation(clauses=clauses, span=start.to(self.cursor.last_span))

    def _optional_follows(self, following: Token) -> bool:
        doubled = following.is_word("match") and self.cursor.peek(2).is_punct("{")
        return following.is_punct("{") or doubled

    def _optional(self) -> ast.OptionalBlock:
        start = self.cursor.take().span
        if self.cursor.at_word("match"):
            span = self.cursor.take().span
            hint = "write `optional { … }`, without `match`"
            self.complain(SyntaxCode.UNEXPECTED_TOKEN, span, "unexpected `match`", hint=hint)
        clauses = self.clauses("optional")
        return ast.OptionalBlock(clauses=clauses, span=start.to(self.cursor.last_span))

    # -- bindings --------------------------------------------------------------------------------

    def _binding(self) -> ast.Binding:
        variable = self.variable("a variable")
        self.cursor.take()
        type_name = self.type_name("the name of a node type")
        matches: tuple[ast.PropertyMatch, ...] = ()
        if self.cursor.at_punct("{"):
            owner = f"${variable.text}: {type_name.text}"
            matches = self.block(
                owner, self.property_match, Commas.REQUIRED, foreign=self._at_clause
            )
        span = variable.span.to(self.cursor.last_span)
        return ast.Binding(variable=variable, type_name=type_name, matches=matches, span=span)

    def _at_clause(self) -> bool:
        """Whether the next clause starts here, in a place where a property should stand."""
        token = self.cursor.here
        block = token.is_word("not") or token.is_word("optional")
        return token.kind is TokenKind.VARIABLE or (block and self.cursor.peek().is_punct("{"))

    def property_match(self) -> ast.PropertyMatch:
        """`name: value`."""
        quoted = self.cursor.here.kind is TokenKind.STRING
        hint = "names of properties are written without quotes" if quoted else None
        name = self.name("the name of a property", hint=hint)
        if not self.cursor.accept_punct(":"):
            if not self.cursor.at_punct("="):
                self.fail("`:`")
            span = self.cursor.take().span
            while self.cursor.at_punct("="):
                span = span.to(self.cursor.take().span)
            hint = f"write `{name.text}: …`"
            self.complain(
                SyntaxCode.UNEXPECTED_TOKEN, span, "unexpected `=`", expected="`:`", hint=hint
            )
        value = self.expression()
        span = name.span.to(self.cursor.last_span)
        return ast.PropertyMatch(property=name, value=value, span=span)

    # -- traversals ------------------------------------------------------------------------------

    def _at_traversal(self) -> bool:
        """Whether a traversal starts with the variable that stands here."""
        first, second = self.cursor.peek(1), self.cursor.peek(2)
        if first.kind is TokenKind.VARIABLE:
            # `$flag  $p: Port` is a condition and a binding: an edge word has no capital.
            return second.is_punct(":") and not self.cursor.peek(3).is_type_name
        if first.is_punct("<"):
            return second.kind is TokenKind.WORD and self.cursor.peek(3).is_punct(">")
        if first.kind is not TokenKind.WORD:
            return False
        # `$flag and $other` joins two parameters; a node is neither true nor false, nor in a list.
        operator = first.text in NOT_EDGE_WORDS
        if operator and self.cursor.here.text[1:] in self.declared:
            return False
        if second.kind is TokenKind.VARIABLE:
            # `$v  not $w.active` are two conditions, of which the first is refused.
            return not (operator and self.cursor.peek(3).is_punct("."))
        if second.is_punct("{"):
            return self._at_bounds(block_word=operator or first.text in _BLOCK_WORDS)
        bare_target = self._is_bare_variable(second, self.cursor.peek(3))
        return bare_target and first.text not in _NO_EDGE

    def _at_bounds(self, *, block_word: bool) -> bool:
        low, following = self.cursor.peek(3), self.cursor.peek(4)
        if block_word:
            # `$flag  exists { 1 < $v.age }` has the same first tokens.
            return low.kind is TokenKind.INT and following.text in (",", "}")
        return low.kind is TokenKind.INT or low.text in (",", "}", "..")

    def _at_bare_variable(self) -> bool:
        """Whether a clause starts here whose first variable lacks its `$`."""
        token, first, second = self.cursor.here, self.cursor.peek(1), self.cursor.peek(2)
        if not token.is_identifier or token.text in _NO_VARIABLE:
            return False
        if first.is_punct(":"):
            return second.kind is TokenKind.WORD
        if not first.is_identifier or first.text in _NO_EDGE:
            return False
        return second.kind is TokenKind.VARIABLE

    @staticmethod
    def _is_bare_variable(token: Token, following: Token) -> bool:
        if not token.is_identifier or token.text in _NO_VARIABLE:
            return False
        return not (following.kind is TokenKind.PUNCT and following.text in ("(", ".", ":", "{"))

    def _traversal(self) -> ast.Traversal:
        source = self.variable("a variable")
        edge_variable = None
        if self.cursor.here.kind is TokenKind.VARIABLE:
            edge_variable = self.variable("a variable")
            self.cursor.expect_punct(":")
        undirected = self.cursor.accept_punct("<") is not None
        word = self.name("the word of an edge")
        if undirected:
            self.cursor.expect_punct(">", hint="an undirected edge is written `<word>`")
        bounds = self._bounds() if self.cursor.at_punct("{") else None
        target = self.variable("a variable")
        return ast.Traversal(
            source=source,
            edge_variable=edge_variable,
            word=word,
            undirected=undirected,
            bounds=bounds,
            target=target,
            span=source.span.to(target.span),
        )

    def _bounds(self) -> ast.HopBounds:
        opener = self.cursor.take()
        low = self._accept_int()
        high = None
        if low is not None and self.cursor.accept_punct(","):
            high = self._accept_int()
            if self.cursor.accept_punct("}"):
                return ast.HopBounds(low=low, high=high, span=opener.span.to(self.cursor.last_span))
        return self._refused_bounds(opener, low)

    def _accept_int(self) -> int | None:
        token = self.cursor.here
        return int(self.cursor.take().text) if token.kind is TokenKind.INT else None

    def _refused_bounds(self, opener: Token, low: int | None) -> ast.HopBounds:
        """Bounds in another shape are reported as a whole, up to their closing brace."""
        numbers = [] if low is None else [low]
        for _ in range(_BOUND_TOKENS_MAX):
            if self.cursor.at_punct("}"):
                break
            if self.cursor.at_end or self.cursor.here.kind is TokenKind.WORD:
                self.fail("`{low,high}`", code=SyntaxCode.HOP_BOUNDS)
            if self.cursor.here.kind is TokenKind.INT:
                numbers.append(int(self.cursor.here.text))
            self.cursor.take()
        closer = self.cursor.expect_punct("}")
        span = Span(start=opener.span.start, end=closer.span.end)
        written = " ".join(self.findings.source.text[span.start : span.end].split())
        self.complain(
            SyntaxCode.HOP_BOUNDS,
            span,
            f"`{written}` gives no hop bounds",
            expected="`{low,high}`",
            hint=_bounds_hint(numbers, exactly=low is not None),
        )
        return ast.HopBounds(low=low or 1, high=numbers[-1] if numbers else None, span=span)


def _bounds_hint(numbers: list[int], *, exactly: bool) -> str | None:
    if not numbers:
        return "write the least and the greatest number of hops, as in `{1,3}`"
    if len(numbers) == 1:
        only = numbers[0]
        return f"write `{{{only},{only}}}`" if exactly else f"write `{{1,{only}}}`"
    return f"write `{{{numbers[0]},{numbers[-1]}}}`"
