"""Questions to the shipping graph, answered with Arrow on one snapshot.

A snapshot gives every type as an Arrow table: what no query asks for can be worked out there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from omnigraph import SnapshotView


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """Where one container has been."""

    container: str
    distance_nm: int
    ports: list[str]


def longest_journey(view: SnapshotView) -> Journey:
    """The container that has travelled farthest, and its ports in order."""
    legs = view.rows("Carries", columns=["src", "dst", "loaded_at", "discharged_at", "distance_nm"])
    table = legs.to_arrow()
    miles = table.group_by("dst").aggregate([("distance_nm", "sum")])
    top = miles.sort_by([("distance_nm_sum", "descending"), ("dst", "ascending")]).slice(0, 1)
    container = top["dst"][0].as_py()
    own = [row for row in table.to_pylist() if row["dst"] == container]
    names = dict(
        zip(*_table(view, "Port", port="id", name="name").to_pydict().values(), strict=True)
    )
    # Journeys are loaded in the order in which they happened.
    ports = [own[0]["loaded_at"], *(row["discharged_at"] for row in own)]
    return Journey(
        container=container,
        distance_nm=top["distance_nm_sum"][0].as_py(),
        ports=[names[p] for p in ports],
    )


def shortest_route(view: SnapshotView, start: str, goal: str) -> list[tuple[str, int]]:
    """Ports from start to goal along lanes, each with the miles sailed so far (Dijkstra)."""
    lanes: dict[str, list[tuple[str, int]]] = {}
    for row in view.rows("Lane"):
        lanes.setdefault(row["src"], []).append((row["dst"], row["distance_nm"]))
    done: dict[str, tuple[int, str | None]] = {}
    queue: list[tuple[int, str, str | None]] = [(0, start, None)]
    while queue and goal not in done:
        miles, port, before = heapq.heappop(queue)
        if port in done:
            continue
        done[port] = (miles, before)
        for target, distance in lanes.get(port, []):
            heapq.heappush(queue, (miles + distance, target, port))
    if goal not in done:
        return []
    route, at = [], goal
    while at is not None:
        route.append((at, done[at][0]))
        at = done[at][1]
    return route[::-1]


def hops(route: list[tuple[str, int]]) -> list[str]:
    """A route as text, one entry a lane."""
    return [f"{a} → {b}  {nm_b - nm_a:,} nm" for (a, nm_a), (b, nm_b) in pairwise(route)]


def _table(view: SnapshotView, type_name: str, **columns: str) -> pa.Table:
    """Columns of a type under new names."""
    found = view.rows(type_name, columns=list(columns.values())).to_arrow()
    return found.rename_columns(list(columns))
