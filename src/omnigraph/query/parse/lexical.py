"""Tokens of a query text, with what other languages would have written already put right.

    source -> [tokens, repaired] -> parser -> AST

`&&`, `'…'`, `# …`, `count(*)` cannot be read by the lexer, and `AS` is no `as`. Each is reported
once, with the spelling of this language, and replaced by what was meant, so that the parser does
not stumble over the rest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from omnigraph.lang.cursor import Token, TokenKind
from omnigraph.lang.lexer import CUTS_OFF, LexicalKind, LexicalProblem, holes, tokenize
from omnigraph.lang.source import Span
from omnigraph.query.ast import CompareOp
from omnigraph.query.codes import QueryFindings
from omnigraph.query.parse.codes import SyntaxCode

_CODES = {kind: SyntaxCode[kind.name] for kind in LexicalKind}
_WORDS = {"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}
_QUOTES = {"'": "'", "`": "`", "“": "”", "‘": "’"}
_ARITHMETIC = "+*/%^"
_LABEL_TOKENS_MAX = 16
"""How far back the bracket of an arrow is looked for."""
NO_ARITHMETIC_HINT = "queries do not calculate: compute the value first, pass it as a parameter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readable:
    """What the parser walks over."""

    tokens: list[Token]
    holes: frozenset[int]
    """Starts of tokens that were put right, or stand behind something that was dropped."""
    cut_off: bool
    """Whether the text ends inside a string or comment, which was reported."""
    mistakes: tuple[int, ...]
    """Where something was reported, in the order of the text."""


def read_tokens(findings: QueryFindings) -> Readable:
    """The tokens of the source in ``findings``; all that cannot be read is reported there."""
    tokens, problems = tokenize(findings.source)
    shouted = [token for before, token in _in_context(tokens) if _is_shouted(before, token)]
    if not problems and not shouted:
        return Readable(tokens=tokens, holes=frozenset(), cut_off=False, mistakes=())
    cut_off = any(p.kind in CUTS_OFF for p in problems)
    repair = _TokenRepair(findings, tokens)
    for problem in sorted(problems, key=lambda p: p.span.start):
        repair.treat(problem)
    repair.lower(shouted)
    repaired = repair.tokens()
    doubtful = holes(repaired, repair.dropped) | {token.span.start for token in repair.new}
    mistakes = sorted(p.span.start for p in (*problems, *shouted))
    return Readable(tokens=repaired, holes=doubtful, cut_off=cut_off, mistakes=tuple(mistakes))


def _in_context(tokens: list[Token]) -> Iterator[tuple[tuple[Token, Token], Token]]:
    """Each token with the two before it; the text starts as if behind its own end."""
    end = tokens[-1]
    return zip(pairwise([end, end, *tokens]), tokens, strict=False)


def _is_shouted(before: tuple[Token, Token], token: Token) -> bool:
    """Whether this is a word of the language in capitals.

    Only names of types start with a capital, so such a word is wrong wherever no type is named. A
    place where another name has to stand is left to the parser, which knows what is named there.
    """
    if not token.is_type_name or token.text.lower() not in WORDS:
        return False
    earlier, last = before
    if last.is_punct(":"):
        return earlier.kind is not TokenKind.VARIABLE
    if last.kind is TokenKind.WORD:
        return last.text.lower() not in ("as", "query", *NAMES_FOLLOW)
    return not (last.kind is TokenKind.PUNCT and last.text in (".", "@"))


class _TokenRepair:
    def __init__(self, findings: QueryFindings, tokens: list[Token]) -> None:
        self.findings = findings
        self.text = findings.source.text
        self.old = tokens
        self.starts = [t.span.start for t in tokens]
        self.new: list[Token] = []
        self.replaced: list[Span] = []
        self.dropped: list[LexicalProblem] = []

    def tokens(self) -> list[Token]:
        gone: set[int] = set()
        for span in self.replaced:
            first, last = bisect_left(self.starts, span.start), bisect_left(self.starts, span.end)
            gone.update(range(first, last))
        gone.discard(len(self.old) - 1)
        kept = [t for i, t in enumerate(self.old) if i not in gone]
        return sorted([*kept, *self.new], key=lambda t: (t.span.start, t.span.end))

    def treat(self, problem: LexicalProblem) -> None:
        start = problem.span.start
        if self.replaced and start < self.replaced[-1].end:
            return  # Inside something that was replaced as a whole.
        if problem.kind is not LexicalKind.ILLEGAL_CHARACTER:
            self._report(problem)
            return
        if self._in_arrow(problem):
            self.dropped.append(problem)
            return  # The parser reports the arrow as a whole: `-[` is nothing else.
        written = self.text[start : problem.span.end]
        if written in _WORDS:
            self._operator_word(problem, written)
        elif written[0] in _QUOTES and self._closing_quote(start) >= 0:
            self._quoted(problem, self._closing_quote(start))
        elif written[0] == "#":
            self._report(problem)
            end = self.text.find("\n", start)
            self.replaced.append(Span(start=start, end=end if end >= 0 else len(self.text)))
        elif written == "$" and self._next(problem).span.start == problem.span.end:
            self._odd_variable(problem)
        elif written[0] in _ARITHMETIC:
            self._arithmetic(problem, written)
        else:
            self._report(problem)
            self.dropped.append(problem)

    def _in_arrow(self, problem: LexicalProblem) -> bool:
        """Whether this stands in the brackets of an arrow, as in `-[:KNOWS*1..3]->`."""
        end = bisect_left(self.starts, problem.span.start)
        for at in range(end - 1, max(0, end - _LABEL_TOKENS_MAX), -1):
            if self.old[at].kind is TokenKind.PUNCT and self.old[at].text in "[]{}":
                return self.old[at].is_punct("[") and self.old[at - 1].is_punct("-")
        return False

    def lower(self, shouted: list[Token]) -> None:
        """Read shouted words as those that they shout."""
        replaced = list(self.replaced)
        starts = [span.start for span in replaced]
        for token in shouted:
            before = bisect_right(starts, token.span.start) - 1
            if before >= 0 and token.span.start < replaced[before].end:
                continue  # Inside something that was replaced as a whole.
            word = token.text.lower()
            self._replace(TokenKind.WORD, word, token.span)
            message = f"{token} is no word of the language"
            self._add(SyntaxCode.FOREIGN_OPERATOR, token.span, message, f"write `{word}`")

    def _operator_word(self, problem: LexicalProblem, written: str) -> None:
        word = _WORDS[written]
        self._replace(TokenKind.WORD, word, problem.span)
        message = f"`{written}` is no operator here"
        self._add(SyntaxCode.FOREIGN_OPERATOR, problem.span, message, f"write `{word}`")

    def _closing_quote(self, start: int) -> int:
        line_end = self.text.find("\n", start)
        end = line_end if line_end >= 0 else len(self.text)
        return self.text.find(_QUOTES[self.text[start]], start + 1, end)

    def _quoted(self, problem: LexicalProblem, closing: int) -> None:
        span = Span(start=problem.span.start, end=closing + 1)
        value = self.text[span.start + 1 : closing]
        self._replace(TokenKind.STRING, value, span)
        hint = problem.help.get("hint")
        if '"' not in value and "\\" not in value and value.isprintable():
            hint = f'write "{value}"'
        self._add(SyntaxCode.ILLEGAL_CHARACTER, span, problem.message, hint)

    def _odd_variable(self, problem: LexicalProblem) -> None:
        word = self._next(problem)
        if word.kind not in (TokenKind.WORD, TokenKind.INT, TokenKind.DIGIT_WORD):
            self._report(problem)
            self.dropped.append(problem)
            return
        span = problem.span.to(word.span)
        self._replace(TokenKind.VARIABLE, f"${word.text}", span)
        hint = problem.help.get("hint")
        if word.kind is TokenKind.WORD:
            lowered = f"{word.text[0].lower()}{word.text[1:]}"
            hint = f"variables start with a lower-case letter: `${lowered}`"
        self._add(SyntaxCode.ILLEGAL_CHARACTER, span, problem.message, hint)

    def _arithmetic(self, problem: LexicalProblem, written: str) -> None:
        self.dropped.append(problem)
        index = bisect_left(self.starts, problem.span.start)
        before = self.old[index - 1] if index else self.old[-1]
        after = self.old[index]
        if written == "*" and index > 1 and _is_hop(self.old[index - 2], before, after):
            self._star_hops(problem, index)
        elif written == "*" and _is_wildcard(before, after):
            counting = index > 1 and self.old[index - 2].is_word("count")
            hint = "name what you want: `$v` for the whole node, `$v.name` for a property"
            hint = "count a variable of the match: `count($v)`" if counting else hint
            message = "`*` does not stand for everything here"
            self._add(SyntaxCode.NO_STAR, problem.span, message, hint)
        else:
            message = f"`{written[0]}` is no operator here"
            self._add(SyntaxCode.NO_ARITHMETIC, problem.span, message, NO_ARITHMETIC_HINT)

    def _star_hops(self, problem: LexicalProblem, index: int) -> None:
        """`knows*1..3`: the bounds behind the star go with it."""
        word = self.old[index - 1]
        bounds: list[str] = []
        while self.old[index].kind is TokenKind.INT or self.old[index].is_punct(".."):
            bounds += [self.old[index].text] if self.old[index].kind is TokenKind.INT else []
            index += 1
        low, high = (bounds[0], bounds[-1]) if bounds else ("1", "3")
        hint = f"write the hops in braces: `{word.text}{{{low},{high}}}`"
        self._add(SyntaxCode.HOP_BOUNDS, problem.span, "`*` gives no hop bounds here", hint)
        self.replaced.append(Span(start=problem.span.start, end=self.starts[index]))

    def _next(self, problem: LexicalProblem) -> Token:
        return self.old[bisect_left(self.starts, problem.span.start)]

    def _replace(self, kind: TokenKind, text: str, span: Span) -> None:
        self.replaced.append(span)
        self.new.append(Token(kind=kind, text=text, span=span))

    def _report(self, problem: LexicalProblem) -> None:
        self.findings.add(_CODES[problem.kind], problem.span, problem.message, **problem.help)

    def _add(self, code: SyntaxCode, span: Span, message: str, hint: str | None) -> None:
        self.findings.add(code, span, message, hint=hint)


def _is_wildcard(before: Token, after: Token) -> bool:
    """Whether a star between these stands for everything, as in `count(*)` or `SELECT * FROM`."""
    opens = before.kind is TokenKind.PUNCT and before.text in ("(", "{", ",", ".")
    closes = after.kind is TokenKind.PUNCT and after.text in (")", "}", ",")
    return opens or closes or before.text.lower() in ("select", "return", "distinct")


def _is_hop(variable: Token, word: Token, after: Token) -> bool:
    """Whether a star between the last two is one as in `$a knows*1..3 $b`."""
    named = variable.kind is TokenKind.VARIABLE and word.is_identifier
    return named and after.kind in (TokenKind.INT, TokenKind.VARIABLE)


# -- words -----------------------------------------------------------------------------------------
# The words with a meaning in the query language, and what other languages say instead.
#
# Lists only. All words are contextual: a property may be called ``limit``, an alias ``order``.


BLOCK_PARTS = frozenset({"match", "return", "order"})
"""Parts of a read that are followed by a brace."""
COUNT_PARTS = frozenset({"limit", "offset"})
"""Parts of a read that are followed by a number or a parameter."""
READ_PARTS = ("match", "return", "order", "limit", "offset")
STATEMENTS = ("insert", "upsert", "update", "delete")
BODY_WORDS = (*READ_PARTS, *STATEMENTS)
BOUNDARIES = frozenset({"query", *BODY_WORDS})
QUERY_ANNOTATIONS = ("description", "instruction")

NOT_EDGE_WORDS = frozenset({"and", "or", "not", "in", "is"})
"""Behind a parameter these are operators; between two variables every other word names an edge."""
COMPARISONS: dict[str, CompareOp] = {
    op: cast(CompareOp, op) for op in ("=", "!=", "<", "<=", ">", ">=")
}
COMPARISON_WORDS: dict[str, CompareOp] = {
    word: cast(CompareOp, word) for word in ("contains", "starts_with")
}
TOUCHING_OPERATORS: dict[tuple[str, str], CompareOp] = {
    ("=", "="): "=",
    ("<", ">"): "!=",
    ("=", "<"): "<=",
    ("=", ">"): ">=",
}
"""Two tokens without a space between them that other languages read as one operator."""
FOREIGN_WORDS: dict[str, tuple[CompareOp, str]] = {
    "like": ("contains", "write `contains` or `starts_with`; `%` is an ordinary character"),
    "ilike": ("contains", "write `contains` or `starts_with`; `%` is an ordinary character"),
    "startswith": ("starts_with", "write `starts_with`"),
    "includes": ("contains", "write `contains`"),
    "equals": ("=", "write `=`"),
    "eq": ("=", "write `=`"),
    "between": (">=", "write two comparisons: `x >= low and x <= high`"),
}
"""Operators of other languages by their word in lower case."""
NAMES_FOLLOW = (*STATEMENTS, "into", "from")
"""Words behind which the name of a type stands, or would."""
WORDS = frozenset(
    {
        *BOUNDARIES, *NOT_EDGE_WORDS, *COMPARISON_WORDS, "null", "true", "false",
        "set", "where", "as", "asc", "desc", "by", "distinct", "optional", "exists", "count",
    }
)  # fmt: skip
"""All words with a meaning."""
FOREIGN_PARTS = {
    "select": "write `match { … }` first, then `return { … }`",
    "from": "write `match { … }` first, then `return { … }`",
    "with": "a query has one `match` and one `return`",
    "group": "rows are grouped by all projections that are no aggregates; leave `group by` out",
    "having": "a query cannot filter groups; filter the rows it returns",
    "sort": "write `order { … }`",
    "skip": "write `offset`",
    "union": "a query has one `match` and one `return`",
}
"""Parts of a read in other languages, and what to write instead."""
