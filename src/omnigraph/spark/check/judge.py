"""Questions about key columns, answered bucket by bucket with Arrow and NumPy.

    exchanged digests of one bucket -> [judge] -> (question, number)

A question asks how many values break a rule, or merely might: zero always means that the rule is
kept. Texts are compared as they are, tuples by their hashes, so only tuples can be suspected in
vain; for certainty, and for the rows, the rules themselves are asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import among
from omnigraph.rules.repeats import find_repeats
from omnigraph.spark.check.digest import COUNTS, Numbers, Texts, Topic, Tuples, unpacked

ANSWERS_DDL = "question int, n bigint"
_ANSWERS = pa.schema([("question", pa.int32()), ("n", pa.int64())])

Sided = tuple[bool, Topic]
"""A topic of the committed state or of the input."""


class Bucket:
    """The digests that met in one bucket."""

    def __init__(self, payloads: Mapping[Sided, Sequence[pa.BinaryScalar]]) -> None:
        self._payloads = payloads
        self._tables: dict[Sided, pa.Table] = {}

    def texts(self, topic: Texts, *, committed: bool) -> pa.ChunkedArray:
        """The texts of a topic."""
        table = self._table((committed, topic))
        return table.column("text") if table is not None else pa.chunked_array([], pa.string())

    def counts(self, topic: Texts, *, committed: bool) -> npt.NDArray[np.int64]:
        """How many rows hold each of the texts; the same text may come several times."""
        table = self._table((committed, topic))
        return table.column("rows").to_numpy() if table is not None else np.empty(0, np.int64)

    def tuples(self, topic: Tuples, *, committed: bool) -> Numbers:
        """Hashes of tuples."""
        return self._numbers(topic, "tuple", committed=committed)

    def holders(self, topic: Tuples, *, committed: bool) -> Numbers:
        """Hashes of the ids that hold the tuples."""
        return self._numbers(topic, "holder", committed=committed)

    def _numbers(self, topic: Tuples, column: str, *, committed: bool) -> Numbers:
        table = self._table((committed, topic))
        return np.empty(0, np.uint64) if table is None else table.column(column).to_numpy()

    def _table(self, sided: Sided) -> pa.Table | None:
        if sided not in self._tables:
            payloads = self._payloads.get(sided)
            if not payloads:
                return None
            self._tables[sided] = unpacked(payloads)
        return self._tables[sided]


@dataclass(frozen=True, kw_only=True)
class RepeatedIds:
    """How many rows of the input another one of the same id follows."""

    ids: Texts

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        return ((False, self.ids),)

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        return len(find_repeats([bucket.texts(self.ids, committed=False)]).superseded())


@dataclass(frozen=True, kw_only=True)
class RepeatedTuples:
    """How many rows of the input seem to repeat a tuple."""

    tuples: Tuples

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        return ((False, self.tuples),)

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        hashes = bucket.tuples(self.tuples, committed=False)
        return len(find_repeats([pa.chunked_array([pa.array(hashes)])]).superseded())


@dataclass(frozen=True, kw_only=True)
class KnownIds:
    """How many committed ids occur in the input."""

    ids: Texts

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        return ((False, self.ids), (True, self.ids))

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        mine = bucket.texts(self.ids, committed=False)
        theirs = bucket.texts(self.ids, committed=True)
        return _true_count(among(theirs, mine)) if len(mine) and len(theirs) else 0


@dataclass(frozen=True, kw_only=True)
class HeldTuples:
    """How many committed rows seem to hold a tuple that another id of the input wants."""

    tuples: Tuples

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        return ((False, self.tuples), (True, self.tuples))

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        mine = bucket.tuples(self.tuples, committed=False)
        theirs = bucket.tuples(self.tuples, committed=True)
        if not len(mine) or not len(theirs):
            return 0
        owners = bucket.holders(self.tuples, committed=False)
        holders = bucket.holders(self.tuples, committed=True)
        order = np.argsort(mine, kind="stable")
        place = np.minimum(np.searchsorted(mine[order], theirs), len(mine) - 1)
        same = mine[order][place] == theirs
        # A row that keeps its value takes it from no other.
        return int(np.count_nonzero(same & (owners[order][place] != holders)))


@dataclass(frozen=True, kw_only=True)
class MissingEnds:
    """How many distinct ends of edges have no node, in the input or among committed nodes."""

    ends: Texts
    nodes: Texts
    in_input: bool
    in_committed: bool

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        sides = ((False, self.in_input), (True, self.in_committed))
        return ((False, self.ends), *((side, self.nodes) for side, wanted in sides if wanted))

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        ends = bucket.texts(self.ends, committed=False)
        for committed, wanted in ((False, self.in_input), (True, self.in_committed)):
            if wanted and len(ends):
                nodes = bucket.texts(self.nodes, committed=committed)
                ends = ends.filter(pc.invert(among(ends, nodes))) if len(nodes) else ends
        return len(ends)


@dataclass(frozen=True, kw_only=True)
class LostEnds:
    """How many ends of committed edges are no longer nodes once the input replaced them all."""

    ends: Texts
    nodes: Texts

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        return ((True, self.ends), (False, self.nodes))

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        ends = bucket.texts(self.ends, committed=True)
        nodes = bucket.texts(self.nodes, committed=False)
        return len(ends) - (_true_count(among(ends, nodes)) if len(ends) and len(nodes) else 0)


@dataclass(frozen=True, kw_only=True)
class OutOfBounds:
    """How many sources have too many or too few edges, if no committed edge is replaced."""

    sources: Texts
    low: int
    high: int | None
    committed: bool
    """Committed edges stay, and count with those of the input."""
    deserted: bool
    """Committed edges go, and a source of theirs that the input does not name has none left."""

    @cached_property
    def needs(self) -> tuple[Sided, ...]:
        """What must be exchanged."""
        mine = ((False, self.sources),)
        return (*mine, (True, self.sources)) if self.committed or self.deserted else mine

    def ask(self, bucket: Bucket) -> int:
        """The answer for one bucket."""
        mine = bucket.texts(self.sources, committed=False)
        counts = bucket.counts(self.sources, committed=False)
        theirs = bucket.texts(self.sources, committed=True)
        if self.committed and len(mine) and len(theirs):
            # Sources that the input does not touch are not looked at.
            touched = among(theirs, mine)
            mine = pa.chunked_array([*mine.chunks, *theirs.filter(touched).chunks], pa.string())
            more = bucket.counts(self.sources, committed=True)
            counts = np.concatenate([counts, more[touched.to_numpy()]])
        found = 0
        if len(mine):
            codes = mine.combine_chunks().dictionary_encode().indices.to_numpy()
            edges = np.bincount(codes, weights=counts)
            wrong = edges < self.low
            if self.high is not None:
                wrong |= edges > self.high
            found = int(np.count_nonzero(wrong))
        if self.deserted and len(theirs):
            found += len(theirs) - (_true_count(among(theirs, mine)) if len(mine) else 0)
        return found


@dataclass(frozen=True, kw_only=True)
class Total:
    """A number that every task tells of a table; the sum is asked."""

    name: str

    @property
    def needs(self) -> tuple[Sided, ...]:
        """Nothing: numbers are told by who reads the rows."""
        return ()

    def ask(self, bucket: Bucket) -> int:
        """In no bucket of texts."""
        return 0


Question = (
    RepeatedIds
    | RepeatedTuples
    | KnownIds
    | HeldTuples
    | MissingEnds
    | LostEnds
    | OutOfBounds
    | Total
)


def judge(
    rows: pa.Table, *, questions: Sequence[Question], topics: Mapping[int, Topic]
) -> pa.Table:
    """All questions about one bucket; a column of plain numbers is added up by its topic."""
    numbers = rows.column("topic").to_pylist()
    payloads = [p for chunk in rows.column("payload").chunks for p in chunk]
    if rows.column("bucket")[0].as_py() == COUNTS:
        return _summed(zip(numbers, payloads, strict=True))
    by_topic: dict[Sided, list[pa.BinaryScalar]] = {}
    for number, committed, payload in zip(
        numbers, rows.column("committed").to_pylist(), payloads, strict=True
    ):
        by_topic.setdefault((committed, topics[number]), []).append(payload)
    bucket = Bucket(by_topic)
    answers = [question.ask(bucket) for question in questions]
    return _answers({i: n for i, n in enumerate(answers) if n})


def _summed(told: Iterable[tuple[int, pa.BinaryScalar]]) -> pa.Table:
    sums: dict[int, int] = {}
    for question, payload in told:
        sums[question] = sums.get(question, 0) + int.from_bytes(payload.as_py(), "little")
    return _answers(sums)


def _answers(numbers: Mapping[int, int]) -> pa.Table:
    return pa.table(
        [list(numbers), list(numbers.values())],
        schema=_ANSWERS,
    )


def _true_count(mask: pa.ChunkedArray | pa.Array) -> int:
    return int(pc.sum(mask).as_py() or 0)
