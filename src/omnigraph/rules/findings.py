"""What a rule found, before it is put into words.

    rule -> [findings] -> validate -> ConstraintError

A rule may break on a million rows and only the first few are shown, so a finding is an array of
positions plus a function that words one of them. Nothing here decides what is a violation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.arrow.sets import Positions
from omnigraph.errors import Violation
from omnigraph.rules.table_delta import TableDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFinding:
    """All places where one check failed in one table."""

    positions: Positions
    """Ascending: rows of the input, or ranks where no input row is to blame."""
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
