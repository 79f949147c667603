"""The words with a meaning in the query language, and what other languages say instead.

Lists only. All words are contextual: a property may be called ``limit``, an alias ``order``.
"""

from __future__ import annotations

from typing import cast

from omnigraph.query.ast import CompareOp

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
"""Between two variables every other word is the name of an edge."""
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
SHOUTED = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE"})
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
