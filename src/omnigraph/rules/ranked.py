"""What rules found in tasks, as rows that the driver puts in order.

    exact pass -> [ranked] -> the first violations, their number, all of them

Every violation carries its rank, so that the first ones come in the local validator's order. A task
that is asked for the first few gives only those of its own, and how many there are in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from omnigraph.arrow.ddl import schema_of
from omnigraph.errors import Violation
from omnigraph.rules.findings import RuleFinding, count
from omnigraph.rules.table_delta import FILE, LINE

RANK = ("table", "stage", "rank", "file", "line", "name", "number")
"""By these violations are ordered."""
FOUND_DDL = (
    "table int, stage int, rank int, file int, line bigint, name string, number int, rule string, "
    "message string, entity_kind string, type_name string, entity_id string, "
    "property_name string, source string, source_line bigint, n bigint, conflict boolean"
)
_FOUND = schema_of(FOUND_DDL)
_SAID = (
    "rule", "message", "entity_kind", "type_name", "entity_id", "property_name", "source",
)  # fmt: skip
"""Fields of a violation that are columns of the same name; its line is `source_line`."""

VALUES, IDENTITY, ENDPOINTS, SURVIVORS, CARDINALITY = range(5)
"""The stages of the local validator: violations of one table are reported stage by stage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePlace:
    """Where the violations of one rule stand among all."""

    table: int
    stage: int
    number: int = 0
    rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedViolation:
    """One violation with what it is ordered by inside its rule."""

    violation: Violation
    place: RulePlace
    file: int = -1
    line: int = 0
    name: str = ""


Found = tuple[list[RankedViolation], int]
"""The first violations, as many as were asked for, and how many there are."""
NOTHING: Found = ([], 0)


def ranked_findings(
    findings: Sequence[RuleFinding], rows: pa.Table, place: RulePlace, limit: int | None
) -> Found:
    """The first violations of findings on rows of the input, and how many there are.

    Findings on one row keep their order.
    """
    files, lines = rows.column(FILE).to_numpy(), rows.column(LINE).to_numpy()
    heads = [
        (int(files[row]), int(lines[row]), number, index)
        for number, finding in enumerate(findings)
        for index, row in enumerate(finding.positions[:limit])
    ]
    ranked = [
        RankedViolation(
            violation=findings[number].word(index),
            place=replace(place, number=place.number + number),
            file=file,
            line=line,
        )
        for file, line, number, index in sorted(heads)[:limit]
    ]
    return ranked, count(findings)


def found_table(
    ranked: Iterable[RankedViolation], total: int, place: RulePlace, *, conflict: bool
) -> pa.Table:
    """Violations of one rule and their number, as Spark takes them."""
    rows = [_row(one) for one in ranked]
    if total:
        rows.append({"table": place.table, "n": total, "conflict": conflict})
    return pa.Table.from_pylist(rows, schema=_FOUND)


def nothing_found() -> pa.Table:
    """No violation and no number."""
    return _FOUND.empty_table()


def violation_of(row: Any) -> Violation:
    """A row that is a violation, as that."""
    return Violation(line=row["source_line"], **{name: row[name] for name in _SAID})


def _row(ranked: RankedViolation) -> dict[str, Any]:
    said = {name: getattr(ranked.violation, name) for name in _SAID}
    inside = {"file": ranked.file, "line": ranked.line, "name": ranked.name}
    return asdict(ranked.place) | inside | said | {"source_line": ranked.violation.line, "n": 0}
