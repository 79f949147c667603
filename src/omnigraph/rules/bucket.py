"""Rules bucket by bucket: the cheap test that every input passes, the exact finding where in doubt.

    digests of keys -> by bucket -> [first pass: cheap tests] -> (test, bucket, number)
    rows in doubt   -> by bucket -> [exact pass: findings]    -> violations in words, and how many

A bucket holds everything that can break a rule together: all rows of one id, of one tuple, of one
node. A cheap test counts what breaks its rule, or merely might: zero always means that the rule is
kept in this bucket. Texts are compared as they are, tuples by their hashes, so only tuples can be
found without cause. The exact finding is the local validator's, on the rows of the bucket.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.ddl import schema_of
from omnigraph.arrow.sets import among, strings
from omnigraph.rules.digest import (
    COUNTS,
    KeyedRows,
    Numbers,
    Sided,
    Texts,
    Topic,
    Tuples,
    exchange_row,
    packed,
    unpacked,
)
from omnigraph.rules.findings import RuleFinding
from omnigraph.rules.ranked import (
    NOTHING,
    Found,
    RulePlace,
    found_table,
    nothing_found,
    ranked_findings,
)
from omnigraph.rules.repeats import find_repeats
from omnigraph.rules.table_delta import FILE, LINE, NO_IDS, Origins, TableDelta, WriteMode
from omnigraph.schema.catalog import GraphType

COUNTED_DDL = "test int, bucket int, n bigint"
_COUNTED = schema_of(COUNTED_DDL)
KEPT = "_kept"
"""Whether no later row of the same id replaces a row. Topics that have it ask for it."""
KEY = "_key"
"""The id once more, with something in the place of one that is missing."""


class Bucket:
    """What met in one bucket."""

    def __init__(self, rows: pa.Table, topics: Mapping[int, Topic]) -> None:
        self._payloads: dict[Sided, list[pa.BinaryScalar]] = {}
        for number, committed, payload in _exchanged(rows):
            self._payloads.setdefault((committed, topics[number]), []).append(payload)
        self._tables: dict[Sided, pa.Table] = {}

    # -- digests ---------------------------------------------------------------------------------

    def texts(self, topic: Texts, *, committed: bool) -> pa.ChunkedArray:
        """The texts of a topic."""
        table = self._table(topic, committed=committed)
        return table.column("text") if table is not None else pa.chunked_array([], pa.string())

    def counts(self, topic: Texts, *, committed: bool) -> npt.NDArray[np.int64]:
        """How many rows hold each of the texts; the same text may come several times."""
        table = self._table(topic, committed=committed)
        return table.column("rows").to_numpy() if table is not None else np.empty(0, np.int64)

    def tuples(self, topic: Tuples, *, committed: bool) -> Numbers:
        """Hashes of tuples."""
        return self._numbers(topic, "tuple", committed=committed)

    def holders(self, topic: Tuples, *, committed: bool) -> Numbers:
        """Hashes of the ids that hold the tuples."""
        return self._numbers(topic, "holder", committed=committed)

    def _numbers(self, topic: Tuples, column: str, *, committed: bool) -> Numbers:
        table = self._table(topic, committed=committed)
        return np.empty(0, np.uint64) if table is None else table.column(column).to_numpy()

    # -- rows ------------------------------------------------------------------------------------

    def input(self, topic: KeyedRows) -> pa.Table | None:
        """Rows of the input that are kept, in its order; None if there are none."""
        rows = _kept(self._table(topic, committed=False))
        return rows.sort_by([(FILE, "ascending"), (LINE, "ascending")]) if rows else None

    def committed(self, topic: KeyedRows) -> pa.Table | None:
        """Committed rows, kept or not; None if there are none."""
        return self._table(topic, committed=True)

    def kept(self, topic: KeyedRows) -> pa.Table | None:
        """Committed rows that stay; None if there are none."""
        return _kept(self._table(topic, committed=True))

    def ids(self, topic: KeyedRows, *, committed: bool) -> pa.StringArray:
        """The ids of nodes."""
        rows = self._table(topic, committed=committed)
        return NO_IDS if rows is None else strings(rows.column("id"))

    def _table(self, topic: Topic, *, committed: bool) -> pa.Table | None:
        sided = (committed, topic)
        if sided not in self._tables:
            payloads = self._payloads.get(sided)
            if not payloads:
                return None
            self._tables[sided] = unpacked(payloads)
        return self._tables[sided]


def _kept(rows: pa.Table | None) -> pa.Table | None:
    if rows is None or KEPT not in rows.column_names:
        return rows
    kept = rows.filter(rows.column(KEPT))
    return kept if kept.num_rows else None


def _exchanged(rows: pa.Table) -> Iterable[tuple[int, bool, pa.BinaryScalar]]:
    payloads = [p for chunk in rows.column("payload").chunks for p in chunk]
    flags = rows.column("committed").to_pylist()
    return zip(rows.column("topic").to_pylist(), flags, payloads, strict=True)


# -- first pass ----------------------------------------------------------------------------------


class CheapTest(Protocol):
    """How much breaks a rule, or seems to; equal ones are made once."""

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        ...

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket; zero is certain."""
        ...


def first_pass(
    rows: pa.Table, *, tests: Sequence[CheapTest], topics: Mapping[int, Topic]
) -> pa.Table:
    """A task: all tests on one bucket; plain numbers are added up by their test."""
    bucket: int = rows.column("bucket")[0].as_py()
    found: dict[int, int] = {}
    if bucket == COUNTS:
        for test, _, payload in _exchanged(rows):
            found[test] = found.get(test, 0) + int.from_bytes(payload.as_py(), "little")
    else:
        met = Bucket(rows, topics)
        found = {i: n for i, test in enumerate(tests) if (n := test.candidates(met))}
    return pa.table([list(found), [bucket] * len(found), list(found.values())], schema=_COUNTED)


def true_count(mask: pa.ChunkedArray | pa.Array) -> int:
    """How often a mask is true."""
    return int(pc.sum(mask).as_py() or 0)


# -- exact pass ----------------------------------------------------------------------------------


class ExactRule(Protocol):
    """What breaks a rule, in words."""

    is_conflict: ClassVar[bool]

    @property
    def place(self) -> RulePlace:
        """Where its violations stand among all."""
        ...

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        ...

    def find(self, bucket: Bucket, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        ...


@dataclass(frozen=True, kw_only=True)
class RuleOnInput:
    """What exact rules on rows of one type share."""

    type: GraphType
    place: RulePlace
    files: tuple[str, ...]
    is_conflict: ClassVar[bool] = False

    def wanted(
        self, columns: Sequence[str], by: tuple[str, ...], *, kept: bool = False
    ) -> KeyedRows:
        """Rows of the input with these columns."""
        return self.stored((*columns, FILE, LINE), by, kept=kept)

    def stored(
        self, columns: Sequence[str], by: tuple[str, ...], *, kept: bool = False
    ) -> KeyedRows:
        """Committed rows of the same type."""
        mark = (KEPT,) if kept else ()
        names = tuple(dict.fromkeys(("id", *columns, *mark)))
        return KeyedRows(table_key=self.type.table_key, columns=names, by=by)

    def delta(self, rows: pa.Table) -> TableDelta:
        """Rows of the input as the local rules take them."""
        return input_delta(self.type, rows, self.files)

    def ranked(self, findings: Sequence[RuleFinding], rows: pa.Table, limit: int | None) -> Found:
        """What the local rules found."""
        return ranked_findings(findings, rows, self.place, limit)


@dataclass(frozen=True, kw_only=True)
class RuleByFindings(RuleOnInput, ABC):
    """An exact rule that asks the local one about the rows of a bucket."""

    @property
    @abstractmethod
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet; the rows of the input are first."""

    @abstractmethod
    def findings(self, bucket: Bucket, rows: pa.Table) -> list[RuleFinding]:
        """What the local rule finds in the rows of the input."""

    def find(self, bucket: Bucket, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = bucket.input(self.needs[0][1])
        return NOTHING if rows is None else self.ranked(self.findings(bucket, rows), rows, limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """A rule that may be broken."""

    rule: ExactRule
    buckets: frozenset[int] | None
    """Of the first pass, in which it may be; None for all. Not in others: what a rule needs is sent
    for these alone, though other rules may need some of it for more."""


def exact_pass(
    rows: pa.Table,
    *,
    doubts: Sequence[Doubt],
    topics: Mapping[int, KeyedRows],
    buckets: int,
    limit: int | None,
) -> pa.Table:
    """A task: what breaks the rules in one bucket. ``buckets``: how many the first pass had."""
    first: int = rows.column("bucket")[0].as_py() % buckets
    met = Bucket(rows, topics)
    found = [nothing_found()]
    for rule in (d.rule for d in doubts if d.buckets is None or first in d.buckets):
        ranked, total = rule.find(met, limit)
        found.append(found_table(ranked, total, rule.place, conflict=rule.is_conflict))
    return pa.concat_tables(found)


def input_delta(graph_type: GraphType, rows: pa.Table, files: tuple[str, ...]) -> TableDelta:
    """Some rows of the input as the local rules take them."""
    sources = rows.column(FILE).to_numpy()
    cuts = np.flatnonzero(np.diff(sources)) + 1
    lines = np.split(rows.column(LINE).to_numpy().astype(np.int64), cuts)
    firsts = [0, *cuts.tolist()] if rows.num_rows else []
    stretches = zip((int(sources[first]) for first in firsts), lines, strict=False)
    origins = Origins.of(files, stretches)
    return TableDelta(type=graph_type, mode=WriteMode.APPEND, rows=rows, origins=origins)


def last_of_each(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Which rows, in the order of the input, no later one of the same id replaces."""
    kept = np.ones(rows.num_rows, np.bool_)
    kept[find_repeats([rows.column("id")]).superseded()] = False
    return kept


def mark_kept(rows: pa.Table) -> pa.Table:
    """A task: which rows of one bucket of ids are kept, for those rules that ask.

    A row of the input is if it is the last of its id, a committed row if the input does not have
    its id.
    """
    met: dict[int, tuple[list[pa.BinaryScalar], list[pa.BinaryScalar]]] = {}
    for number, committed, payload in _exchanged(rows):
        met.setdefault(number, ([], []))[committed].append(payload)
    parts: list[pa.RecordBatch] = []
    for number, (mine, theirs) in met.items():
        ids = pa.chunked_array([NO_IDS])
        if mine:
            table = unpacked(mine).sort_by([(FILE, "ascending"), (LINE, "ascending")])
            ids = table.column("id")
            parts.append(_marked(number, table, pa.array(last_of_each(table)), committed=False))
        if theirs:
            table = unpacked(theirs)
            stays = pc.invert(among(table.column("id"), ids))
            parts.append(_marked(number, table, stays, committed=True))
    return pa.Table.from_batches(parts)


def _marked(
    number: int, table: pa.Table, kept: pa.Array | pa.ChunkedArray, *, committed: bool
) -> pa.RecordBatch:
    whole = table.drop_columns([KEY]).append_column(KEPT, kept)
    return exchange_row(0, number, packed(whole), committed=committed)
