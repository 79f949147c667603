"""The words with a meaning in the schema language, in one place.

Lists only; what the words mean is said by the parser, the rules and ``build``.
"""

from __future__ import annotations

from omnigraph.schema.catalog import Scalar

DECLARATIONS = ("interface", "node", "edge")
CONSTRAINTS = ("key", "unique", "index", "range", "check")
"""Words that, with parentheses, are a body line; without, an annotation."""
GROUPS = ("key", "unique", "index")
"""Constraints over a group of members."""
ANNOTATIONS = (*CONSTRAINTS, "card", "embed", "description", "instruction", "rename_from")
ENDPOINTS = ("src", "dst")
BASE_TYPES = tuple(str(s) for s in Scalar if s is not Scalar.VECTOR)
TYPE_WORDS = (*BASE_TYPES, "Vector", "enum")

RESERVED_NAMES = frozenset(
    {
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
        "_distance",
        "_score",
        "_tombstone",
    }
)
RESERVED_EDGE_NAMES = frozenset({"id", "src", "dst", "from", "to"})

VECTOR_SIZE_MAX = 2**31 - 1
CARD_MAX = 2**63 - 1
