"""Rules carried out exactly on the rows that met in one bucket.

    exchanged rows of one bucket -> [exact] -> violations in words, and how many

A bucket holds all rows that can break a rule together: all of one id, of one tuple, of one node.
So each rule is the local validator's, on a small world. Rows of the input and committed ones come
with ``_kept``: whether no later row of the same id replaces them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import among, strings, true_at, union, without
from omnigraph.errors import Violation
from omnigraph.rules.findings import Finding, row_finding, row_violation
from omnigraph.rules.identity import identity_members
from omnigraph.rules.image import TableImage
from omnigraph.rules.table_delta import NO_IDS, TableDelta, WriteMode
from omnigraph.rules.unique import (
    check_committed,
    check_conflicts,
    check_identity,
    check_repeats,
    repeated_ids,
)
from omnigraph.rules.words import end_missing, out_of_bounds, survivor
from omnigraph.schema.catalog import EdgeType, GraphType
from omnigraph.spark.check.digest import Rows, unpacked
from omnigraph.spark.check.found import (
    Place,
    RowPlaces,
    Told,
    found_table,
    nothing_found,
    told_findings,
)
from omnigraph.spark.check.subject import FILE, LINE
from omnigraph.spark.check.values import input_delta

KEPT = "_kept"

Needed = tuple[bool, Rows]
"""Rows of the committed state, or of the input."""
Found = tuple[list[Told], int]
"""The first violations, as many as were asked for, and how many there are."""
NOTHING: Found = ([], 0)


class Meeting:
    """The rows that met in one bucket."""

    def __init__(self, payloads: Mapping[Needed, Sequence[pa.BinaryScalar]]) -> None:
        self._payloads = payloads

    def input(self, topic: Rows) -> pa.Table | None:
        """Rows of the input in its order; None if there are none."""
        rows = self._rows(topic, committed=False)
        return rows.sort_by([(FILE, "ascending"), (LINE, "ascending")]) if rows else None

    def committed(self, topic: Rows) -> pa.Table | None:
        """Committed rows; None if there are none."""
        return self._rows(topic, committed=True)

    def ids(self, topic: Rows, *, committed: bool) -> pa.StringArray:
        """The ids of nodes."""
        rows = self._rows(topic, committed=committed)
        return NO_IDS if rows is None else strings(rows.column("id"))

    def _rows(self, topic: Rows, *, committed: bool) -> pa.Table | None:
        payloads = self._payloads.get((committed, topic))
        return unpacked(payloads) if payloads else None


@dataclass(frozen=True, kw_only=True)
class _OnInput:
    """What rules on rows of one type share."""

    type: GraphType
    place: Place
    files: tuple[str, ...]
    is_conflict: ClassVar[bool] = False

    def wanted(self, columns: Sequence[str], by: tuple[str, ...]) -> Rows:
        """Rows of the input with these columns."""
        names = tuple(dict.fromkeys(("id", *columns, FILE, LINE, KEPT)))
        return Rows(table_key=self.type.table_key, columns=names, by=by)

    def stored(self, columns: Sequence[str], by: tuple[str, ...]) -> Rows:
        """Committed rows of the same type."""
        names = tuple(dict.fromkeys(("id", *columns, KEPT)))
        return Rows(table_key=self.type.table_key, columns=names, by=by)

    def delta(self, rows: pa.Table, mode: WriteMode = WriteMode.APPEND) -> TableDelta:
        """Rows of the input as the local rules take them."""
        return input_delta(self.type, rows, self.files, mode)

    def told(self, findings: Sequence[Finding], rows: pa.Table, limit: int | None) -> Found:
        """What the local rules found."""
        return told_findings(findings, RowPlaces(rows), self.place, limit)


@dataclass(frozen=True, kw_only=True)
class SameId(_OnInput):
    """An identity twice in the input."""

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        return ((False, self.wanted(identity_members(self.type), ("id",))),)

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = meeting.input(self.needs[0][1])
        if rows is None:
            return NOTHING
        delta = self.delta(rows)
        return self.told(check_identity(delta, repeated_ids(delta)), rows, limit)


@dataclass(frozen=True, kw_only=True)
class SameTuple(_OnInput):
    """A unique tuple twice in the input."""

    group: tuple[str, ...]

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        return ((False, self.wanted(self.group, self.group)),)

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = meeting.input(self.needs[0][1])
        if rows is None:
            return NOTHING
        return self.told(check_repeats(self.delta(rows), self.group), rows, limit)


@dataclass(frozen=True, kw_only=True)
class IdTaken(_OnInput):
    """A strict insert of an id that exists."""

    is_conflict: ClassVar[bool] = True

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        return ((False, self.wanted((), ("id",))), (True, self.stored((), ("id",))))

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = _kept(meeting.input(self.needs[0][1]))
        matched = meeting.ids(self.needs[1][1], committed=True)
        if rows is None:
            return NOTHING
        image = _image(self.delta(rows), matched)
        return self.told(check_conflicts(image), rows, limit)


@dataclass(frozen=True, kw_only=True)
class TupleTaken(_OnInput):
    """A unique tuple that a committed entity holds which the input leaves as it is."""

    group: tuple[str, ...]

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        mine, theirs = self.wanted(self.group, self.group), self.stored(self.group, self.group)
        return ((False, mine), (True, theirs))

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = _kept(meeting.input(self.needs[0][1]))
        there = _kept(meeting.committed(self.needs[1][1]))
        if rows is None or there is None:
            return NOTHING
        state = MemoryRows(there)
        found = check_committed(_image(self.delta(rows), NO_IDS), self.group, state)
        return self.told(found, rows, limit)


@dataclass(frozen=True, kw_only=True)
class EndMissing(_OnInput):
    """An edge of the input without a node at one end."""

    column: str
    node_name: str
    in_input: bool
    in_committed: bool

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        nodes = node_ids(self.node_name)
        sides = ((False, self.in_input), (True, self.in_committed))
        edges = self.wanted((self.column,), (self.column,))
        return ((False, edges), *((side, nodes) for side, asked in sides if asked))

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = _kept(meeting.input(self.needs[0][1]))
        if rows is None:
            return NOTHING
        values = rows.column(self.column)
        known = [meeting.ids(topic, committed=side) for side, topic in self.needs[1:]]
        missing = true_at(pc.invert(among(values, union(known or [NO_IDS]))))
        found = row_finding(
            self.delta(rows),
            missing,
            rule="endpoint",
            property_name=self.column,
            message=lambda index: end_missing(
                self.column, values[int(missing[index])].as_py(), self.node_name
            ),
        )
        return self.told(found, rows, limit)


@dataclass(frozen=True, kw_only=True)
class EndLost:
    """A committed edge that stays although a node of an overwritten type goes."""

    edge: EdgeType
    column: str
    place: Place
    is_conflict: ClassVar[bool] = False

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        node_name = self.edge.source if self.column == "src" else self.edge.target
        columns = ("id", self.column)
        edges = Rows(table_key=self.edge.table_key, columns=columns, by=(self.column,))
        return ((True, edges), (False, node_ids(node_name)))

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        edges = meeting.committed(self.needs[0][1])
        if edges is None:
            return NOTHING
        nodes = meeting.ids(self.needs[1][1], committed=False)
        lost = edges.filter(pc.invert(among(edges.column(self.column), nodes))).sort_by("id")
        told = [
            Told(
                violation=survivor(self.edge, self.column, row["id"], row[self.column]),
                place=self.place,
                name=row["id"],
            )
            for row in lost.slice(0, limit).to_pylist()
        ]
        return told, lost.num_rows


@dataclass(frozen=True, kw_only=True)
class CountWrong(_OnInput):
    """A source with too many or too few edges."""

    edge: EdgeType
    committed: bool
    """Committed edges stay unless they are replaced."""
    deserted: bool
    """Committed edges go, and their sources are held to the minimum."""
    nodes_go: bool
    """Nodes of the source's type may disappear; those that do are not held to anything."""

    @cached_property
    def needs(self) -> tuple[Needed, ...]:
        """What must meet."""
        needs = [(False, self.wanted(("src",), ("src",)))]
        if self.committed or self.deserted:
            needs.append((True, self.stored(("src",), ("src",))))
        if self.nodes_go:
            nodes = node_ids(self.edge.source)
            needs += [(False, nodes), (True, nodes)]
        return tuple(needs)

    def find(self, meeting: Meeting, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = _kept(meeting.input(self.needs[0][1]))
        theirs = meeting.committed(self.stored(("src",), ("src",)))
        mine = NO_IDS if rows is None else strings(rows.column("src"))
        stays, goes = self._sources(theirs)
        # First the sources of the input in its order, then the others by name.
        touched = without(union([mine, goes.take(pc.sort_indices(goes))]), self._gone(meeting))
        counts = _count(mine, touched) + _count(stays, touched)
        low, high = self.edge.cardinality.low, self.edge.cardinality.high
        wrong = (counts < low) | (counts > (counts.max(initial=0) if high is None else high))
        at = np.flatnonzero(wrong)
        told = [self._tell(touched[int(i)], int(counts[i]), rows) for i in at[:limit]]
        return told, len(at)

    def _sources(self, theirs: pa.Table | None) -> tuple[pa.StringArray, pa.StringArray]:
        """Sources of committed edges that stay, and of those that go."""
        if theirs is None:
            return NO_IDS, NO_IDS
        sources = strings(theirs.column("src"))
        if self.deserted:
            return NO_IDS, sources
        kept = theirs.column(KEPT).combine_chunks()
        return sources.filter(kept), sources.filter(pc.invert(kept))

    def _gone(self, meeting: Meeting) -> pa.StringArray:
        if not self.nodes_go:
            return NO_IDS
        nodes = node_ids(self.edge.source)
        before = meeting.ids(nodes, committed=True)
        return without(before, meeting.ids(nodes, committed=False))

    def _tell(self, source: pa.StringScalar, number: int, rows: pa.Table | None) -> Told:
        message = out_of_bounds(self.edge, source.as_py(), number)
        if rows is not None:
            at = true_at(pc.equal(rows.column("src"), source))
            if len(at):
                blamed = row_violation(
                    self.delta(rows),
                    int(at[-1]),
                    rule="cardinality",
                    message=message,
                    property_name="src",
                )
                file, line = RowPlaces(rows)[int(at[0])]
                return Told(violation=blamed, place=self.place, file=file, line=line)
        without_entity = Violation(
            rule="cardinality",
            message=message,
            entity_kind="edge",
            type_name=self.edge.name,
            property_name="src",
        )
        place = replace(self.place, rank=1)
        return Told(violation=without_entity, place=place, name=source.as_py())


Exact = SameId | SameTuple | IdTaken | TupleTaken | EndMissing | EndLost | CountWrong


def explain(
    rows: pa.Table, *, rules: Sequence[Exact], topics: Mapping[int, Rows], limit: int | None
) -> pa.Table:
    """A task: what breaks the rules in one bucket."""
    payloads = [p for chunk in rows.column("payload").chunks for p in chunk]
    met: dict[Needed, list[pa.BinaryScalar]] = {}
    for number, committed, payload in zip(
        rows.column("topic").to_pylist(),
        rows.column("committed").to_pylist(),
        payloads,
        strict=True,
    ):
        met.setdefault((committed, topics[number]), []).append(payload)
    meeting = Meeting(met)
    found = [nothing_found()]
    for rule in rules:
        told, total = rule.find(meeting, limit)
        found.append(found_table(told, total, rule.place, conflict=rule.is_conflict))
    return pa.concat_tables(found)


def node_ids(node_name: str) -> Rows:
    """The ids of a node type."""
    return Rows(table_key=f"node:{node_name}", columns=("id",), by=("id",))


class MemoryRows:
    """Committed rows of a bucket, as the local rules look them up."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def row_count(self, table_key: str) -> int:
        """How many there are."""
        return self._rows.num_rows

    def lookup(
        self, table_key: str, column: str, values: pa.Array, columns: tuple[str, ...]
    ) -> pa.Table:
        """Those whose column is among the values."""
        found = self._rows.filter(among(self._rows.column(column), values))
        return found.select(list(columns))

    def scan(self, table_key: str, columns: tuple[str, ...]) -> pa.Table:
        """All of them."""
        return self._rows.select(list(columns))


def _kept(rows: pa.Table | None) -> pa.Table | None:
    if rows is None:
        return None
    kept = rows.filter(rows.column(KEPT))
    return kept if kept.num_rows else None


def _image(delta: TableDelta, matched: pa.StringArray) -> TableImage:
    """The image of rows that are all the last of their id."""
    return TableImage(
        delta=delta,
        rows=delta.rows,
        positions=None,
        matched=matched,
        removed=NO_IDS,
        sources_before=NO_IDS,
        inserted_count=0,
        updated_count=0,
        deleted_count=0,
    )


def _count(sources: pa.StringArray, touched: pa.Array) -> npt.NDArray[np.int64]:
    at = pc.index_in(sources, value_set=touched).drop_null().to_numpy()
    return np.bincount(at, minlength=len(touched))
