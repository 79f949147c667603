"""Rule 2, first half: an identity occurs once.

Within the input no id may occur twice, unless supplied ones may in a merge, where the last wins; a
strict insert may not meet an id that exists. A key *is* the id, so a committed holder of the same
key is the same entity. Ids of rows that were written under another schema must follow from the key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import among, true_at
from omnigraph.rules.bucket import Bucket, RuleByFindings, RuleOnInput, last_of_each, true_count
from omnigraph.rules.digest import KeyedRows, Sided, Texts
from omnigraph.rules.findings import (
    RuleFinding,
    exists_already,
    member_values,
    not_derived,
    repeated_key,
    row_finding,
    single,
)
from omnigraph.rules.image import TableImage, conflicts, image_of
from omnigraph.rules.ranked import NOTHING, Found
from omnigraph.rules.repeats import NO_REPEATS, Repeats, find_repeats
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.schema.identity import canonical_ids, is_keyed


def identity_members(graph_type: GraphType) -> tuple[str, ...]:
    """The columns an id is derived from; ``id`` itself where it is supplied or generated."""
    if isinstance(graph_type, EdgeType) and graph_type.keyed:
        return ("src", "dst", *graph_type.key)
    return graph_type.key or ("id",)


def ids_may_repeat(mode: WriteMode, graph_type: GraphType) -> bool:
    """Whether an id may occur twice in one input: supplied ones may in a merge."""
    return mode is WriteMode.MERGE and not is_keyed(graph_type)


def repeated_ids(delta: TableDelta) -> Repeats:
    """Rows that share an id. For a keyed type these are the rows that share a key."""
    if delta.ids_fresh or delta.rows.num_rows < 2:
        return NO_REPEATS
    return find_repeats([delta.rows.column("id")])


def check_identity(delta: TableDelta, repeats: Repeats) -> list[RuleFinding]:
    """An identity twice in one input."""
    if ids_may_repeat(delta.mode, delta.type):
        return []
    members = identity_members(delta.type)
    rows, firsts = repeats.later()

    def message(index: int) -> str:
        row, first = int(rows[index]), int(firsts[index])
        places = (delta.origins.at(first), delta.origins.at(row)) if delta.origins else None
        return repeated_key(delta.type, members, member_values(delta.rows, members, row), places)

    return row_finding(delta, rows, rule="key", property_name=single(members), message=message)


def check_conflicts(image: TableImage) -> list[RuleFinding]:
    """A strict insert of an id that exists already."""
    rows = image.input_rows(conflicts(image))
    ids = image.delta.rows.column("id")

    def message(index: int) -> str:
        return exists_already(image.delta.type, ids[int(rows[index])].as_py())

    return row_finding(
        image.delta, rows, rule="key", property_name="id", message=message, is_conflict=True
    )


def check_derived(delta: TableDelta) -> list[RuleFinding]:
    """Ids that do not follow from the key: of rows that were written under another one."""
    if not is_keyed(delta.type) or not delta.rows.num_rows:
        return []
    members = identity_members(delta.type)
    expected = canonical_ids(delta.type, delta.rows)
    # A missing member is reported as a missing value.
    rows = true_at(pc.fill_null(pc.not_equal(delta.rows.column("id"), expected), False))
    ids = delta.rows.column("id")

    def message(index: int) -> str:
        row = int(rows[index])
        values = member_values(delta.rows, members, row)
        return not_derived(delta.type, members, values, ids[row].as_py())

    return row_finding(delta, rows, rule="key", property_name=single(members), message=message)


# -- bucket by bucket ----------------------------------------------------------------------------


def texts_of_ids(table_key: str) -> Texts:
    """The ids of a table."""
    return Texts(table_key=table_key, column="id")


def rows_of_ids(table_key: str) -> KeyedRows:
    """The same for the exact pass."""
    return KeyedRows(table_key=table_key, columns=("id",), by=("id",))


@dataclass(frozen=True, kw_only=True)
class RepeatedIds:
    """How many rows of the input another one of the same id follows."""

    ids: Texts

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        return ((False, self.ids),)

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
        return len(find_repeats([bucket.texts(self.ids, committed=False)]).superseded())


@dataclass(frozen=True, kw_only=True)
class KnownIds:
    """How many committed ids occur in the input."""

    ids: Texts

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        return ((False, self.ids), (True, self.ids))

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
        mine = bucket.texts(self.ids, committed=False)
        theirs = bucket.texts(self.ids, committed=True)
        return true_count(among(theirs, mine)) if len(mine) and len(theirs) else 0


@dataclass(frozen=True, kw_only=True)
class SameId(RuleByFindings):
    """An identity twice in the input."""

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        return ((False, self.wanted(identity_members(self.type), ("id",))),)

    def findings(self, bucket: Bucket, rows: pa.Table) -> list[RuleFinding]:
        """What the local rule finds."""
        delta = self.delta(rows)
        return check_identity(delta, repeated_ids(delta))


@dataclass(frozen=True, kw_only=True)
class IdTaken(RuleOnInput):
    """A strict insert of an id that exists."""

    is_conflict: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        return ((False, self.wanted((), ("id",))), (True, rows_of_ids(self.type.table_key)))

    def find(self, bucket: Bucket, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = bucket.input(self.needs[0][1])
        if rows is None:
            return NOTHING
        rows = rows.filter(pa.array(last_of_each(rows)))
        matched = bucket.ids(self.needs[1][1], committed=True)
        return self.ranked(check_conflicts(image_of(self.delta(rows), matched)), rows, limit)
