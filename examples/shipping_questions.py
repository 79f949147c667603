"""Questions to the shipping graph, answered with Arrow on one snapshot.

A snapshot gives every type as an Arrow table: joins, groups and numpy do the rest.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from omnigraph import SnapshotView


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyPort:
    """How much goes on in a port."""

    name: str
    calls: int
    carriers: int
    teu: int
    """Capacity of all vessels that called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """Where one container has been."""

    container: str
    distance_nm: int
    ports: list[str]


def busiest_ports(view: SnapshotView, limit: int) -> list[BusyPort]:
    """Ports by number of calls: Port <- CallsAt - Voyage - SailedBy -> Vessel - OperatedBy."""
    calls = _table(view, "CallsAt", voyage="src", port="dst")
    sails = _table(view, "SailedBy", voyage="src", vessel="dst")
    operators = _table(view, "OperatedBy", vessel="src", carrier="dst")
    vessels = _table(view, "Vessel", vessel="id", teu="capacity_teu")
    names = _table(view, "Port", port="id", name="name")
    joined = calls.join(sails, "voyage").join(operators, "vessel").join(vessels, "vessel")
    ports = joined.group_by("port").aggregate(
        [("voyage", "count"), ("carrier", "count_distinct"), ("teu", "sum")]
    )
    ranked = ports.join(names, "port").sort_by(
        [("voyage_count", "descending"), ("port", "ascending")]
    )
    return [
        BusyPort(
            name=row["name"],
            calls=row["voyage_count"],
            carriers=row["carrier_count_distinct"],
            teu=row["teu_sum"],
        )
        for row in ranked.slice(0, limit).to_pylist()
    ]


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


def ports_alike(view: SnapshotView, locode: str, limit: int) -> list[tuple[str, float]]:
    """Ports whose cargo mix points in the same direction: cosine similarity of vectors."""
    table = view.rows("Port", columns=["id", "name", "cargo_mix"]).to_arrow()
    ids = table["id"].to_pylist()
    vectors = table["cargo_mix"].combine_chunks().flatten().to_numpy().reshape(len(ids), -1)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = unit @ unit[ids.index(locode)]
    order = [i for i in np.argsort(-likeness, kind="stable") if ids[i] != locode]
    return [(table["name"][int(i)].as_py(), float(likeness[i])) for i in order[:limit]]


def hops(route: list[tuple[str, int]]) -> list[str]:
    """A route as text, one entry a lane."""
    return [f"{a} → {b}  {nm_b - nm_a:,} nm" for (a, nm_a), (b, nm_b) in pairwise(route)]


def _table(view: SnapshotView, type_name: str, **columns: str) -> pa.Table:
    """Columns of a type under new names."""
    found = view.rows(type_name, columns=list(columns.values())).to_arrow()
    return found.rename_columns(list(columns))
