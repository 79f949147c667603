"""A literal of the schema language as a value of a property's type.

    `@backfill(0)` -> [literals] -> rules (is it one?), migration (which one?)

Texts stand for texts, enum values, days and instants; numbers for numbers, exactly or rounded once
as data would be. Lists, vectors and blobs have no literals.
"""

from __future__ import annotations

from fractions import Fraction

from omnigraph.schema import ast, temporal
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.resolve import bound_value

Literal = str | int | float | bool
"""Days and instants as whole numbers since 1970: the values that Arrow stores."""


def literal_value(value: ast.Value, wanted: PropertyType) -> Literal | None:
    """The value that is meant, or None if the literal is none of this type."""
    if wanted.is_list or wanted.scalar in (Scalar.VECTOR, Scalar.BLOB):
        return None
    if value.kind == "bool":
        return value.text == "true" if wanted.scalar is Scalar.BOOL else None
    if value.kind == "number":
        numeric = wanted.scalar.is_numeric
        return bound_value(Fraction(value.text), wanted.scalar) if numeric else None
    if value.kind != "string":
        return None
    if wanted.enum_values is not None:
        return value.text if value.text in wanted.enum_values else None
    match wanted.scalar:
        case Scalar.STRING:
            return value.text
        case Scalar.DATE:
            return temporal.parse_day(value.text)
        case Scalar.DATETIME:
            return temporal.parse_instant(value.text)
        case _:
            return None


def literal_hint(wanted: PropertyType) -> str:
    """How a literal of this type is written."""
    if wanted.is_list or wanted.scalar in (Scalar.VECTOR, Scalar.BLOB):
        return f"`{wanted}` has no literals; name a property to copy, without quotes"
    if wanted.enum_values is not None:
        return f'write one of its values in quotes: "{wanted.enum_values[0]}"'
    examples = {
        Scalar.STRING: '"text"',
        Scalar.BOOL: "true",
        Scalar.DATE: '"2026-11-15"',
        Scalar.DATETIME: '"2026-11-15T10:00:00Z"',
        Scalar.F32: "0.5",
        Scalar.F64: "0.5",
    }
    return f"write for example `@backfill({examples.get(wanted.scalar, '0')})`"
