"""Traversal: from frames to frames along adjacency.

Without an edge variable a row meets every node once, at its shortest distance (breadth first, the
start counts as visited; a loop on the start itself is distance one). With one, a row per edge.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from omnigraph.errors import InternalError
from omnigraph.query.exec.frame import EXACT, EdgeBinding, Frame, Index, Mask, NodeBinding, times
from omnigraph.query.exec.limits import Guard
from omnigraph.query.exec.world import EdgeTable
from omnigraph.query.plan.nodes import Close, Degrees, Expand
from omnigraph.query.topology.adjacency import TARGET_MASK
from omnigraph.query.topology.edges import Side
from omnigraph.query.topology.overlay import AnyAdjacency
from omnigraph.query.topology.vertices import Vertices
from omnigraph.storage.layout import Addresses

FEW_ORIGINS = 32
DENSE_PART = 4
"""From a fourth of all origins on, counting over all edges beats following some."""

Neighbours = Callable[[Vertices], AnyAdjacency]
"""An adjacency with at least the edges of these origins."""


def expand(frame: Frame, step: Expand, edges: EdgeTable, guard: Guard) -> Frame:
    """Rows extended by what they reach."""
    origins = frame.node(step.origin).vertices
    target = edges.ends(step.direction)[1]
    where = _where(step)
    if step.edge_variable is not None:
        index, reached, addresses = _edges_of(origins, edges, step.direction, guard, frame, where)
        grown = _kept(frame, step).take(index)
        grown = grown.plus(step.target, NodeBinding(target, vertices=reached))
        return grown.plus(step.edge_variable, EdgeBinding(edges, addresses))
    if step.low == 1 and (step.high == 1 or edges.source is not edges.target):
        # Edges between different types never chain: more hops than one find nothing new.
        if len(origins) <= FEW_ORIGINS and _carries_nothing(frame, step):
            reached = _from_few(origins, edges, step.direction, guard, where)
            return Frame(len(reached), {step.target: NodeBinding(target, vertices=reached)})
        index, reached, _, _ = _one_hop(
            origins, edges, step.direction, guard, frame, where, per_edge=False
        )
    elif edges.source is not edges.target:
        index = reached = np.empty(0, np.int64)
    else:
        index, reached = _many_hops(frame, origins, step, edges, guard, where)
    grown = _kept(frame, step).take(index)
    return grown.plus(step.target, NodeBinding(target, vertices=reached))


def _carries_nothing(frame: Frame, step: Expand) -> bool:
    """Whether rows are nothing but their new end."""
    return step.keep == () and not frame.tags and frame.weights is None and frame.scores is None


def _from_few(
    origins: Vertices, edges: EdgeTable, direction: Side, guard: Guard, where: str
) -> Vertices:
    """What a few origins reach, range by range: cheaper than arrays of ranges."""
    adjacency = edges.adjacency(direction, origins, per_edge=False)
    ranges = [adjacency.range_of(origin) for origin in origins.tolist()]
    guard.check_rows(sum(last - first for first, last in ranges), 1, where)
    parts = [adjacency.span(first, last) for first, last in ranges]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _kept(frame: Frame, step: Expand) -> Frame:
    return frame if step.keep is None else frame.only(step.keep)


def arrivals(frame: Frame, step: Expand, edges: EdgeTable) -> Frame | None:
    """How many rows arrive at each target, when so many set out that it pays to look at all edges.

    None where it does not, or where more than the target has to be known.
    """
    simple = step.low == step.high == 1 and not step.filters and step.edge_variable is None
    origin, target = edges.ends(step.direction)
    if not simple or frame.tags or frame.length * DENSE_PART < origin.row_count:
        return None
    origins = frame.node(step.origin).vertices
    adjacency = edges.adjacency(step.direction, origins, per_edge=False)
    if adjacency.vertex_count is None:
        return None
    setting_out = np.bincount(
        origins[origins >= 0], weights=frame.weights, minlength=adjacency.vertex_count
    )
    if frame.weights is None and frame.length == origin.row_count and (setting_out <= 1).all():
        counts = adjacency.arrivals
    elif setting_out.sum() * adjacency.size < EXACT:
        counts = adjacency.arrivals_from(setting_out)
    else:
        return None
    reached = np.flatnonzero(counts)
    arrived = Frame(len(reached), {step.target: NodeBinding(target, vertices=reached)})
    return arrived.weighted(counts[reached])


def close(frame: Frame, step: Close, edges: EdgeTable, guard: Guard) -> Frame:
    """Rows whose two ends are connected."""
    origins = frame.node(step.origin).vertices
    targets = frame.node(step.target).vertices
    where = _where(step)
    if step.edge_variable is not None:
        index, reached, addresses = _edges_of(origins, edges, step.direction, guard, frame, where)
        fits = reached == targets[index]
        found = EdgeBinding(edges, addresses[fits])
        return frame.take(index[fits]).plus(step.edge_variable, found)
    if step.low == 1 and (step.high == 1 or edges.source is not edges.target):
        adjacency = edges.adjacency(step.direction, origins, per_edge=False)
        return frame.where(adjacency.connected(origins, targets))
    if edges.source is not edges.target:
        return frame.take(np.empty(0, np.int64))
    index, reached = _many_hops(frame, origins, step, edges, guard, where)
    return frame.take(index[reached == targets[index]])


def degrees(frame: Frame, step: Degrees, edges: EdgeTable) -> Frame:
    """Rows weighted by how many they would become."""
    origins = frame.node(step.origin).vertices
    adjacency = edges.adjacency(step.direction, origins, per_edge=step.per_edge)
    counts = adjacency.ranges(origins)[1]
    weights = counts if frame.weights is None else times(frame.weights, counts)
    return frame.weighted(weights).where(weights > 0)


def _one_hop(
    origins: Vertices,
    edges: EdgeTable,
    direction: Side,
    guard: Guard,
    frame: Frame,
    where: str,
    *,
    per_edge: bool,
) -> tuple[Index, Vertices, Index, AnyAdjacency]:
    adjacency = edges.adjacency(direction, origins, per_edge=per_edge)
    if len(origins) == 1:
        first, last = adjacency.range_of(int(origins[0]))
        guard.check_rows(last - first, len(frame.bindings) + 1, where)
        reached = adjacency.span(first, last)
        return np.zeros(len(reached), np.int64), reached, np.arange(first, last), adjacency
    starts, counts = adjacency.ranges(origins)
    guard.check_rows(int(counts.sum()), len(frame.bindings) + 1, where)
    index, places = _spread(starts, counts)
    return index, adjacency.reached(places), places, adjacency


def _edges_of(
    origins: Vertices, edges: EdgeTable, direction: Side, guard: Guard, frame: Frame, where: str
) -> tuple[Index, Vertices, Addresses]:
    """One hop with a row per edge: the row it starts from, the target, the edge's address."""
    index, reached, places, adjacency = _one_hop(
        origins, edges, direction, guard, frame, where, per_edge=True
    )
    addresses = adjacency.addresses_at(places)
    if addresses is None:
        raise InternalError("edges without addresses")
    return index, reached, addresses


def _spread(starts: Index, counts: Index) -> tuple[Index, Index]:
    """For ranges of places: which range each place belongs to, and the places themselves."""
    index = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return index, np.arange(len(index)) + (starts - before)[index]


def _many_hops(
    frame: Frame,
    origins: Vertices,
    step: Expand | Close,
    edges: EdgeTable,
    guard: Guard,
    where: str,
) -> tuple[Index, Vertices]:
    """Breadth first from each distinct origin; the rows of an origin share what it reaches."""
    unique, row_of = np.unique(origins, return_inverse=True)
    unique_present = unique >= 0

    def neighbours(some: Vertices) -> AnyAdjacency:
        return edges.adjacency(step.direction, some, per_edge=False)

    search = _Search(unique, unique_present, neighbours, guard, len(frame.bindings), where)
    start, reached = search.run(step.low, step.high)
    # Per origin: its range in the sorted result; then one copy per row of that origin.
    order = np.argsort(start, kind="stable")
    start, reached = start[order], reached[order]
    firsts = np.searchsorted(start, np.arange(len(unique)))
    counts = np.searchsorted(start, np.arange(len(unique)), side="right") - firsts
    guard.check_rows(int(counts[row_of].sum()), len(frame.bindings) + 1, where)
    index, places = _spread(firsts[row_of], counts[row_of])
    return index, reached[places]


class _Search:
    """Breadth-first search from many origins at once; a state is (origin, vertex)."""

    def __init__(
        self,
        origins: Vertices,
        present: Mask,
        neighbours: Neighbours,
        guard: Guard,
        columns: int,
        where: str,
    ) -> None:
        self._origins = origins
        self._neighbours = neighbours
        self._guard = guard
        self._columns = columns
        self._where = where
        self._starts = np.flatnonzero(present)

    def run(self, low: int, high: int) -> tuple[Index, Vertices]:
        """Origin number and vertex of everything at a distance from ``low`` to ``high``."""
        starts, frontier = self._starts, self._origins[self._starts]
        visited = _Visited(self._states(starts, frontier))
        found_starts: list[Index] = []
        found: list[Vertices] = []
        for distance in range(1, high + 1):
            if not len(frontier):
                break
            adjacency = self._neighbours(frontier)
            begins, counts = adjacency.ranges(frontier)
            self._guard.check_rows(int(counts.sum()), self._columns + 1, self._where)
            index, places = _spread(begins, counts)
            reached = adjacency.reached(places)
            if distance == 1 == low:
                loops = reached == frontier[index]
                found_starts.append(starts[index[loops]])
                found.append(reached[loops])
            states = visited.fresh(np.unique(self._states(starts[index], reached)))
            visited.add(states)
            starts, frontier = self._split(states)
            if distance >= low:
                found_starts.append(starts)
                found.append(frontier)
        return _joined(found_starts), _joined(found)

    def _states(self, starts: Index, vertices: Vertices) -> Index:
        return (starts << 32) | vertices

    def _split(self, states: Index) -> tuple[Index, Vertices]:
        return states >> 32, states & TARGET_MASK


class _Visited:
    """A growing set of states, as sorted runs of which each is at least twice as long as the next.

    One run would be sorted anew at every distance: on a long chain the square of its length.
    """

    def __init__(self, states: Index) -> None:
        self._runs: list[Index] = [states]

    def fresh(self, states: Index) -> Index:
        """Those of some sorted states that were never added."""
        for run in self._runs:
            states = states[~_sorted_member(run, states)]
        return states

    def add(self, states: Index) -> None:
        if not len(states):
            return
        self._runs.append(states)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = self._runs.pop()
            self._runs[-1] = np.sort(np.concatenate([self._runs[-1], last]))


def _sorted_member(pool: Index, wanted: Index) -> Mask:
    if not len(pool):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(pool, wanted), len(pool) - 1)
    return pool[places] == wanted


def _joined(parts: list[Index]) -> Index:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _where(step: Expand | Close) -> str:
    return f"the traversal of {step.edge} from ${step.origin}"
