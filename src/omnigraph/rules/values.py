"""Rule 1: every value for itself. Needs the input alone and reads nothing.

Required values, ``@range``, ``@check``, enum membership, list elements that are null, floats that
are not finite. Null is exempt from all but the first.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import NO_POSITIONS, true_at
from omnigraph.rules.bucket import Bucket, RuleOnInput
from omnigraph.rules.digest import Sided
from omnigraph.rules.findings import Positions, RuleFinding, count, row_finding, text_of
from omnigraph.rules.identity import identity_members
from omnigraph.rules.ranked import found_table
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.catalog import Check, GraphType, NodeType, Property, Range, Scalar

_INTEGER_BOUNDS = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}


def check_values(delta: TableDelta) -> list[RuleFinding]:
    """All violations of rule 1 in the input, superseded rows included."""
    if not delta.rows.num_rows:
        return []
    found = _required(delta)
    if isinstance(delta.type, NodeType):
        for bounds in delta.type.ranges:
            found += _range(delta, bounds)
        for check in delta.type.checks:
            found += _check(delta, check)
    for prop in delta.type.properties:
        found += _enum(delta, prop) + _elements(delta, prop) + _finite(delta, prop)
    return found


def _required(delta: TableDelta) -> list[RuleFinding]:
    own = [p.name for p in delta.type.properties if not p.type.nullable]
    found: list[RuleFinding] = []
    for name in dict.fromkeys((*delta.type.system_columns, *own)):
        column = delta.rows.column(name)
        if not column.null_count:
            continue
        missing = column.is_null()
        if name == "id":
            # A null member leaves the id null: one mistake, so it is reported once, at the member.
            for member in set(identity_members(delta.type)) - {"id"}:
                missing = pc.and_(missing, delta.rows.column(member).is_valid())
        message = f"missing required value for {delta.type.name}.{name}"
        found += row_finding(
            delta,
            true_at(missing),
            rule="required",
            property_name=name,
            message=lambda _, message=message: message,
        )
    return found


def _range(delta: TableDelta, bounds: Range) -> list[RuleFinding]:
    name = bounds.property_name
    column = delta.rows.column(name)
    outside = _outside(column, bounds, delta.type.by_name[name].type.scalar)
    low = "" if bounds.low is None else str(bounds.low)
    high = "" if bounds.high is None else str(bounds.high)

    def message(index: int) -> str:
        value = text_of(column[int(outside[index])].as_py())
        return f"@range violation on {delta.type.name}.{name}: value {value} not in {low}..{high}"

    return row_finding(delta, outside, rule="range", property_name=name, message=message)


def _outside(column: pa.ChunkedArray, bounds: Range, scalar: Scalar) -> Positions:
    """Rows outside the bounds, compared in the column's own type: 64-bit integers stay exact."""
    low, high = bounds.low, bounds.high
    masks: list[pa.ChunkedArray] = []
    if scalar in _INTEGER_BOUNDS:
        least, most = _INTEGER_BOUNDS[scalar]
        low = least if low is None or low == -math.inf else max(math.ceil(low), least)
        high = most if high is None or high == math.inf else min(math.floor(high), most)
        if low > most or high < least:
            return true_at(column.is_valid())
    else:
        masks.append(pc.is_nan(column))
    if low is not None:
        masks.append(pc.less(column, pa.scalar(low, column.type)))
    if high is not None:
        masks.append(pc.greater(column, pa.scalar(high, column.type)))
    parts = [true_at(mask) for mask in masks]
    hits = [part for part in parts if len(part)]
    return np.unique(np.concatenate(hits)) if hits else NO_POSITIONS


def _check(delta: TableDelta, check: Check) -> list[RuleFinding]:
    name = check.property_name
    column = delta.rows.column(name)
    # Each distinct text is searched once, however many rows hold it.
    distinct = pc.unique(column).drop_null()
    bad = texts_without(check.pattern, distinct)
    rows = true_at(pc.is_in(column, value_set=bad)) if len(bad) else NO_POSITIONS

    def message(index: int) -> str:
        value = text_of(column[int(rows[index])].as_py())
        return (
            f"@check violation on {delta.type.name}.{name}: "
            f"value '{value}' does not match \"{check.pattern}\""
        )

    return row_finding(delta, rows, rule="check", property_name=name, message=message)


def _enum(delta: TableDelta, prop: Property) -> list[RuleFinding]:
    allowed = prop.type.enum_values
    if allowed is None:
        return []
    column = delta.rows.column(prop.name)
    # A null in the set makes null a member: null is exempt.
    members = pa.array([*allowed, None], column.type)
    member = pc.is_in(column, value_set=members)
    rows = true_at(pc.invert(member))

    def message(index: int) -> str:
        value = text_of(column[int(rows[index])].as_py())
        return (
            f"invalid enum value '{value}' for {delta.type.name}.{prop.name} "
            f"(expected: {', '.join(allowed)})"
        )

    return row_finding(delta, rows, rule="enum", property_name=prop.name, message=message)


def _elements(delta: TableDelta, prop: Property) -> list[RuleFinding]:
    if not (prop.type.is_list or prop.type.scalar is Scalar.VECTOR):
        return []
    rows = _rows_of_elements(delta.rows.column(prop.name).chunks, pc.is_null, only_with_nulls=True)
    message = f"null element in {delta.type.name}.{prop.name}"
    return row_finding(
        delta, rows, rule="value", property_name=prop.name, message=lambda _: message
    )


def _finite(delta: TableDelta, prop: Property) -> list[RuleFinding]:
    if not (prop.type.scalar.is_float or prop.type.scalar is Scalar.VECTOR):
        return []
    column = delta.rows.column(prop.name)
    if prop.type.is_list or prop.type.scalar is Scalar.VECTOR:
        rows = _rows_of_elements(column.chunks, _not_finite)
    else:
        rows = true_at(_not_finite(column))
    message = f"non-finite value for {delta.type.name}.{prop.name}"
    return row_finding(
        delta, rows, rule="value", property_name=prop.name, message=lambda _: message
    )


def _not_finite(values: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    return pc.invert(pc.is_finite(values))


def _rows_of_elements(
    chunks: Sequence[pa.Array],
    test: Callable[[pa.Array], pa.Array],
    *,
    only_with_nulls: bool = False,
) -> Positions:
    """Rows of a list column with an element that passes the test."""
    start, found = 0, [NO_POSITIONS]
    for chunk in chunks:
        elements = chunk.flatten()
        if not only_with_nulls or elements.null_count:
            hits = true_at(test(elements))
            if len(hits):
                parents = pc.list_parent_indices(chunk).to_numpy()
                found.append(start + np.unique(parents[hits]))
        start += len(chunk)
    return np.concatenate(found)


# -- where rows are read: no other row is needed -------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenValues:
    """How often rows of a type break this rule; every task that reads rows adds its number."""

    type: GraphType

    @property
    def needs(self) -> tuple[Sided, ...]:
        """Nothing has to meet."""
        return ()

    def candidates(self, bucket: Bucket) -> int:
        """In no bucket of keys."""
        return 0

    def count(self, rows: pa.Table) -> int:
        """The number for some rows."""
        delta = TableDelta(type=self.type, mode=WriteMode.APPEND, rows=rows)
        return count(check_values(delta))


@dataclass(frozen=True, kw_only=True)
class ValueBroken(RuleOnInput):
    """A value that breaks this rule, in superseded rows, too."""

    def find_in(self, rows: pa.Table, limit: int | None) -> pa.Table:
        """What breaks the rule in some rows, as the driver collects it."""
        ranked, total = self.ranked(check_values(self.delta(rows)), rows, limit)
        return found_table(ranked, total, self.place, conflict=False)


# -- patterns --------------------------------------------------------------------------------------
# Patterns of ``@check``, searched in linear time wherever that is possible.
#
# Python's engine tries one way after another: on ``^(a+)+$`` and forty letters it does not come
# back. RE2, which Arrow brings along, cannot be caught like that, but its language is another one:
# ``$``, ``\d`` and ``\w`` mean something else. So a pattern is never handed over as it stands.
# Python's own parser reads it, and what it read is spelled in terms that mean the same to both.
# What has no such spelling (look-around, back references, ``\b``, flags, repetitions beyond RE2's
# limits) stays with Python.


_parser: Any = importlib.import_module("re._parser")
"""Not public in Python; an operation that this module does not know stays with Python's engine."""

_CATEGORIES = {"DIGIT": r"\d", "SPACE": r"\s", "WORD": r"\w"}
_UNIT = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
"""An escaped character, a set of characters, or a character for itself."""
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
_FLAGS = re.UNICODE | re.VERBOSE
"""Flags that change nothing once a pattern has been read."""


def texts_without(pattern: str, texts: pa.Array) -> pa.Array:
    """Those texts in which the pattern is found nowhere."""
    spelled = _accepted_by_re2(pattern)
    if spelled is not None:
        return texts.filter(pc.invert(pc.match_substring_regex(texts, pattern=spelled)))
    search = _compiled(pattern).search
    return pa.array([t for t in texts.to_pylist() if search(t) is None], texts.type)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_with_strict_end(pattern))


def _with_strict_end(pattern: str) -> str:
    r"""The pattern with ``\Z`` for ``$``, which also matches before a final line break in Python.

    A value that ends in one would pass ``^[A-Z]{3}$``. Where ``$`` is the end of lines it stays so.
    """
    if _MULTILINE.search(pattern):
        return pattern
    return _UNIT.sub(lambda unit: r"\Z" if unit[0] == "$" else unit[0], pattern)


@lru_cache(maxsize=256)
def _accepted_by_re2(pattern: str) -> str | None:
    spelled = re2_spelling(pattern)
    try:
        if spelled is not None:
            pc.match_substring_regex(pa.array([""]), pattern=spelled)
    except pa.ArrowInvalid:
        return None
    return spelled


def re2_spelling(pattern: str) -> str | None:
    """A pattern of RE2 that is found in the same texts as this one of Python, if there is one."""
    try:
        read = _parser.parse(_with_strict_end(pattern))
        if read.state.flags & ~_FLAGS:
            return None
        return _sequence(read)
    except (_NoSpelling, RecursionError):
        return None


class _NoSpelling(Exception):
    """RE2 has no word for this."""


def _sequence(items: Any) -> str:
    return "".join(_item(op.name, value) for op, value in items)


def _item(name: str, value: Any) -> str:
    """One operation."""
    match name, value:
        case "LITERAL", int():
            return _character(value)
        case "NOT_LITERAL", int():
            return f"[^{_character(value)}]"
        case "ANY", _:
            return r"[^\n]"
        case "IN", [*members]:
            return _set(members)
        case "AT", _:
            return _place(value.name)
        case "BRANCH", (_, branches):
            return f"(?:{'|'.join(_sequence(b) for b in branches)})"
        case "SUBPATTERN", (_, 0, 0, body):
            return f"(?:{_sequence(body)})"
        case (("MAX_REPEAT" | "MIN_REPEAT"), (low, high, body)):
            # Whether as much or as little as possible is taken decides what is found, not if.
            upper = "" if high == _parser.MAXREPEAT else int(high)
            return f"(?:{_sequence(body)}){{{int(low)},{upper}}}"
        case _:
            raise _NoSpelling(name)


def _place(name: str) -> str:
    if name in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
        return r"\A"
    if name == "AT_END_STRING":
        return r"\z"
    raise _NoSpelling(name)


def _set(members: Sequence[tuple[Any, Any]]) -> str:
    parts: list[str] = []
    for op, value in members:
        match op.name:
            case "NEGATE":
                parts.append("^")
            case "LITERAL":
                parts.append(_character(value))
            case "RANGE":
                parts.append(f"{_character(value[0])}-{_character(value[1])}")
            case "CATEGORY":
                parts.append(_category(value.name))
            case _:
                raise _NoSpelling(op.name)
    return f"[{''.join(parts)}]"


@lru_cache
def _category(name: str) -> str:
    r"""The members of ``\d``, ``\W`` …, asked of Python: RE2 has other tables."""
    words = name.removeprefix("CATEGORY_")
    escape = _CATEGORIES.get(words.removeprefix("NOT_"))
    if escape is None:
        raise _NoSpelling(name)
    wanted = escape.upper() if words.startswith("NOT_") else escape
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    runs = (found.span() for found in re.finditer(f"{wanted}+", every))
    return "".join(f"{_character(start)}-{_character(end - 1)}" for start, end in runs)


def _character(number: int) -> str:
    return f"\\x{{{number:X}}}"
