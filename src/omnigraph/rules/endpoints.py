"""Rule 3: both ends of every edge exist, before and after.

Two directions: an edge in the input must find its nodes in the delta or among the committed nodes
that stay; a committed edge that stays must not lose a node. All edge tables together cost one
lookup per node type, and none when the delta brings every node itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import (
    Column,
    Positions,
    among,
    known_among,
    one_array,
    strings,
    true_at,
    union,
    without,
)
from omnigraph.errors import Violation
from omnigraph.rules.bucket import Bucket, RuleByFindings, true_count
from omnigraph.rules.digest import KeyedRows, Sided, Texts
from omnigraph.rules.findings import RuleFinding, end_missing, row_finding, survivor
from omnigraph.rules.identity import rows_of_ids
from omnigraph.rules.image import TableImage
from omnigraph.rules.ranked import NOTHING, Found, RankedViolation, RulePlace
from omnigraph.rules.table_delta import NO_IDS, CommittedState, Job, TableDelta, run
from omnigraph.schema.catalog import Catalog, EdgeType

PIECE_ROWS = 1 << 20
"""Rows of a column that one thread looks at: of very few columns each core has its part."""
SCANNED_MIN = 10_000
"""With fewer nodes it does not matter how their ids are found."""


@dataclass(slots=True, kw_only=True)
class _End:
    """One endpoint column of one edge table, until it is known which ends are missing."""

    image: TableImage
    column_name: str
    node_name: str
    pieces: list[Column] = field(default_factory=lambda: list[Column]())
    """Values not found so far, of pieces of the column."""
    unknown: pa.StringArray = field(default_factory=lambda: NO_IDS)
    """Distinct ids found nowhere."""
    findings: list[RuleFinding] = field(default_factory=lambda: list[RuleFinding]())

    @property
    def column(self) -> pa.ChunkedArray:
        return self.image.rows.column(self.column_name)

    @property
    def node_key(self) -> str:
        return f"node:{self.node_name}"


def check_endpoints(
    images: Mapping[str, TableImage], committed: CommittedState
) -> dict[str, list[RuleFinding]]:
    """Edges of the input without a node at an end, by table key."""
    ends = [end for image in images.values() for end in _ends(image)]
    at_nodes: dict[str, list[_End]] = {}
    for end in ends:
        at_nodes.setdefault(end.node_key, []).append(end)
    in_delta = {key: image.rows.column("id") for key, image in images.items() if key in at_nodes}
    _seek([(at_nodes[key], ids) for key, ids in in_delta.items() if len(ids)])
    _seek(
        [
            (at_node, _committed_ids(node_key, at_node, images.get(node_key), committed))
            for node_key, at_node in at_nodes.items()
            if _unfound(at_node)
        ]
    )
    for end in ends:
        end.unknown = union(end.pieces)
    run([_job(end, lambda end=end: _report(end)) for end in ends if len(end.unknown)])
    found: dict[str, list[RuleFinding]] = {}
    for end in ends:
        found.setdefault(end.image.delta.type.table_key, []).extend(end.findings)
    return found


def check_survivors(
    catalog: Catalog,
    images: Mapping[str, TableImage],
    image: TableImage,
    committed: CommittedState,
) -> list[RuleFinding]:
    """Committed edges that stay although a node of this table goes. A lookup per edge column."""
    if image.delta.type.kind != "node" or not len(image.removed):
        return []
    found: list[RuleFinding] = []
    for edge in catalog.edges_at(image.delta.type.name):
        own = images.get(edge.table_key)
        # An overwritten type has no surviving edges: its new rows were checked as input.
        if (own and own.overwrites) or not committed.row_count(edge.table_key):
            continue
        for column, node_name in (("src", edge.source), ("dst", edge.target)):
            if node_name != image.delta.type.name:
                continue
            left = committed.lookup(edge.table_key, column, image.removed, ("id",))
            left = own.untouched(left) if own else left
            if left.num_rows:
                # What goes with its node needs no name of it.
                ids = strings(left.column("id"))
                left = committed.lookup(edge.table_key, "id", ids, ("id", column))
                found.append(_survivor_finding(edge, column, left.sort_by("id")))
    return found


def _ends(image: TableImage) -> list[_End]:
    edge = image.delta.type
    if not isinstance(edge, EdgeType) or not image.rows.num_rows:
        return []
    ends = [
        _End(image=image, column_name="src", node_name=edge.source),
        _End(image=image, column_name="dst", node_name=edge.target),
    ]
    for end in ends:
        starts = range(0, image.rows.num_rows, PIECE_ROWS)
        pieces = [end.column.slice(start, PIECE_ROWS) for start in starts]
        end.pieces = [piece.drop_null() if piece.null_count else piece for piece in pieces]
    return ends


def _job(end: _End, action: Callable[[], None]) -> Job:
    return end.image.rows.num_rows, action


def _seek(wanted: Sequence[tuple[Sequence[_End], Column]]) -> None:
    """Keep of each end the values that are not among the ids beside it; in all threads.

    Testing every row is faster than finding the distinct ones first, and mostly it is the end of
    the search.
    """
    tests: dict[int, Callable[[Column], Column]] = {}

    def prepare(number: int, ids: Column) -> None:
        tests[number] = known_among(ids, _unfound(wanted[number][0]))

    run(
        [
            (len(ids), lambda number=number, ids=ids: prepare(number, ids))
            for number, (_, ids) in enumerate(wanted)
        ]
    )

    def seek(end: _End, piece: int, number: int) -> None:
        values = end.pieces[piece]
        known = one_array(tests[number](values))
        all_known = known.true_count == len(known)
        end.pieces[piece] = values.slice(0, 0) if all_known else values.filter(pc.invert(known))

    run(
        [
            (len(values), lambda end=end, piece=piece, number=number: seek(end, piece, number))
            for number, (ends, _) in enumerate(wanted)
            for end in ends
            for piece, values in enumerate(end.pieces)
            if len(values)
        ]
    )


def _unfound(ends: Sequence[_End]) -> int:
    return sum(len(piece) for end in ends for piece in end.pieces)


def _committed_ids(
    node_key: str, ends: Sequence[_End], node: TableImage | None, committed: CommittedState
) -> Column:
    """Ids of committed nodes that stay, as far as an end may be one of them."""
    stored = committed.row_count(node_key)
    if (node is not None and node.overwrites) or not stored:
        return NO_IDS
    # A removed node is still in the snapshot: it must not be found there.
    removed = NO_IDS if node is None else node.delta.removed
    if stored <= _unfound(ends) and stored >= SCANNED_MIN:
        # To find the distinct ends takes more than to go through all of the nodes.
        ids = committed.scan(node_key, ("id",)).column("id")
        return ids.filter(pc.invert(among(ids, removed))) if len(removed) else ids
    asked = without(union([piece for end in ends for piece in end.pieces]), removed)
    if not len(asked):
        return NO_IDS
    return committed.lookup(node_key, "id", asked, ("id",)).column("id")


def _report(end: _End) -> None:
    rows = end.image.input_rows(true_at(among(end.column, end.unknown)))
    end.findings = _missing(end.image.delta, rows, end.column_name, end.node_name)


def _missing(delta: TableDelta, rows: Positions, column: str, node_name: str) -> list[RuleFinding]:
    values = delta.rows.column(column)

    def message(index: int) -> str:
        return end_missing(column, values[int(rows[index])].as_py(), node_name)

    return row_finding(delta, rows, rule="endpoint", property_name=column, message=message)


def _survivor_finding(edge: EdgeType, column: str, left: pa.Table) -> RuleFinding:
    ids, values = left.column("id"), left.column(column)

    def word(index: int) -> Violation:
        return survivor(edge, column, ids[index].as_py(), values[index].as_py())

    return RuleFinding(positions=np.arange(left.num_rows, dtype=np.int64), word=word)


# -- bucket by bucket ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MissingEnds:
    """How many distinct ends of edges have no node, in the input or among committed nodes."""

    ends: Texts
    nodes: Texts
    sides: tuple[bool, ...]
    """Where nodes may be: in the input (False), among committed ones (True)."""

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        return ((False, self.ends), *((side, self.nodes) for side in self.sides))

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
        ends = bucket.texts(self.ends, committed=False)
        for side in self.sides:
            nodes = bucket.texts(self.nodes, committed=side)
            if len(ends) and len(nodes):
                ends = ends.filter(pc.invert(among(ends, nodes)))
        return len(ends)


@dataclass(frozen=True, kw_only=True)
class LostEnds:
    """How many ends of committed edges are no longer nodes once the input replaced them all."""

    ends: Texts
    nodes: Texts

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        return ((True, self.ends), (False, self.nodes))

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
        ends = bucket.texts(self.ends, committed=True)
        nodes = bucket.texts(self.nodes, committed=False)
        return len(ends) - (true_count(among(ends, nodes)) if len(ends) and len(nodes) else 0)


@dataclass(frozen=True, kw_only=True)
class EndMissing(RuleByFindings):
    """An edge of the input without a node at one end."""

    column: str
    node_name: str
    sides: tuple[bool, ...]

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        nodes = rows_of_ids(f"node:{self.node_name}")
        edges = self.wanted((self.column,), (self.column,), kept=True)
        return ((False, edges), *((side, nodes) for side in self.sides))

    def findings(self, bucket: Bucket, rows: pa.Table) -> list[RuleFinding]:
        """What the local rule finds."""
        known = [bucket.ids(topic, committed=side) for side, topic in self.needs[1:]]
        lost = true_at(pc.invert(among(rows.column(self.column), union(known or [NO_IDS]))))
        return _missing(self.delta(rows), lost, self.column, self.node_name)


@dataclass(frozen=True, kw_only=True)
class EndLost:
    """A committed edge that stays although a node of an overwritten type goes."""

    edge: EdgeType
    column: str
    place: RulePlace
    is_conflict: ClassVar[bool] = False

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        node_name = self.edge.source if self.column == "src" else self.edge.target
        columns = ("id", self.column)
        edges = KeyedRows(table_key=self.edge.table_key, columns=columns, by=(self.column,))
        return ((True, edges), (False, rows_of_ids(f"node:{node_name}")))

    def find(self, bucket: Bucket, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        edges = bucket.committed(self.needs[0][1])
        if edges is None:
            return NOTHING
        nodes = bucket.ids(self.needs[1][1], committed=False)
        lost = edges.filter(pc.invert(among(edges.column(self.column), nodes))).sort_by("id")
        finding = _survivor_finding(self.edge, self.column, lost)
        ids = lost.column("id").slice(0, limit).to_pylist()
        ranked = [
            RankedViolation(violation=finding.word(index), place=self.place, name=name)
            for index, name in enumerate(ids)
        ]
        return ranked, lost.num_rows
