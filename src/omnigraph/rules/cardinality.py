"""Rule 4: the number of edges per source stays within ``@card``.

Checked for every source whose edges the delta touches; a source that never had an edge is not
held to the minimum, and one that disappears is not held to anything. The default ``0..`` reads
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import among, strings, true_at, union, without
from omnigraph.errors import Violation
from omnigraph.rules.bucket import KEPT, Bucket, RuleOnInput, true_count
from omnigraph.rules.digest import KeyedRows, Sided, Texts
from omnigraph.rules.findings import RuleFinding, count, out_of_bounds, row_violation
from omnigraph.rules.identity import rows_of_ids
from omnigraph.rules.image import TableImage, bounded, image_of
from omnigraph.rules.ranked import Found, RankedViolation
from omnigraph.rules.repeats import none_more_often
from omnigraph.rules.table_delta import FILE, LINE, NO_IDS, CommittedState
from omnigraph.schema.catalog import Cardinality, EdgeType

Counts = npt.NDArray[np.int64]


def check_cardinality(
    images: Mapping[str, TableImage], image: TableImage, committed: CommittedState
) -> list[RuleFinding]:
    """Sources with too many or too few edges. At most one lookup."""
    edge, cardinality = image.delta.type, bounded(image.delta.type)
    if cardinality is None or not isinstance(edge, EdgeType):
        return []
    if _certainly_kept(image, cardinality, committed):
        return []
    # First the sources of the input in its order, then the others by name: a stable order.
    before = image.sources_before.take(pc.sort_indices(image.sources_before))
    touched = union([image.rows.column("src"), before])
    node = images.get(f"node:{edge.source}")
    if node is not None:
        touched = without(touched, node.removed)
    if not len(touched):
        return []
    counts = _count(image.rows.column("src"), touched)
    if not image.overwrites and committed.row_count(edge.table_key):
        others = committed.lookup(edge.table_key, "src", touched, ("id", "src"))
        counts = counts + _count(image.untouched(others).column("src"), touched)
    return _findings(image, edge, touched, counts)


def _certainly_kept(image: TableImage, cardinality: Cardinality, committed: CommittedState) -> bool:
    """Whether the rows are all edges that there are, and seen to keep within the bounds.

    Each of their sources has one. That none has too many is seen without counting.
    """
    stays = not image.overwrites and committed.row_count(image.delta.type.table_key)
    if stays or len(image.sources_before) or cardinality.low > 1:
        return False
    return cardinality.high is None or none_more_often(image.rows.column("src"), cardinality.high)


def _count(sources: pa.ChunkedArray | pa.Array, touched: pa.Array) -> Counts:
    places = pc.index_in(sources, value_set=touched).drop_null().to_numpy()
    return np.bincount(places, minlength=len(touched))


def _wrong(edge: EdgeType, least: Counts, most: Counts) -> npt.NDArray[np.bool_]:
    low, high = edge.cardinality.low, edge.cardinality.high
    wrong = least < low
    if high is not None:
        wrong |= most > high
    return wrong


def _findings(
    image: TableImage,
    edge: EdgeType,
    touched: pa.Array,
    counts: Counts,
) -> list[RuleFinding]:
    places = np.flatnonzero(_wrong(edge, counts, counts))
    if not len(places):
        return []

    def word(index: int) -> Violation:
        source, number = touched[int(places[index])], int(counts[places[index]])
        message = out_of_bounds(edge, source.as_py(), number)
        return _violation(image, source, message)

    return [RuleFinding(positions=places, word=word)]


def _violation(image: TableImage, source: pa.StringScalar, message: str) -> Violation:
    """The last edge of the input at this source, or none when edges were only taken away."""
    rows = image.input_rows(true_at(pc.equal(image.rows.column("src"), source)))
    if len(rows):
        return row_violation(
            image.delta, int(rows[-1]), rule="cardinality", message=message, property_name="src"
        )
    return Violation(
        rule="cardinality",
        message=message,
        entity_kind="edge",
        type_name=image.delta.type.name,
        property_name="src",
    )


# -- bucket by bucket ----------------------------------------------------------------------------

_NO_EDGES = pa.table(
    {"id": NO_IDS, "src": NO_IDS, FILE: pa.array([], pa.int32()), LINE: pa.array([], pa.int64())}
)


@dataclass(frozen=True, kw_only=True)
class OutOfBounds:
    """How many sources have too many or too few edges, or might.

    A row that replaces a committed one counts twice, so at most that many edges there are. Where
    ids follow from the source, an edge keeps its own: there are at least as many as on either side.
    For other edges the number is right only if none is replaced.
    """

    sources: Texts
    edge: EdgeType
    committed: bool
    """Committed edges stay, and count with those of the input."""
    emptied: bool
    """Committed edges go, and a source of theirs that the input does not name has none left."""

    @property
    def needs(self) -> tuple[Sided, ...]:
        """What must meet."""
        mine = ((False, self.sources),)
        return (*mine, (True, self.sources)) if self.committed or self.emptied else mine

    def candidates(self, bucket: Bucket) -> int:
        """The number for one bucket."""
        mine = bucket.texts(self.sources, committed=False)
        theirs = bucket.texts(self.sources, committed=True)
        found = 0
        if len(mine):
            touched = union([mine])
            own = _weighed(mine, bucket.counts(self.sources, committed=False), touched)
            most = least = own
            if self.committed:
                others = _weighed(theirs, bucket.counts(self.sources, committed=True), touched)
                most = own + others
                least = np.maximum(own, others) if self.edge.keyed else most
            found = int(np.count_nonzero(_wrong(self.edge, least, most)))
        if self.emptied and len(theirs):
            found += len(theirs) - (true_count(among(theirs, mine)) if len(mine) else 0)
        return found


def _weighed(sources: pa.ChunkedArray, counts: Counts, touched: pa.Array) -> Counts:
    """How many edges the touched sources have; the same source may come several times."""
    places = pc.index_in(sources, value_set=touched)
    known = places.is_valid().to_numpy()
    weights = np.bincount(places.drop_null().to_numpy(), counts[known], minlength=len(touched))
    return weights.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class CountWrong(RuleOnInput):
    """A source with too many or too few edges."""

    edge: EdgeType
    committed: bool
    emptied: bool
    nodes_go: bool
    """Nodes of the source's type may disappear; those that do are not held to anything."""

    @property
    def needs(self) -> tuple[tuple[bool, KeyedRows], ...]:
        """What must meet."""
        needs = [(False, self.wanted(("src",), ("src",), kept=True))]
        if self.committed or self.emptied:
            needs.append((True, self._theirs))
        if self.nodes_go:
            needs += [(side, rows_of_ids(f"node:{self.edge.source}")) for side in (False, True)]
        return tuple(needs)

    @property
    def _theirs(self) -> KeyedRows:
        return self.stored(("src",), ("src",), kept=self.committed)

    def find(self, bucket: Bucket, limit: int | None) -> Found:
        """What breaks the rule in one bucket."""
        rows = bucket.input(self.needs[0][1])
        rows = _NO_EDGES if rows is None else rows
        stays, goes = self._sources(bucket.committed(self._theirs))
        mine = strings(rows.column("src"))
        # First the sources of the input in its order, then the others by name.
        touched = without(union([mine, goes.take(pc.sort_indices(goes))]), self._gone(bucket))
        counts = _count(mine, touched) + _count(stays, touched)
        found = _findings(image_of(self.delta(rows)), self.edge, touched, counts)
        ranked = [
            self._placed(finding.word(index), touched[int(place)], rows)
            for finding in found
            for index, place in enumerate(finding.positions[:limit])
        ]
        return ranked, count(found)

    def _sources(self, theirs: pa.Table | None) -> tuple[pa.StringArray, pa.StringArray]:
        """Sources of committed edges that stay, and of those that go."""
        if theirs is None:
            return NO_IDS, NO_IDS
        sources = strings(theirs.column("src"))
        if self.emptied:
            return NO_IDS, sources
        kept = theirs.column(KEPT).combine_chunks()
        return sources.filter(kept), sources.filter(pc.invert(kept))

    def _gone(self, bucket: Bucket) -> pa.StringArray:
        nodes = rows_of_ids(f"node:{self.edge.source}")
        before = bucket.ids(nodes, committed=True) if self.nodes_go else NO_IDS
        return without(before, bucket.ids(nodes, committed=False))

    def _placed(
        self, violation: Violation, source: pa.StringScalar, rows: pa.Table
    ) -> RankedViolation:
        """By the first edge of the input at this source; those without one follow by name."""
        at = true_at(pc.equal(rows.column("src"), source))
        if not len(at):
            place = replace(self.place, rank=1)
            return RankedViolation(violation=violation, place=place, name=source.as_py())
        file, line = (rows.column(name)[int(at[0])].as_py() for name in (FILE, LINE))
        return RankedViolation(violation=violation, place=self.place, file=file, line=line)
