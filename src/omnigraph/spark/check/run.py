"""All rules over one input on one snapshot: the local validator's answer, from many processes.

    subject -> verdict (one job) -> rules in doubt, exactly (one job) -> [run] -> Checked

Mostly the verdict is the end of it. Offending rows are looked for only by the rules in doubt, and
are put into words only as far as they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.errors import ConstraintError, Violation
from omnigraph.spark.check.explain import explained
from omnigraph.spark.check.found import RANK, violation_of
from omnigraph.spark.check.rules import Rule, ValuesRule, ids_repeated, inquiry
from omnigraph.spark.check.subject import Subject
from omnigraph.spark.check.values import ValuesAsked
from omnigraph.spark.check.verdict import ask
from omnigraph.write.validate import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIOLATIONS_MAX = 20
"""As many are told by an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What the rules say about an input."""

    total: int
    """All violations."""
    conflicts: int
    """Those that are strict inserts of existing ids."""
    first: tuple[Violation, ...]
    """The first of them: by table, by rule, by row."""
    superseded: Mapping[str, int]
    """By table key: rows that a later one of the same id replaces."""
    known: Mapping[str, int]
    """By table key: committed ids that the input names; none where it could not."""
    _doubts: _Doubts = field(repr=False)

    def refusal(self) -> ConstraintError:
        """The error that tells the first of them."""
        return refusal(self.first, total=self.total, conflicts=self.conflicts)

    def every(self) -> Iterator[Violation]:
        """All violations in order; they pass through the driver a part at a time."""
        if self.total:
            frame = self._doubts.frame(limit=None).where("n = 0")
            yield from map(violation_of, frame.orderBy(*RANK).toLocalIterator())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Doubts:
    """The rules that may be broken, ready to be carried out exactly."""

    spark: SparkSession
    subject: Subject
    rules: tuple[Rule, ...]
    mixed: frozenset[str]

    def frame(self, *, limit: int | None) -> DataFrame:
        exact = [r.exact for r in self.rules if not isinstance(r.exact, ValuesRule)]
        values = {r.table_key: r.exact for r in self.rules if isinstance(r.exact, ValuesRule)}
        asked = ValuesAsked(
            read=self.subject.intake.read,
            types={key: rule.type for key, rule in values.items()},
            places={key: rule.place for key, rule in values.items()},
            files=self.subject.files,
            limit=limit,
        )
        return explained(
            self.spark,
            self.subject,
            exact,
            asked if values else None,
            mixed=self.mixed,
            limit=limit,
        )


def check(
    spark: SparkSession, subject: Subject, *, violations_max: int = VIOLATIONS_MAX
) -> Checked:
    """Check every rule. One job if all are kept, one more to tell what breaks those in doubt."""
    asked = inquiry(subject)
    answers = ask(spark, subject, asked.questions)
    repeated = _repeated(spark, subject, {k: answers[q] for k, q in asked.repeats.items()})
    known = {key: answers[question] for key, question in asked.known.items()}
    doubts = _Doubts(
        spark=spark,
        subject=subject,
        rules=tuple(
            rule
            for rule in asked.rules
            if answers[rule.question] or (rule.doubtful_if_replacing and known.get(rule.table_key))
        ),
        mixed=frozenset(key for key in subject.tables if repeated.get(key) or known.get(key)),
    )
    total, conflicts, first = _told(doubts, violations_max) if doubts.rules else (0, 0, ())
    return Checked(
        total=total,
        conflicts=conflicts,
        first=first,
        superseded=repeated,
        known=known,
        _doubts=doubts,
    )


def _repeated(
    spark: SparkSession, subject: Subject, suspected: Mapping[str, int]
) -> dict[str, int]:
    """By table key: rows that another one of the same id follows; suspicions are looked into."""
    exact = {key: ids_repeated(key) for key, number in suspected.items() if number}
    answers = ask(spark, subject, tuple(exact.values())) if exact else {}
    return {key: answers[exact[key]] if key in exact else 0 for key in suspected}


def _told(doubts: _Doubts, violations_max: int) -> tuple[int, int, tuple[Violation, ...]]:
    """How many violations there are, how many are conflicts, and the first of them."""
    from pyspark.sql import functions as F
    from pyspark.storagelevel import StorageLevel

    frame = doubts.frame(limit=violations_max).persist(StorageLevel.DISK_ONLY)
    try:
        counted = frame.where("n > 0").groupBy("conflict").agg(F.sum("n").alias("n"))
        counts = {bool(row["conflict"]): row["n"] for row in counted.collect()}
        total = sum(counts.values())
        if not total:
            return 0, 0, ()
        first = frame.where("n = 0").orderBy(*RANK).limit(violations_max).collect()
        return total, counts.get(True, 0), tuple(map(violation_of, first))
    finally:
        frame.unpersist()
