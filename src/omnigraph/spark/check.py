"""All rules over one input on one snapshot: the local validator's answer, from many processes.

    input, committed ─▶ [first pass: one job, one exchange] ─▶ mostly the end of it
    candidate buckets of rules in doubt ─▶ [exact pass: one job, one exchange] ─▶ CheckedLoad

The first pass tests all rules at once by digests of keys. Rows that break a rule are looked for
only by rules in doubt, in the buckets in which they are, and are put into words only as far as they
are read.

A row of the input counts in the final state if it is the last of its id, a committed row if the
input does not replace it. Nearly always all of them do. Only where ids repeat, or the input names
committed ids, and a rule in doubt asks, rows are first brought together by id to find out: that is
an exchange of its own, because such a rule brings them together by something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import ConstraintError, Violation
from omnigraph.rules.bucket import (
    COUNTED_DDL,
    KEPT,
    KEY,
    CheapTest,
    Doubt,
    exact_pass,
    first_pass,
    mark_kept,
)
from omnigraph.rules.bulk import BulkInput, BulkRule, bulk_rules
from omnigraph.rules.digest import (
    BUCKETS_MAX,
    EXCHANGE_DDL,
    Digest,
    KeyedRows,
    Spread,
    Topic,
    unpacked,
)
from omnigraph.rules.ranked import FOUND_DDL, RANK, violation_of
from omnigraph.rules.table_delta import FILE, LINE
from omnigraph.rules.values import BrokenValues, ValueBroken
from omnigraph.spark.errors import task
from omnigraph.spark.exchange import LoadSources, Sending, by_bucket
from omnigraph.spark.input import Read
from omnigraph.write.validate import refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIOLATIONS_MAX = 20
"""As many are shown by an error."""
BUCKET_VALUES = 1 << 20
"""About so many values of all topics together meet in one bucket of the first pass."""
BUCKET_ROWS = 1 << 18
"""About so many rows meet in one of the exact pass."""
BUCKETS_MIN = 8
SORTED_HERE_MAX = 10_000
"""So many violations the driver puts in order by itself."""

Candidates = Mapping[CheapTest, Mapping[int, int]]
"""What the first pass found: by test and by bucket, a number above zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLoad:
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
    _exact: _ExactPass = field(repr=False)

    def refusal(self) -> ConstraintError:
        """The error that shows the first of them."""
        return refusal(self.first, total=self.total, conflicts=self.conflicts)

    def every(self) -> Iterator[Violation]:
        """All violations in order; they pass through the driver a part at a time."""
        if self.total:
            frame = self._exact.frame(limit=None).where("n = 0")
            yield from map(violation_of, frame.orderBy(*RANK).toLocalIterator())


def check(
    sources: LoadSources, given: BulkInput, *, violations_max: int = VIOLATIONS_MAX
) -> CheckedLoad:
    """Check every rule. One job if all are kept, one more for what breaks those in doubt."""
    asked = bulk_rules(given)
    buckets = _buckets(given, asked.tests)
    candidates = _first_pass(sources, asked.tests, buckets)
    repeated = {key: sum(candidates[test].values()) for key, test in asked.repeats.items()}
    known = {key: sum(candidates[test].values()) for key, test in asked.known.items()}
    doubts, values = _in_doubt(asked.rules, candidates, repeated, known)
    exact = _ExactPass(
        sources=sources,
        given=given,
        doubts=doubts,
        values=values,
        buckets=buckets,
        mixed=frozenset(
            [(False, key) for key, number in repeated.items() if number]
            + [(True, key) for key, number in known.items() if number]
        ),
    )
    total, conflicts, first = _collected(exact, violations_max) if doubts or values else (0, 0, ())
    return CheckedLoad(
        total=total,
        conflicts=conflicts,
        first=first,
        # A number from hashes is not exact; if it is right a rule is broken and nothing is written.
        superseded={k: n if asked.repeats_certain(k) else 0 for k, n in repeated.items()},
        known=known,
        _exact=exact,
    )


# -- first pass ----------------------------------------------------------------------------------


def _buckets(given: BulkInput, tests: Sequence[CheapTest]) -> int:
    needs = dict.fromkeys(need for test in tests for need in test.needs)
    values = sum(
        given.committed_rows(topic.table_key) if committed else given.tables[topic.table_key].rows
        for committed, topic in needs
    )
    return min(max(BUCKETS_MIN, -(-values // BUCKET_VALUES)), BUCKETS_MAX)


def _first_pass(sources: LoadSources, tests: Sequence[CheapTest], buckets: int) -> Candidates:
    """All tests. One job with one exchange."""
    needs = dict.fromkeys(need for test in tests for need in test.needs)
    numbers = {topic: i for i, topic in enumerate(dict.fromkeys(topic for _, topic in needs))}
    mine = {numbers[topic]: topic for committed, topic in needs if not committed}
    theirs = {numbers[topic]: topic for committed, topic in needs if committed}
    spread = Spread(buckets=buckets)
    values = {i: test for i, test in enumerate(tests) if isinstance(test, BrokenValues)}
    sent = [sources.send_input(Sending(topics=mine, spread=spread, values=values))]
    if theirs:
        sent.append(sources.send_committed(Sending(topics=theirs, spread=spread)))
    topics: dict[int, Topic] = {**mine, **theirs}
    # The function has no annotations: Spark would try to understand them.
    meet = task(lambda rows: first_pass(rows, tests=tests, topics=topics))
    found: dict[CheapTest, dict[int, int]] = {test: {} for test in tests}
    for row in by_bucket(sent, meet, COUNTED_DDL, partitions=buckets).collect():
        found[tests[row["test"]]][row["bucket"]] = row["n"]
    return found


# -- exact pass ----------------------------------------------------------------------------------


def _in_doubt(
    rules: Sequence[BulkRule],
    candidates: Candidates,
    repeated: Mapping[str, int],
    known: Mapping[str, int],
) -> tuple[tuple[Doubt, ...], dict[str, ValueBroken]]:
    """The rules that may be broken, and by table key those on single values that are."""
    doubts: list[Doubt] = []
    values: dict[str, ValueBroken] = {}
    for rule in rules:
        key, found = rule.table_key, candidates[rule.test]
        anywhere = (rule.doubtful_if_repeated and repeated.get(key)) or (
            rule.doubtful_if_replacing and known.get(key)
        )
        if isinstance(rule.exact, ValueBroken):
            if found:
                values[key] = rule.exact
        elif anywhere or found:
            doubts.append(Doubt(rule=rule.exact, buckets=None if anywhere else frozenset(found)))
    return tuple(doubts), values


@dataclass(frozen=True, slots=True, kw_only=True)
class _ExactPass:
    """Rules in doubt, ready to be carried out exactly."""

    sources: LoadSources
    given: BulkInput
    doubts: tuple[Doubt, ...]
    values: Mapping[str, ValueBroken]
    """By table key."""
    buckets: int
    """Of the first pass."""
    mixed: frozenset[tuple[bool, str]]
    """Committed tables, or tables of the input, of which some row may not be kept."""

    def frame(self, *, limit: int | None) -> DataFrame:
        """Violations and their numbers, in ``FOUND_DDL``; of a rule the first ones per bucket."""
        parts: list[DataFrame] = []
        if self.doubts:
            parts.append(self._by_bucket(limit))
        if self.values:
            intake = self.sources.intake
            find = task(partial(_find_values, intake.read, self.values, limit))
            parts.append(intake.frame.mapInArrow(find, FOUND_DDL))
        return parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])

    def _by_bucket(self, limit: int | None) -> DataFrame:
        wanted: dict[tuple[bool, KeyedRows], frozenset[int] | None] = {}
        for doubt in self.doubts:
            for need in doubt.rule.needs:
                before = wanted.get(need, frozenset[int]())
                wanted[need] = (
                    None if before is None or doubt.buckets is None else before | doubt.buckets
                )
        plan = self._plan(wanted)
        sent = [
            send(Sending(topics=topics, spread=plan.spread, shape=_all_kept, added=_KEPT))
            for send, topics in (
                (self.sources.send_input, plan.topics(committed=False, mixed=False)),
                (self.sources.send_committed, plan.topics(committed=True, mixed=False)),
            )
            if topics
        ]
        if (marked := self._marked(plan)) is not None:
            sent.append(marked)
        topics = {number: topic for number, (_, topic) in enumerate(wanted)}
        doubts, buckets = self.doubts, self.buckets
        meet = task(
            lambda rows: exact_pass(
                rows, doubts=doubts, topics=topics, buckets=buckets, limit=limit
            )
        )
        return by_bucket(sent, meet, FOUND_DDL, partitions=plan.partitions)

    def _plan(self, wanted: Mapping[tuple[bool, KeyedRows], frozenset[int] | None]) -> _Plan:
        tables = {topic.table_key for committed, topic in wanted if committed}
        rows = self.given.rows + sum(map(self.given.committed_rows, tables))
        parts = -(-rows // (BUCKET_ROWS * self.buckets))
        parts = max(1, min(parts, BUCKETS_MAX // self.buckets))
        chosen = [numbers for numbers in wanted.values() if numbers is not None]
        some = len(chosen) == len(wanted)
        return _Plan(
            needs=tuple(wanted),
            spread=Spread(
                buckets=self.buckets,
                parts=parts,
                wanted={n: s for n, s in enumerate(wanted.values()) if s is not None},
            ),
            partitions=parts * (len(frozenset().union(*chosen)) if some else self.buckets),
            mixed=self.mixed,
        )

    def _marked(self, plan: _Plan) -> DataFrame | None:
        """The rows of mixed tables in terms of the plan, each with its mark."""
        mine = _by_id(plan.topics(committed=False, mixed=True).values(), (FILE, LINE))
        theirs = _by_id(plan.topics(committed=True, mixed=True).values(), ())
        keys = sorted({*mine, *theirs})
        if not keys:
            return None
        # Which committed rows are kept is decided by the ids of the input.
        ids = {n: mine.get(key, _ids_of(key)) for n, key in enumerate(keys)}
        stored = {n: theirs[key] for n, key in enumerate(keys) if key in theirs}
        spread = Spread(buckets=plan.spread.buckets, parts=plan.spread.parts)
        options: dict[str, Any] = {"spread": spread, "shape": _with_key, "added": frozenset({KEY})}
        sent = [self.sources.send_input(Sending(topics=ids, **options))]
        if stored:
            sent.append(self.sources.send_committed(Sending(topics=stored, **options)))
        meet = task(lambda rows: mark_kept(rows))
        partitions = spread.buckets * spread.parts
        marked = by_bucket(sent, meet, EXCHANGE_DDL, partitions=partitions)
        return marked.mapInArrow(task(partial(_send_marked, plan, tuple(keys))), EXCHANGE_DDL)


_KEPT = frozenset({KEPT})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What is sent in the exact pass, and where to."""

    needs: tuple[tuple[bool, KeyedRows], ...]
    """Their places are the numbers of topics."""
    spread: Spread
    partitions: int
    mixed: frozenset[tuple[bool, str]]

    def topics(self, *, committed: bool, mixed: bool) -> dict[int, KeyedRows]:
        """The topics of one side: those that have to know which rows are kept, or the others."""
        return {
            number: topic
            for number, (side, topic) in enumerate(self.needs)
            if side == committed and mixed == self._is_mixed(side, topic)
        }

    def _is_mixed(self, committed: bool, topic: KeyedRows) -> bool:
        return KEPT in topic.columns and (committed, topic.table_key) in self.mixed


def _by_id(topics: Iterable[KeyedRows], place: tuple[str, ...]) -> dict[str, KeyedRows]:
    """By table key: all columns that any topic of a table wants, to be exchanged by id."""
    columns: dict[str, dict[str, None]] = {}
    for topic in topics:
        wanted = [name for name in topic.columns if name != KEPT]
        columns.setdefault(topic.table_key, {}).update(dict.fromkeys(("id", *wanted, *place, KEY)))
    return {
        k: KeyedRows(table_key=k, columns=tuple(names), by=(KEY,)) for k, names in columns.items()
    }


def _ids_of(table_key: str) -> KeyedRows:
    return KeyedRows(table_key=table_key, columns=("id", FILE, LINE, KEY), by=(KEY,))


def _collected(exact: _ExactPass, violations_max: int) -> tuple[int, int, tuple[Violation, ...]]:
    """How many violations there are, how many are conflicts, and the first of them."""
    from pyspark.storagelevel import StorageLevel

    frame = exact.frame(limit=violations_max).persist(StorageLevel.DISK_ONLY)
    try:
        counted = frame.where("n > 0").select("n", "conflict").collect()
        total = sum(row["n"] for row in counted)
        if not total:
            return 0, 0, ()
        found = frame.where("n = 0")
        if sum(min(row["n"], violations_max) for row in counted) > SORTED_HERE_MAX:
            found = found.orderBy(*RANK).limit(violations_max)
        first = sorted(found.collect(), key=lambda row: tuple(row[name] for name in RANK))
        conflicts = sum(row["n"] for row in counted if row["conflict"])
        return total, conflicts, tuple(map(violation_of, first[:violations_max]))
    finally:
        frame.unpersist()


# -- tasks ---------------------------------------------------------------------------------------


def _find_values(
    read: Read,
    rules: Mapping[str, ValueBroken],
    limit: int | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for table_key, rows in read(batches):
        if table_key in rules:
            yield from rules[table_key].find_in(rows, limit).to_batches()


def _all_kept(rows: pa.Table) -> pa.Table:
    return rows.append_column(KEPT, pa.array(np.ones(rows.num_rows, np.bool_)))


def _with_key(rows: pa.Table) -> pa.Table:
    return rows.append_column(KEY, pc.fill_null(rows.column("id"), ""))


def _send_marked(
    plan: _Plan, keys: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    sides = {
        committed: Digest(
            plan.topics(committed=committed, mixed=True), plan.spread, committed=committed
        )
        for committed in (False, True)
    }
    for batch in batches:
        numbers, flags = batch.column("topic").to_pylist(), batch.column("committed").to_pylist()
        for place, payload in enumerate(batch.column("payload")):
            key = keys[int(numbers[place])]
            yield from sides[bool(flags[place])].take(key, unpacked([payload]))
    for digest in sides.values():
        yield from digest.rest()
