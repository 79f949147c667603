"""Every code that a text which cannot be read can have, with one line of explanation.

Codes are stable: append, never renumber or reuse. Q00x = characters, Q01x to Q03x = syntax; the
codes of what can be read but has no meaning stand in ``omnigraph.query.codes``. Each has a case
under ``tests/golden/query/parse``.
"""

from __future__ import annotations

from enum import StrEnum


class SyntaxCode(StrEnum):
    """Stable code of a syntax finding."""

    ILLEGAL_CHARACTER = "Q001"
    UNTERMINATED_STRING = "Q002"
    UNTERMINATED_COMMENT = "Q003"
    UNSUPPORTED_ESCAPE = "Q004"
    LONG_NUMBER = "Q005"

    UNEXPECTED_TOKEN = "Q010"
    TYPE_NAME_CASE = "Q011"
    NAME_CASE = "Q012"
    EMPTY_TEXT = "Q013"
    NO_QUERY = "Q014"
    BLOCK_NOT_CLOSED = "Q015"
    EMPTY_BLOCK = "Q016"
    PART_ORDER = "Q017"
    REPEATED_PART = "Q018"
    RETURN_MISSING = "Q019"
    FOREIGN_OPERATOR = "Q020"
    HOP_BOUNDS = "Q021"
    NESTED_TOO_DEEP = "Q022"
    CHAINED_COMPARISON = "Q023"
    NO_ARITHMETIC = "Q024"
    MIXED_BODY = "Q025"
    NUMBER_FORM = "Q026"
    WHERE_MISPLACED = "Q027"
    WHERE_MISSING = "Q028"
    QUERY_ANNOTATION = "Q029"
    DOLLAR_MISSING = "Q030"
    NO_STAR = "Q031"


SYNTAX_EXPLANATIONS: dict[SyntaxCode, str] = {
    SyntaxCode.ILLEGAL_CHARACTER: "a character that no token starts with",
    SyntaxCode.UNTERMINATED_STRING: "a string without its closing quote",
    SyntaxCode.UNTERMINATED_COMMENT: "a /* comment without its */",
    SyntaxCode.UNSUPPORTED_ESCAPE: "a backslash sequence that strings do not know",
    SyntaxCode.LONG_NUMBER: "a number with absurdly many digits",
    SyntaxCode.UNEXPECTED_TOKEN: "something else has to stand here",
    SyntaxCode.TYPE_NAME_CASE: "names of types start with an upper-case letter",
    SyntaxCode.NAME_CASE: "all names but those of types start with a lower-case letter or _",
    SyntaxCode.EMPTY_TEXT: "the text holds no query",
    SyntaxCode.NO_QUERY: "a text consists of named queries, or of one query without a name",
    SyntaxCode.BLOCK_NOT_CLOSED: "a block without its closing brace",
    SyntaxCode.EMPTY_BLOCK: "a block with nothing in it",
    SyntaxCode.PART_ORDER: "the parts of a query stand in another order than they have to",
    SyntaxCode.REPEATED_PART: "a part that may stand once stands twice",
    SyntaxCode.RETURN_MISSING: "a read without a return block",
    SyntaxCode.FOREIGN_OPERATOR: "an operator or literal as other languages write it",
    SyntaxCode.HOP_BOUNDS: "hop bounds that are not written {low,high}",
    SyntaxCode.NESTED_TOO_DEEP: "parentheses, lists or blocks nested too deeply",
    SyntaxCode.CHAINED_COMPARISON: "a comparison of a comparison, such as a < b < c",
    SyntaxCode.NO_ARITHMETIC: "queries do not calculate",
    SyntaxCode.MIXED_BODY: "a query either reads or changes data, never both",
    SyntaxCode.NUMBER_FORM: "a number that is not plain digits with at most one point inside",
    SyntaxCode.WHERE_MISPLACED: "where belongs to update and delete only",
    SyntaxCode.WHERE_MISSING: "an update or delete that does not say which rows it is for",
    SyntaxCode.QUERY_ANNOTATION: "queries know @description and @instruction only",
    SyntaxCode.DOLLAR_MISSING: "a variable without its dollar sign",
    SyntaxCode.NO_STAR: "a star does not stand for everything",
}
