"""All rules over one input on one snapshot: the local validator's answer, from many processes.

    subject -> [run: count what every rule finds -> put the first ones into words] -> Checked

Counting is one job over all rules of all tables, and mostly it finds nothing. Offending rows are
fetched and worded only when there are some, and only by the rules that found them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import ConstraintError, Violation
from omnigraph.pipeline.check.cardinality import cardinality_found
from omnigraph.pipeline.check.endpoints import endpoints_found, survivors_found
from omnigraph.pipeline.check.found import RANK, Found, violation_of
from omnigraph.pipeline.check.subject import Subject, union, with_repeats
from omnigraph.pipeline.check.unique import identity_found
from omnigraph.pipeline.check.values import values_found
from omnigraph.write.validate import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIOLATIONS_MAX = 20
"""As many are told by an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the rules say about an input."""

    found: tuple[Found, ...]
    """Only of rules that are broken."""
    total: int
    """All violations."""
    conflicts: int
    """Those that are strict inserts of existing ids."""

    def frame(self) -> DataFrame | None:
        """All violations in ``VIOLATIONS_DDL``, in no order; None where there are none."""
        return union([f.violations for f in self.found]) if self.found else None

    def violations(self, limit: int = VIOLATIONS_MAX) -> list[Violation]:
        """The first violations: by table, by rule, by row."""
        frame = self.frame()
        if frame is None or limit <= 0:
            return []
        return [violation_of(row) for row in frame.orderBy(*RANK).limit(limit).collect()]

    def every(self) -> Iterator[Violation]:
        """All violations in order; they pass through the driver a part at a time."""
        frame = self.frame()
        if frame is not None:
            yield from map(violation_of, frame.orderBy(*RANK).toLocalIterator())

    def refusal(self, limit: int = VIOLATIONS_MAX) -> ConstraintError:
        """The error that tells the first of them."""
        return refusal(self.violations(limit), total=self.total, conflicts=self.conflicts)


def check(subject: Subject) -> Checked:
    """Check every rule. Two jobs, of which the first looks for repeated ids."""
    from pyspark.sql import functions as F

    asked = list(_all_rules(with_repeats(subject)))
    if not asked:
        return Checked(found=(), total=0, conflicts=0)
    numbered = [f.count.select(F.lit(i).alias("rule"), "n") for i, f in enumerate(asked)]
    counted = union(numbered).groupBy("rule").agg(F.sum("n").alias("n")).where("n > 0")
    counts = {row["rule"]: row["n"] for row in counted.collect()}
    return Checked(
        found=tuple(asked[i] for i in sorted(counts)),
        total=sum(counts.values()),
        conflicts=sum(n for i, n in counts.items() if asked[i].is_conflict),
    )


def _all_rules(subject: Subject) -> Iterator[Found]:
    for number, table in enumerate(subject.tables.values()):
        yield values_found(subject, number, table)
        yield from identity_found(subject, number, table)
        yield from endpoints_found(subject, number, table)
        yield from survivors_found(subject, number, table)
        yield from cardinality_found(subject, number, table)
