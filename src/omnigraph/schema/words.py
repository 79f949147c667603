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
ANNOTATIONS = (
    *CONSTRAINTS, "card", "embed", "description", "instruction", "rename_from", "backfill",
)  # fmt: skip
ENDPOINTS = ("src", "dst")
_NO_DEFAULT = (
    "write the value in the data; for rows that exist when a schema is applied there is `@backfill`"
)
_NULLABLE = "a property needs a value unless its type ends in `?`"
_RANGE = "write `@range(property, 0..10)` in the body of the node"
_CHECK = 'write `@check(property, "pattern")` in the body of the node'
_KEY = "write `@key`"
_EDGE = "write an edge: `edge Name: From -> To`"
FOREIGN_ANNOTATIONS = {
    **dict.fromkeys(("default", "defaultvalue", "initial", "autoincrement", "auto"), _NO_DEFAULT),
    **dict.fromkeys(("generated", "computed"), _NO_DEFAULT),
    **dict.fromkeys(("required", "notnull", "nonnull", "nullable", "optional"), _NULLABLE),
    **dict.fromkeys(("min", "max", "minimum", "maximum", "between"), _RANGE),
    **dict.fromkeys(("pattern", "regex", "regexp", "matches"), _CHECK),
    **dict.fromkeys(("length", "minlength", "maxlength"), _CHECK),
    **dict.fromkeys(("primary", "primarykey", "pk", "id"), _KEY),
    **dict.fromkeys(("foreignkey", "fk", "references", "relation"), _EDGE),
    "cardinality": "write `@card(0..1)` right behind the endpoints of the edge",
    "enum": "write the type `enum(a, b)`",
}
"""Annotations with which other languages ask for something, in lower case and without `_`.

Other words are kept and mean nothing; these would look as if they did.
"""
BASE_TYPES = tuple(str(s) for s in Scalar if s is not Scalar.VECTOR)
TYPE_WORDS = (*BASE_TYPES, "Vector", "enum")
TYPE_SHAPES = {"vector": ("Vector", "(8)"), "enum": ("enum", "(a, b)")}
"""Types with arguments by their word in lower case: the right spelling, and arguments to show."""
TYPE_ALIASES = {
    **dict.fromkeys(("int", "integer"), "`I32` or `I64`"),
    **dict.fromkeys(("int8", "int16", "int32", "short", "smallint"), "`I32`"),
    **dict.fromkeys(("int64", "long", "bigint"), "`I64`"),
    **dict.fromkeys(("uint8", "uint16", "uint32"), "`U32`"),
    **dict.fromkeys(("uint", "unsigned"), "`U32` or `U64`"),
    "uint64": "`U64`",
    **dict.fromkeys(("float", "real"), "`F32` or `F64`"),
    "float32": "`F32`",
    **dict.fromkeys(("float64", "double"), "`F64`"),
    "number": "`I64` or `F64`",
    **dict.fromkeys(("decimal", "numeric"), "`F64`, or `String` to keep every digit"),
    **dict.fromkeys(("text", "str", "char", "varchar", "uuid", "json"), "`String`"),
    "boolean": "`Bool`",
    **dict.fromkeys(("timestamp", "instant"), "`DateTime`"),
    **dict.fromkeys(("bytes", "binary"), "`Blob`"),
    **dict.fromkeys(("list", "array"), "`[String]` or another type in brackets"),
}
"""What other languages call our types, in lower case."""

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
