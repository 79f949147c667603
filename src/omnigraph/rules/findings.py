"""What a rule found, before it is put into words.

    rule -> [findings] -> validate -> ConstraintError

A rule may break on a million rows and only the first few are shown, so a finding is an array of
positions plus a function that words one of them. Nothing here decides what is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.arrow.sets import Positions
from omnigraph.errors import Violation
from omnigraph.rules.table_delta import TableDelta
from omnigraph.schema.catalog import EdgeType, GraphType, Property


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """All places where one check failed in one table."""

    positions: Positions
    """Ascending: rows of the input, or ranks where no input row is the cause."""
    word: Callable[[int], Violation]
    """Words the violation at an index of ``positions``."""
    is_conflict: bool = False
    """A strict insert met an id that exists: the caller lost a race or repeats itself."""


def count(findings: Sequence[RuleFinding]) -> int:
    """How many violations these are."""
    return sum(len(f.positions) for f in findings)


def first(findings: Sequence[RuleFinding], limit: int) -> list[Violation]:
    """The first ``limit`` violations by position; at one position in the order of the findings."""
    heads = [
        (int(position), number, index)
        for number, finding in enumerate(findings)
        for index, position in enumerate(finding.positions[:limit])
    ]
    return [findings[number].word(index) for _, number, index in sorted(heads)[:limit]]


def row_finding(
    delta: TableDelta,
    positions: Positions,
    *,
    rule: str,
    property_name: str | None,
    message: Callable[[int], str],
    is_conflict: bool = False,
) -> list[RuleFinding]:
    """A finding on input rows; none when there are no positions. ``message`` takes an index."""
    if not len(positions):
        return []

    def word(index: int) -> Violation:
        return row_violation(
            delta,
            int(positions[index]),
            rule=rule,
            property_name=property_name,
            message=message(index),
        )

    return [RuleFinding(positions=positions, word=word, is_conflict=is_conflict)]


def row_violation(
    delta: TableDelta, row: int, *, rule: str, message: str, property_name: str | None
) -> Violation:
    """A violation by one input row, with the entity and the place it came from."""
    source, line = delta.origins.at(row) if delta.origins else (None, None)
    return Violation(
        rule=rule,
        message=message,
        entity_kind=delta.type.kind,
        type_name=delta.type.name,
        entity_id=delta.rows.column("id")[row].as_py(),
        property_name=property_name,
        source=source,
        line=line,
    )


def member_values(rows: pa.Table, members: Sequence[str], row: int) -> list[object]:
    """The values of a group of columns in one row."""
    return [rows.column(m)[row].as_py() for m in members]


# -- words -----------------------------------------------------------------------------------------
# The sentences of the rules that look at more than one row.
#
#     rule -> finding -> [words] -> Violation
#
# A rule says what it found in the same words, carried out in one process or in many. All
# functions take plain values; nothing here looks anything up.


TEXT_LENGTH_MAX = 120
"""Longer values are cut in messages: a megabyte of text is no help."""

Place = tuple[str, int]
"""Source and line of a row."""


def text_of(value: Any) -> str:
    """A value as people write it, cut when it is long."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= TEXT_LENGTH_MAX else text[: TEXT_LENGTH_MAX - 1] + "…"


def member_name(members: Sequence[str]) -> str:
    """``p`` or ``(a, b)``: how messages name a group of columns."""
    return members[0] if len(members) == 1 else f"({', '.join(members)})"


def member_text(values: Sequence[Any]) -> str:
    """``'v'`` or ``(v1, v2)``: the values of a group of columns in one row."""
    texts = [text_of(value) for value in values]
    return f"'{texts[0]}'" if len(texts) == 1 else f"({', '.join(texts)})"


def single(members: Sequence[str]) -> str | None:
    """The property that a violation is reported at: none where several together are the cause."""
    return members[0] if len(members) == 1 else None


def repeated_key(
    graph_type: GraphType,
    members: Sequence[str],
    values: Sequence[Any],
    places: tuple[Place, Place] | None,
) -> str:
    """An identity twice in one input: the row that had it first, then this one."""
    where = f"{graph_type.name}.{member_name(members)}"
    message = f"@key violation on {where}: value {member_text(values)} repeated in the input"
    if places is None:
        return message
    one, other = places
    return f"{message} ({one[0]}:{one[1]} and {other[0]}:{other[1]})"


def held_twice(
    graph_type: GraphType,
    group: Sequence[str],
    values: Sequence[Any],
    holder: str | None,
    entity_id: str | None,
) -> str:
    """A unique tuple of two entities: the one that had it before, then this one."""
    return (
        f"@unique violation on {graph_type.name}.{member_name(group)}: "
        f"value {member_text(values)} held by '{text_of(holder)}' and '{text_of(entity_id)}'"
    )


def exists_already(graph_type: GraphType, entity_id: str) -> str:
    """A strict insert of an id that is taken."""
    return f"key conflict on {graph_type.name}: '{text_of(entity_id)}' exists already"


def end_missing(column: str, node_id: str, node_name: str) -> str:
    """An edge of the input without its node."""
    return f"{column} '{text_of(node_id)}' not found in {node_name}"


def survivor(edge: EdgeType, column: str, edge_id: str, node_id: str) -> Violation:
    """A committed edge that stays although its node goes."""
    node_name = edge.source if column == "src" else edge.target
    return Violation(
        rule="endpoint",
        message=f"edge {edge.name} '{text_of(edge_id)}': {end_missing(column, node_id, node_name)}",
        entity_kind="edge",
        type_name=edge.name,
        entity_id=edge_id,
        property_name=column,
    )


def out_of_bounds(edge: EdgeType, source: str, number: int) -> str:
    """A source with too many or too few edges."""
    low, high = edge.cardinality.low, edge.cardinality.high
    bound = f"min {low}" if number < low else f"max {high}"
    return (
        f"@card violation on edge {edge.name}: "
        f"source '{text_of(source)}' has {number} edges ({bound})"
    )


def not_derived(
    graph_type: GraphType, members: Sequence[str], values: Sequence[Any], entity_id: str
) -> str:
    """An id that another key was made of."""
    where = f"{graph_type.name}.{member_name(members)}"
    return (
        f"@key violation on {where}: id '{text_of(entity_id)}' does not follow from "
        f"{member_text(values)}"
    )


def no_place(graph_type: GraphType, prop: Property, value: Any) -> str:
    """A value that a type does not have."""
    return (
        f"value {text_of(value)!r} of {graph_type.name}.{prop.name} has no place in "
        f"{replace(prop.type, nullable=False)}"
    )
