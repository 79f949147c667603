"""Every code that a text which cannot be read can have, with one line of explanation.

Codes are stable: append, never renumber or reuse. Q00x = characters, Q01x to Q03x = syntax; the
codes of what can be read but has no meaning stand in ``omnigraph.query.codes``. Each has a case
under ``tests/golden/query/parse``.
"""

from __future__ import annotations

from omnigraph.lang.source import ExplainedCode


class SyntaxCode(ExplainedCode):
    """Stable code of a syntax finding."""

    ILLEGAL_CHARACTER = "Q001", "a character that no token starts with"
    UNTERMINATED_STRING = "Q002", "a string without its closing quote"
    UNTERMINATED_COMMENT = "Q003", "a /* comment without its */"
    UNSUPPORTED_ESCAPE = "Q004", "a backslash sequence that strings do not know"
    LONG_NUMBER = "Q005", "a number with absurdly many digits"

    UNEXPECTED_TOKEN = "Q010", "something else has to stand here"
    TYPE_NAME_CASE = "Q011", "names of types start with an upper-case letter"
    NAME_CASE = "Q012", "all names but those of types start with a lower-case letter or _"
    EMPTY_TEXT = "Q013", "the text holds no query"
    NO_QUERY = "Q014", "a text consists of named queries, or of one query without a name"
    BLOCK_NOT_CLOSED = "Q015", "a block without its closing brace"
    EMPTY_BLOCK = "Q016", "a block with nothing in it"
    PART_ORDER = "Q017", "the parts of a query stand in another order than they have to"
    REPEATED_PART = "Q018", "a part that may stand once stands twice"
    RETURN_MISSING = "Q019", "a read without a return block"
    FOREIGN_OPERATOR = "Q020", "an operator or literal as other languages write it"
    HOP_BOUNDS = "Q021", "hop bounds that are not written {low,high}"
    NESTED_TOO_DEEP = "Q022", "parentheses, lists or blocks nested too deeply"
    CHAINED_COMPARISON = "Q023", "a comparison of a comparison, such as a < b < c"
    NO_ARITHMETIC = "Q024", "queries do not calculate"
    MIXED_BODY = "Q025", "a query either reads or changes data, never both"
    NUMBER_FORM = "Q026", "a number that is not plain digits with at most one point inside"
    WHERE_MISPLACED = "Q027", "where belongs to update and delete only"
    WHERE_MISSING = "Q028", "an update or delete that does not say which rows it is for"
    QUERY_ANNOTATION = "Q029", "queries know @description and @instruction only"
    DOLLAR_MISSING = "Q030", "a variable without its dollar sign"
    NO_STAR = "Q031", "a star does not stand for everything"
