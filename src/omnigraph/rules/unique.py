"""Rule 2: identity and ``@unique`` groups.

Within the input no tuple may occur twice, in any entity; against the committed state a tuple
may not be held by an entity that the delta leaves as it is. Tuples with a null are exempt. A key
*is* the id, so a committed holder of the same key is the same entity and keys need no second half.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import true_at
from omnigraph.rules.findings import Finding, member_values, row_finding
from omnigraph.rules.identity import identity_members
from omnigraph.rules.image import TableImage, conflicts
from omnigraph.rules.repeats import (
    NO_REPEATS,
    Repeats,
    comparable,
    complete_rows,
    find_repeats,
    tuple_codes,
)
from omnigraph.rules.table_delta import CommittedState, TableDelta, WriteMode
from omnigraph.rules.words import exists_already, held_twice, repeated_key, single
from omnigraph.schema.identity import is_keyed


def unique_groups(delta: TableDelta) -> list[tuple[str, ...]]:
    """The groups to check beside identity; one equal to the key says nothing new."""
    key = set(identity_members(delta.type))
    return [group for group in delta.type.unique if set(group) != key]


def repeated_ids(delta: TableDelta) -> Repeats:
    """Rows that share an id. For a keyed type these are the rows that share a key."""
    if delta.ids_fresh or delta.rows.num_rows < 2:
        return NO_REPEATS
    return find_repeats([delta.rows.column("id")])


def check_identity(delta: TableDelta, repeats: Repeats) -> list[Finding]:
    """An identity twice in one input. Supplied ids may repeat in a merge: there the last wins."""
    if delta.mode is WriteMode.MERGE and not is_keyed(delta.type):
        return []
    members = identity_members(delta.type)
    rows, firsts = repeats.later()

    def message(index: int) -> str:
        row, first = int(rows[index]), int(firsts[index])
        places = (delta.origins.at(first), delta.origins.at(row)) if delta.origins else None
        return repeated_key(delta.type, members, member_values(delta.rows, members, row), places)

    return row_finding(delta, rows, rule="key", property_name=single(members), message=message)


def check_repeats(delta: TableDelta, group: tuple[str, ...]) -> list[Finding]:
    """A unique tuple twice in one input."""
    if delta.rows.num_rows < 2:
        return []
    rows, firsts = find_repeats([delta.rows.column(m) for m in group]).later()
    ids = delta.rows.column("id")

    def message(index: int) -> str:
        row, first = int(rows[index]), int(firsts[index])
        return _held_by(delta, group, row, ids[first].as_py(), ids[row].as_py())

    return row_finding(delta, rows, rule="unique", property_name=single(group), message=message)


def check_conflicts(image: TableImage) -> list[Finding]:
    """A strict insert of an id that exists already."""
    rows = image.input_rows(conflicts(image))
    ids = image.delta.rows.column("id")

    def message(index: int) -> str:
        return exists_already(image.delta.type, ids[int(rows[index])].as_py())

    return row_finding(
        image.delta, rows, rule="key", property_name="id", message=message, is_conflict=True
    )


def check_committed(
    image: TableImage, group: tuple[str, ...], committed: CommittedState
) -> list[Finding]:
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
