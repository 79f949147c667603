"""Single nodes and the edges of single nodes, found by Lance.

world -> [lookups] -> index, or a scan where there is none
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa

from omnigraph.deadline import look
from omnigraph.query.exec.columns import contiguous
from omnigraph.query.exec.outputs import plain
from omnigraph.query.topology.adjacency import Pairs
from omnigraph.query.topology.edges import Side
from omnigraph.query.topology.vertices import VertexSpace, Vertices
from omnigraph.storage.layout import Addresses, Positions
from omnigraph.storage.tables import Table

LOOKUP_BATCH = 10_000
"""Ids in one condition; more are asked in several."""


def lookups_for(count: int) -> int:
    """How many questions so many ids are."""
    return -(-count // LOOKUP_BATCH)


def find_ids(table: Table, ids: pa.StringArray) -> tuple[Positions, pa.StringArray]:
    """The positions of ids in a table, and the ids that are there in the same order."""
    rows: list[Positions] = []
    texts: list[pa.Array] = []
    if table.prefers_each(len(ids)):
        names = ids.to_pylist()
        for name, found in zip(names, table.among_each("id", names, ()), strict=True):
            rows.append(table.layout.positions(_addresses(found)))
            texts.append(pa.array([name] * found.num_rows, pa.string()))
        positions, there = np.concatenate(rows), pa.concat_arrays(texts)
        table.remember(there.to_pylist(), positions)
        return positions, there
    for start in range(0, len(ids), LOOKUP_BATCH):
        look("looking up nodes")
        found = table.among("id", ids.slice(start, LOOKUP_BATCH), ["id"])
        rows.append(table.layout.positions(_addresses(found)))
        texts += found["id"].chunks
    return np.concatenate(rows), pa.concat_arrays(texts) if texts else pa.array([], pa.string())


def find_edges_of(
    table: Table, side: Side, origins: Vertices, source: VertexSpace, target: VertexSpace
) -> Pairs:
    """The edges of some nodes on one side of them, or on both."""
    parts: list[Pairs] = []
    if side in ("out", "both"):
        parts.append(find_edges(table, "src", origins, source, target))
    if side in ("in", "both"):
        found = find_edges(table, "dst", origins, source, target).reversed()
        if side == "both":
            # A loop was found from the other side already.
            found = found.select(found.sources != found.targets)
        parts.append(found)
    return Pairs.join(parts)


def find_edges(
    table: Table,
    column: Literal["src", "dst"],
    origins: Vertices,
    sources: VertexSpace,
    targets: VertexSpace,
) -> Pairs:
    """The edges that have one of some vertices in a column."""
    near, far = (sources, targets) if column == "src" else (targets, sources)
    ids = near.text(origins)
    if table.prefers_each(len(ids)):
        return _find_each(table, column, ids.to_pylist(), near, far)
    parts: list[Pairs] = []
    for start in range(0, len(ids), LOOKUP_BATCH):
        look("looking up edges")
        found = table.among(column, ids.slice(start, LOOKUP_BATCH), ["src", "dst"])
        parts.append(
            Pairs(
                sources=sources.intern(texts_of(found["src"])),
                targets=targets.intern(texts_of(found["dst"])),
                addresses=_addresses(found),
            )
        )
    return Pairs.join(parts)


def _find_each(
    table: Table,
    column: Literal["src", "dst"],
    ids: list[str],
    near: VertexSpace,
    far: VertexSpace,
) -> Pairs:
    """The same origin by origin: its own end of an edge is known and need not be read."""
    other = "dst" if column == "src" else "src"
    parts = [
        Pairs(
            sources=np.full(found.num_rows, near.number_of(name), np.int64),
            targets=far.intern(texts_of(found[other])),
            addresses=_addresses(found),
        )
        for name, found in zip(ids, table.among_each(column, ids, [other]), strict=True)
    ]
    joined = Pairs.join(parts)
    return joined if column == "src" else joined.reversed()


def texts_of(values: pa.Array | pa.ChunkedArray) -> pa.StringArray:
    """Texts as one plain array."""
    return plain(contiguous(values) if isinstance(values, pa.ChunkedArray) else values)


def _addresses(found: pa.Table) -> Addresses:
    return found["_rowaddr"].to_numpy().astype(np.int64)
