"""Rule 2, second half: no two entities hold the same tuple of a ``@unique`` group.

Within the input no tuple may occur twice, in any entity; against the committed state a tuple may
not be held by an entity that the delta leaves as it is. Tuples with a null are exempt.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import among, true_at
from omnigraph.rules.bucket import Bucket, RuleByFindings
from omnigraph.rules.digest import KeyedRows, Sided, Tuples
from omnigraph.rules.findings import RuleFinding, held_twice, member_values, row_finding, single
from omnigraph.rules.identity import identity_members
from omnigraph.rules.image import TableImage, image_of
from omnigraph.rules.repeats import comparable, complete_rows, find_repeats, tuple_codes
from omnigraph.rules.table_delta import CommittedState, TableDelta
from omnigraph.schema.catalog import GraphType


def unique_groups(graph_type: GraphType) -> list[tuple[str, ...]]:
    """The groups to check beside identity; one equal to the key says nothing new."""
    key = set(identity_members(graph_type))
    return [group for group in graph_type.unique if set(group) != key]


def check_repeats(delta: TableDelta, group: tuple[str, ...]) -> list[RuleFinding]:
    """A unique tuple twice in one input."""
    if delta.rows.num_rows < 2:
        return []
    rows, firsts = find_repeats([delta.rows.column(m) for m in group]).later()
    ids = delta.rows.column("id")

    def message(index: int) -> str:
        row, first = int(rows[index]), int(firsts[index])
        return _held_by(delta, group, row, ids[first].as_py(), ids[row].as_py())

    return row_finding(delta, rows, rule="unique", property_name=single(group), message=message)


def check_committed(
    image: TableImage, group: tuple[str, ...], committed: CommittedState
) -> list[RuleFinding]:
    """A unique tuple that an untouched committed entity holds. One lookup."""
    delta, key = image.delta, image.delta.type.table_key
    if image.overwrites or not image.rows.num_rows or not committed.row_count(key):
        return []
    column, values = _most_selective(image, group)
    if not len(values):
        return []
    columns = tuple(dict.fromkeys(("id", *group)))
    others = image.untouched(committed.lookup(key, column, values, columns))
    if not others.num_rows:
        return []
    holders = _match(image.rows, others, group)
    taken = true_at(holders.is_valid())
    rows, ids = image.input_rows(taken), delta.rows.column("id")

    def word(index: int) -> str:
        row, holder = int(rows[index]), holders[int(taken[index])].as_py()
        return _held_by(delta, group, row, others.column("id")[holder].as_py(), ids[row].as_py())

    return row_finding(delta, rows, rule="unique", property_name=single(group), message=word)


def _most_selective(image: TableImage, group: tuple[str, ...]) -> tuple[str, pa.Array]:
    """The member to look the tuples up by, and its distinct values.

    Many distinct values in the input hint at few committed rows per value. In a tie the later
    member is the finer one more often: people write ``@unique(country, code)``.
    """
    rows = image.rows.select(list(group))
    if len(complete := complete_rows(rows.columns)) < rows.num_rows:
        rows = rows.take(pa.array(complete))
    best, values = "", pa.nulls(0)
    for member in group:
        distinct = pc.unique(comparable(rows.column(member)))
        if not best or len(distinct) >= len(values):
            best, values = member, distinct
    if pa.types.is_floating(values.type) and pc.any(pc.equal(values, 0.0)).as_py():
        # Zero has two bit patterns and an index may know only one of them at a time.
        values = pa.concat_arrays([values, pa.array([-0.0], values.type)])
    return best, values


def _match(rows: pa.Table, others: pa.Table, group: tuple[str, ...]) -> pa.Array:
    """For each row the other row with the same tuple, or null."""
    if len(group) == 1:
        mine, theirs = (comparable(t.column(group[0])) for t in (rows, others))
        found = pc.index_in(mine, value_set=theirs, skip_nulls=True)
        return found.combine_chunks()
    both = [
        pa.chunked_array([*rows.column(m).chunks, *others.column(m).chunks], rows.column(m).type)
        for m in group
    ]
    codes = tuple_codes(both)
    split = rows.num_rows
    mine = pa.array(codes[:split], mask=codes[:split] < 0)
    return pc.index_in(mine, value_set=pa.array(codes[split:]), skip_nulls=True)


def _held_by(delta: TableDelta, group: tuple[str, ...], row: int, one: str, other: str) -> str:
    return held_twice(delta.type, group, member_values(delta.rows, group, row), one, other)


# -- bucket by bucket ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RepeatedTuples:
    """How many rows of the input seem to repeat a tuple."""

    tuples: Tuples

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        return ((False, self.tuples),)

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
        hashes = bucket.tuples(self.tuples, committed=False)
        return len(find_repeats([pa.chunked_array([pa.array(hashes)])]).superseded())


@dataclass(frozen=True, kw_only=True)
class HeldTuples:
    """How many committed rows seem to hold a tuple that another id of the input wants."""

    tuples: Tuples

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        return ((False, self.tuples), (True, self.tuples))

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
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
class SameTuple(RuleByFindings):
    """A unique tuple twice in the input."""

    group: tuple[str, ...]

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        return ((False, self.wanted(self.group, self.group)),)

    def findings(self, bucket: Bucket, rows: pa.Table) -> list[RuleFinding]:
        """What the local rule finds."""
        return check_repeats(self.delta(rows), self.group)


@dataclass(frozen=True, kw_only=True)
class TupleTaken(RuleByFindings):
    """A unique tuple that a committed entity holds which the input leaves as it is."""

    group: tuple[str, ...]

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        mine = self.wanted(self.group, self.group, kept=True)
        return ((False, mine), (True, self.stored(self.group, self.group, kept=True)))

    def findings(self, bucket: Bucket, rows: pa.Table) -> list[RuleFinding]:
        """What the local rule finds."""
        there = bucket.kept(self.needs[1][1])
        if there is None:
            return []
        return check_committed(image_of(self.delta(rows)), self.group, _RowsHere(there))


class _RowsHere:
    """Committed rows of a bucket, as the local rules look them up."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def row_count(self, table_key: str) -> int:
        return self._rows.num_rows

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        found = self._rows.filter(among(self._rows.column(column), values))
        return found.select(list(columns))

    def rows_of(self, table_key: str, ids: pa.Array, columns: tuple[str, ...]) -> pa.Table:
        return self.lookup(table_key, "id", ids, columns)

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        return self._rows.select(list(columns))
