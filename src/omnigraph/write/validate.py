"""The one validator: everything that is written passes here.

    load | mutate | merge -> delta -> [validate] -> stage -> publish

Phases: (1) the input by itself, on all cores; (2) the image of each table, one read by id; (3) the
resulting state: unique tuples, endpoints, cardinality. All broken rules are counted and the first
ones are reported, in a fixed order: by table in the delta, by rule, by row. Nothing is written
here, and the committed state is read through `CommittedState` alone, from the calling thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.arrow.sets import NO_POSITIONS, without
from omnigraph.errors import ConstraintError, ErrorKind, Violation
from omnigraph.rules.cardinality import check_cardinality
from omnigraph.rules.endpoints import check_endpoints, check_survivors
from omnigraph.rules.findings import Positions, RuleFinding, count, first
from omnigraph.rules.identity import (
    check_conflicts,
    check_derived,
    check_identity,
    repeated_ids,
)
from omnigraph.rules.image import TableImage, build_image
from omnigraph.rules.table_delta import NO_IDS, CommittedState, Job, TableDelta, run
from omnigraph.rules.unique import check_committed, check_repeats, unique_groups
from omnigraph.rules.values import check_values
from omnigraph.schema.catalog import Catalog
from omnigraph.write.txn import GraphDelta


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOutcome:
    """What a valid delta does to one table."""

    rows: pa.Table
    """The final image: the last row of every id, without those that are committed as they are."""
    matched: pa.StringArray
    """Ids in ``rows`` that exist already. Empty for an overwrite, which replaces everything."""
    removed: pa.StringArray
    """Ids that exist and disappear. For an overwrite only where a rule had to know them."""
    inserted_count: int
    updated_count: int
    deleted_count: int
    unchanged_count: int = 0
    """Rows that are committed as they are, and are left out."""

    @staticmethod
    def of_new(rows: pa.Table) -> TableOutcome:
        """What rows do that are all new."""
        return TableOutcome(
            rows=rows,
            matched=NO_IDS,
            removed=NO_IDS,
            inserted_count=rows.num_rows,
            updated_count=0,
            deleted_count=0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated:
    """A delta that keeps every rule of the schema on the state it was checked against."""

    tables: Mapping[str, TableOutcome]
    """By table key, in the order of the delta."""

    @property
    def unchanged(self) -> dict[str, int]:
        """By table key: rows that are committed as they are."""
        counts = {key: table.unchanged_count for key, table in self.tables.items()}
        return {key: count for key, count in counts.items() if count}


@dataclass(slots=True, kw_only=True)
class _Findings:
    """What the rules found in one table, in the order of the rules."""

    values: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())
    identity: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())
    repeats: dict[tuple[str, ...], list[RuleFinding]] = field(
        default_factory=lambda: dict[tuple[str, ...], list[RuleFinding]]()
    )
    committed: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())
    endpoints: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())
    survivors: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())
    cardinality: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())
    superseded: Positions = field(default_factory=lambda: NO_POSITIONS)
    """Rows that a later row of the same id replaces."""

    def in_order(self) -> list[Sequence[RuleFinding]]:
        """The findings of each rule; within one they are in the order of rows."""
        repeats = [f for group in self.repeats.values() for f in group]
        return [
            self.values,
            [*self.identity, *repeats, *self.committed],
            self.endpoints,
            # Every edge table that loses a node for itself: their ranks have nothing in common.
            *([survivor] for survivor in self.survivors),
            self.cardinality,
        ]


def validate(
    catalog: Catalog,
    delta: GraphDelta,
    committed: CommittedState,
    *,
    violations_max: int = 20,
) -> Validated:
    """Check every rule of the schema over a delta; raise `ConstraintError` where one is broken.

    The error counts all violations and carries the first ``violations_max``. Its kind is
    ``key_conflict`` when strict inserts of existing ids are all that is wrong.
    """
    found = {key: _Findings() for key in delta.tables}
    run([job for key, table in delta.tables.items() for job in _input_jobs(table, found[key])])
    images = {
        key: build_image(catalog, delta.tables, table, found[key].superseded, committed)
        for key, table in delta.tables.items()
    }
    endpoints = check_endpoints(images, committed)
    for key, image in images.items():
        own = found[key]
        own.committed = check_conflicts(image)
        for group in unique_groups(image.delta.type):
            own.committed += check_committed(image, group, committed)
        own.endpoints = endpoints.get(key, [])
        own.survivors = check_survivors(catalog, images, image, committed)
        own.cardinality = check_cardinality(images, image, committed)
    _raise_if_any(found, violations_max)
    return Validated(tables={key: _outcome(image) for key, image in images.items()})


def _input_jobs(table: TableDelta, found: _Findings) -> list[Job]:
    """The checks that need the input alone, each with the rows it looks at."""
    rows = table.rows.num_rows

    def values() -> None:
        found.values = check_values(table)

    def identity() -> None:
        if len(repeats := repeated_ids(table)):
            found.identity = check_identity(table, repeats)
            found.superseded = repeats.superseded()
        if table.ids_foreign:
            found.identity = [*found.identity, *check_derived(table)]

    def repeats(group: tuple[str, ...]) -> None:
        found.repeats[group] = check_repeats(table, group)

    jobs: list[Job] = [(rows, values), (rows, identity)]
    for group in unique_groups(table.type):
        found.repeats[group] = []  # fixes the order before threads fill it
        jobs.append((rows, lambda group=group: repeats(group)))
    return jobs


def _raise_if_any(found: Mapping[str, _Findings], violations_max: int) -> None:
    stages = [stage for own in found.values() for stage in own.in_order()]
    total = sum(count(stage) for stage in stages)
    if not total:
        return
    shown: list[Violation] = []
    for stage in stages:
        shown += first(stage, violations_max - len(shown))
    conflicts = sum(count([f]) for stage in stages for f in stage if f.is_conflict)
    raise refusal(shown, total=total, conflicts=conflicts)


def refusal(shown: Sequence[Violation], *, total: int, conflicts: int) -> ConstraintError:
    """The error for broken rules; another one when only strict inserts met existing ids."""
    if conflicts == total:
        return ConstraintError(
            shown,
            total=total,
            kind=ErrorKind.KEY_CONFLICT,
            hint="mode 'append' only inserts; 'merge' replaces entities that exist",
        )
    return ConstraintError(shown, total=total)


def _outcome(image: TableImage) -> TableOutcome:
    rows, matched = image.rows, image.matched
    if len(image.unchanged):
        matched = without(matched, rows.column("id").take(pa.array(image.unchanged)))
        written = np.ones(rows.num_rows, np.bool_)
        written[image.unchanged] = False
        rows = rows.filter(pa.array(written))
    return TableOutcome(
        rows=rows,
        matched=matched,
        removed=image.removed,
        inserted_count=image.inserted_count,
        updated_count=image.updated_count,
        deleted_count=image.deleted_count,
        unchanged_count=len(image.unchanged),
    )
