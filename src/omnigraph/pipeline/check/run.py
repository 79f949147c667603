"""All rules over one input on one snapshot: the local validator's answer, from many processes.

    subject -> verdict (one job) -> rules in doubt, exactly -> [run] -> Checked

Mostly the verdict is the end of it. Offending rows are looked for only by the rules in doubt, and
are put into words only when somebody reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.errors import ConstraintError, Violation
from omnigraph.pipeline.check.found import RANK, Found, violation_of
from omnigraph.pipeline.check.rules import inquiry
from omnigraph.pipeline.check.subject import Subject, union
from omnigraph.pipeline.check.verdict import ask
from omnigraph.write.validate import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    subject: Subject
    """What was checked, now with the knowledge which ids repeat."""
    superseded: Mapping[str, int]
    """By table key: rows that a later one of the same id replaces."""
    known: Mapping[str, int]
    """By table key: committed ids that the input names; none where it could not."""

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


def check(spark: SparkSession, subject: Subject, *, rows: int) -> Checked:
    """Check every rule. One job if all are kept; one more counts what breaks those in doubt.

    ``rows``: about how many the input has.
    """
    asked = inquiry(subject)
    answers = ask(spark, subject, asked.questions, rows=rows)
    repeated = {key: answers[question] for key, question in asked.repeats.items()}
    known = {key: answers[question] for key, question in asked.known.items()}
    doubted = [
        rule
        for rule in asked.rules
        if answers[rule.question] or (rule.doubtful_if_replacing and known.get(rule.table_key))
    ]
    subject = replace(
        subject,
        tables={
            key: replace(table, repeats=bool(repeated.get(key)))
            for key, table in subject.tables.items()
        },
    )
    found = [rule.explain(subject, subject.tables[rule.table_key]) for rule in doubted]
    counts = _counts(found)
    return Checked(
        subject=subject,
        found=tuple(found[i] for i in sorted(counts)),
        total=sum(counts.values()),
        conflicts=sum(n for i, n in counts.items() if found[i].is_conflict),
        superseded=repeated,
        known=known,
    )


def _counts(found: Sequence[Found]) -> dict[int, int]:
    """How many violations there are, by place in ``found``; rules that are kept are left out."""
    from pyspark.sql import functions as F

    if not found:
        return {}
    numbered = [f.count.select(F.lit(i).alias("rule"), "n") for i, f in enumerate(found)]
    counted = union(numbered).groupBy("rule").agg(F.sum("n").alias("n")).where("n > 0")
    return {row["rule"]: row["n"] for row in counted.collect()}
