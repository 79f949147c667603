"""Expressions: conditions, values, projections, order keys.

    state <- [expressions] <- clauses <- bodies <- queries

    expr    = and { "or" and }          and = neg { "and" neg }        neg = "not" neg | test
    test    = operand [ op operand | "is" ["not"] "null" | ["not"] "in" operand ]

Comparison binds stronger than ``not``, that stronger than ``and``, that stronger than ``or``.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod

from omnigraph.lang.cursor import ParseFailure, Token, TokenKind
from omnigraph.lang.lexer import refuse_exponent
from omnigraph.lang.source import Span
from omnigraph.query import ast
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.lexical import (
    BOUNDARIES,
    COMPARISON_WORDS,
    COMPARISONS,
    FOREIGN_WORDS,
    NO_ARITHMETIC_HINT,
    NOT_EDGE_WORDS,
    TOUCHING_OPERATORS,
)
from omnigraph.query.parse.state import ParserState

VALUE = "a value, a variable or a function"
_NUMBERS = (TokenKind.INT, TokenKind.FLOAT, TokenKind.DIGIT_WORD)
_BARE_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9A-Za-z_])")
_NO_OPERAND = NOT_EDGE_WORDS | frozenset(COMPARISON_WORDS) | BOUNDARIES
_ENDS_NAME = frozenset({*COMPARISONS, ",", "}", ")", "]"})
"""Punctuation behind `not`, `and` … that makes them ordinary names."""


class Expressions(ParserState, ABC):
    """Reads expressions; blocks inside them are read by the reader of clauses."""

    @abstractmethod
    def clauses(self, owner: str) -> tuple[ast.Clause, ...]:
        """`{ clause … }`."""

    def expression(self) -> ast.Expr:
        """One expression. Nothing in it depends on where it stands."""
        alternatives = [[self._test()]]
        while True:
            if self.cursor.accept_word("and"):
                alternatives[-1].append(self._test())
            elif self.cursor.accept_word("or"):
                alternatives.append([self._test()])
            else:
                break
        return _joined(ast.OrExpr, [_joined(ast.AndExpr, tests) for tests in alternatives])

    # -- tests -----------------------------------------------------------------------------------

    def _test(self) -> ast.Expr:
        negations: list[Token] = []
        while self._at_not():
            negations.append(self.cursor.take())
            self.enter(negations[-1])
        if negations and self.cursor.at_punct("{"):
            self.fail("a condition", hint="inside an expression write `not exists { … }`")
        start = self.cursor.here.span
        found = self._compared(self._operand(), start)
        self._refuse_continuation()
        for word in reversed(negations):
            found = ast.NotExpr(operand=found, span=word.span.to(self.cursor.last_span))
        self.leave(len(negations))
        return found

    def _compared(self, left: ast.Expr, start: Span) -> ast.Expr:
        token = self.cursor.here
        if token.kind is TokenKind.PUNCT:
            if token.text not in COMPARISONS:
                return left
            return self._compare(self._operator(), left, start)
        if token.kind is not TokenKind.WORD:
            return left
        if token.text in COMPARISON_WORDS:
            self.cursor.take()
            return self._compare(COMPARISON_WORDS[token.text], left, start)
        if self.cursor.accept_word("is"):
            return self._null_test(left, start)
        if self.cursor.accept_word("in"):
            return self._membership(left, start, negated=False)
        if self.cursor.peek().is_word("in") and self.cursor.accept_word("not"):
            self.cursor.accept_word("in")
            return self._membership(left, start, negated=True)
        if token.text.lower() in FOREIGN_WORDS and self._operand_follows():
            op, hint = FOREIGN_WORDS[token.text.lower()]
            message = f"{token} is no operator here"
            self.complain(SyntaxCode.FOREIGN_OPERATOR, token.span, message, hint=hint)
            self.cursor.take()
            return self._compare(op, left, start)
        return left

    def _compare(self, op: ast.CompareOp, left: ast.Expr, start: Span) -> ast.CompareExpr:
        right = self._operand()
        span = start.to(self.cursor.last_span)
        return ast.CompareExpr(op=op, left=left, right=right, span=span)

    def _operator(self) -> ast.CompareOp:
        first = self.cursor.take()
        second = self.cursor.here
        if second.kind is not TokenKind.PUNCT or second.span.start != first.span.end:
            return COMPARISONS[first.text]
        meant = TOUCHING_OPERATORS.get((first.text, second.text))
        if meant is None:
            return COMPARISONS[first.text]
        self.cursor.take()
        message = f"`{first.text}{second.text}` is no operator here"
        span = first.span.to(second.span)
        self.complain(SyntaxCode.FOREIGN_OPERATOR, span, message, hint=f"write `{meant}`")
        return meant

    def _null_test(self, operand: ast.Expr, start: Span) -> ast.IsNullExpr:
        negated = self.cursor.accept_word("not") is not None
        if not self.cursor.accept_word("null"):
            self.fail("`null`" if negated else "`null` or `not null`", hint="compare with `=`")
        span = start.to(self.cursor.last_span)
        return ast.IsNullExpr(operand=operand, negated=negated, span=span)

    def _membership(self, operand: ast.Expr, start: Span, *, negated: bool) -> ast.In:
        values = self._operand()
        span = start.to(self.cursor.last_span)
        return ast.In(operand=operand, values=values, negated=negated, span=span)

    def _refuse_continuation(self) -> None:
        """No operator may follow a finished test; `-` would start a second item unnoticed."""
        token = self.cursor.here
        if token.kind is not TokenKind.PUNCT:
            return
        if token.text in COMPARISONS:
            hint = "join two comparisons: `a < b and b < c`"
            self.fail("`and`, `or` or the end", code=SyntaxCode.CHAINED_COMPARISON, hint=hint)
        if token.text == "-":
            self._refuse_minus()

    def _refuse_minus(self) -> None:
        date = _BARE_DATE.match(self.findings.source.text, self.cursor.last_span.start)
        hint = f'write `date("{date.group()}")`' if date else NO_ARITHMETIC_HINT
        span = Span(start=date.start(), end=date.end()) if date else self.cursor.here.span
        message = f"{self.cursor.here} is no operator here"
        raise ParseFailure(message, span, code=SyntaxCode.NO_ARITHMETIC, hint=hint)

    # -- operands --------------------------------------------------------------------------------

    def _operand(self) -> ast.Expr:
        token = self.cursor.here
        kind = token.kind
        if kind is TokenKind.VARIABLE:
            return self._variable(token)
        if kind is TokenKind.WORD:
            return self._word(token)
        if kind is TokenKind.STRING:
            self.cursor.take()
            return ast.StringLiteral(value=token.text, span=token.span)
        if kind in _NUMBERS:
            return self._number(token, negative=False)
        if token.is_punct("("):
            return self._parentheses(token)
        if token.is_punct("["):
            return self._list(token)
        if token.is_punct("-"):
            self.cursor.take()
            if self.cursor.here.kind not in _NUMBERS:
                self.fail("a number", code=SyntaxCode.NO_ARITHMETIC, hint=NO_ARITHMETIC_HINT)
            return self._number(token, negative=True)
        if token.is_punct(".") and self.cursor.peek().kind in _NUMBERS:
            hint = f"write `0.{self.cursor.peek().text}`"
            self.fail(VALUE, code=SyntaxCode.NUMBER_FORM, hint=hint)
        self.fail(VALUE)

    def _variable(self, token: Token) -> ast.Expr:
        if self.cursor.peek().is_punct(":"):
            self.fail(VALUE)  # The next binding stands here already.
        self.cursor.take()
        if not self.cursor.at_punct("."):
            return ast.Variable(name=token.text[1:], span=token.span)
        return self._property_of(token.name)

    def _property_of(self, variable: ast.Name) -> ast.PropertyRef:
        self.cursor.take()
        name = self.name("the name of a property")
        if self.cursor.at_punct("."):
            self.fail("an operator or the end", hint=f"`{name.text}` has no properties of its own")
        return ast.PropertyRef(variable=variable, property=name, span=variable.span.to(name.span))

    def _word(self, token: Token) -> ast.Expr:
        text, following = token.text, self.cursor.peek()
        if text in ("true", "false"):
            self.cursor.take()
            return ast.BoolLiteral(value=text == "true", span=token.span)
        if text == "null":
            self.cursor.take()
            return ast.NullLiteral(span=token.span)
        if following.is_punct("("):
            return self._date(token) if text in ("date", "datetime") else self._call()
        if following.is_punct("{") and text in ("exists", "count"):
            return self._counted(token)
        if following.is_punct(".") and self.cursor.peek(2).kind is TokenKind.WORD:
            return self._property_of(self.variable("a variable"))
        if text in NOT_EDGE_WORDS and not self._is_name():
            self.fail(VALUE)
        name = self.name(VALUE)
        return ast.NameRef(name=name.text, span=name.span)

    def _is_name(self, at: int = 1) -> bool:
        """Whether a word such as `in` or `not` is a name here, by what stands behind it."""
        following, then = self.cursor.peek(at), self.cursor.peek(at + 1)
        if following.kind is TokenKind.PUNCT:
            return following.text in _ENDS_NAME
        if following.kind is not TokenKind.WORD:
            return False
        if following.text in ("asc", "desc"):
            return then.is_punct(",") or then.is_punct("}")
        if not self.bare_properties:
            return False
        if following.text == "is":
            second = self.cursor.peek(at + 2)
            return then.is_word("null") or (then.is_word("not") and second.is_word("null"))
        if following.text == "not":
            return then.is_word("in") and self._operand_at(at + 2)
        # In `not in = 1` the second word is the name.
        return following.text in ("in", *COMPARISON_WORDS) and self._operand_at(at + 1)

    def _operand_at(self, at: int) -> bool:
        """Whether what stands there is certainly what an operator is followed by."""
        token = self.cursor.peek(at)
        if token.kind is TokenKind.PUNCT:
            return token.text in ("(", "[", "-")
        if token.kind is TokenKind.WORD:
            return token.text not in _NO_OPERAND
        return token.kind is not TokenKind.END

    def _counted(self, word: Token) -> ast.ExistsExpr | ast.CountExpr:
        self.cursor.take()
        clauses = self.clauses(word.text)
        span = word.span.to(self.cursor.last_span)
        if word.text == "exists":
            return ast.ExistsExpr(clauses=clauses, span=span)
        return ast.CountExpr(clauses=clauses, span=span)

    def _date(self, word: Token) -> ast.DateLiteral | ast.DateTimeLiteral:
        self.cursor.take()
        self.cursor.take()
        if self.cursor.here.kind is not TokenKind.STRING:
            example = "2026-01-31" if word.text == "date" else "2026-01-31T12:00:00Z"
            self.fail(
                f'a string such as `{word.text}("{example}")`',
                hint="a parameter is used as it is: `$day`",
            )
        text = self.cursor.take().text
        self.cursor.expect_punct(")")
        span = word.span.to(self.cursor.last_span)
        if word.text == "date":
            return ast.DateLiteral(text=text, span=span)
        return ast.DateTimeLiteral(text=text, span=span)

    def _call(self) -> ast.Call:
        function = self.name("the name of a function")
        opener = self.cursor.take()
        self.enter(opener)
        distinct = self._accept_distinct()
        args = self.listed(self.expression, ")")
        self.leave()
        span = function.span.to(self.cursor.last_span)
        return ast.Call(function=function, args=args, distinct=distinct, span=span)

    def _accept_distinct(self) -> bool:
        following = self.cursor.peek()
        named = following.kind is TokenKind.PUNCT and following.text in _ENDS_NAME
        return not named and self.cursor.accept_word("distinct") is not None

    def _parentheses(self, opener: Token) -> ast.Expr:
        self.enter(opener)
        self.cursor.take()
        inner = self.expression()
        if self.cursor.at_punct(","):
            self.fail("`)`", hint="lists stand in brackets: `[1, 2]`")
        if not self.cursor.accept_punct(")"):
            self.fail("`and`, `or` or `)`")
        self.leave()
        return inner

    def _list(self, opener: Token) -> ast.ListLiteral:
        self.enter(opener)
        self.cursor.take()
        items = self.listed(self.expression, "]")
        self.leave()
        return ast.ListLiteral(items=items, span=opener.span.to(self.cursor.last_span))

    def _number(self, start: Token, *, negative: bool) -> ast.IntLiteral | ast.FloatLiteral:
        token = self.cursor.here
        if token.kind is TokenKind.DIGIT_WORD or self.cursor.peek().is_punct("."):
            self._refuse_number(token)
        self.cursor.take()
        span = start.span.to(token.span)
        if token.kind is TokenKind.INT:
            number = int(token.text)
            return ast.IntLiteral(value=-number if negative else number, span=span)
        value = float(token.text)
        if math.isinf(value):
            message = "number is greater than every 64-bit float"
            self.complain(SyntaxCode.LONG_NUMBER, token.span, message)
        return ast.FloatLiteral(value=-value if negative else value, span=span)

    def _refuse_number(self, token: Token) -> None:
        code = SyntaxCode.NUMBER_FORM
        refuse_exponent(self.findings.source, token, code=code)
        if token.kind is TokenKind.DIGIT_WORD:
            digits = token.text.replace("_", "")
            hint = f"write `{digits}`" if digits.isdigit() else None
            self.fail("a number in plain digits", code=code, hint=hint)
        point = self.cursor.peek().span
        if token.kind is TokenKind.INT and point.start == token.span.end:
            hint = f"a number has digits on both sides of its point: `{token.text}.0`"
            span = token.span.to(point)
            raise ParseFailure(f"unexpected `{token.text}.`", span, code=code, hint=hint)

    # -- words -----------------------------------------------------------------------------------

    def _at_not(self) -> bool:
        token = self.cursor.here
        return token.is_word("not") and not self._is_name()

    def _operand_follows(self) -> bool:
        following = self.cursor.peek()
        if following.kind is TokenKind.PUNCT:
            return following.text in ("(", "[", "-")
        return following.kind is not TokenKind.END


def _joined(kind: type[ast.AndExpr] | type[ast.OrExpr], operands: list[ast.Expr]) -> ast.Expr:
    if len(operands) == 1:
        return operands[0]
    return kind(operands=tuple(operands), span=operands[0].span.to(operands[-1].span))
