"""Frames and tables of edges without a graph, for the operators alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from omnigraph.clock import SystemClock
from omnigraph.query.exec.frame import Frame, NodeBinding
from omnigraph.query.exec.limits import Guard, Limits
from omnigraph.query.topology.adjacency import Adjacency, Pairs
from omnigraph.query.topology.edges import _seen_from

GUARD = Guard(Limits(), SystemClock())


def array(values: Iterable[int]) -> np.ndarray:
    return np.array(list(values), np.int64)


def frame(
    weights: Sequence[int] | None = None,
    tags: Sequence[int] | None = None,
    **columns: Sequence[int],
) -> Frame:
    """Rows that bind variables to vertices of one table."""
    table: Any = SimpleNamespace(row_count=8)
    length = len(next(iter(columns.values()))) if columns else len(weights or tags or [])
    return Frame(
        length,
        {name: NodeBinding(table, vertices=array(values)) for name, values in columns.items()},
        weights=None if weights is None else array(weights),
        tags=None if tags is None else {"#outer": array(tags)},
    )


def rows(made: Frame, *names: str) -> list[tuple[int, ...]]:
    """The vertices of each row, then what it stands for if it says so."""
    columns = [made.bindings[name].identity.tolist() for name in names]
    found = list(zip(*columns, strict=True)) if columns else [()] * made.length
    if made.weights is None:
        return found
    return [(*row, weight) for row, weight in zip(found, made.weights.tolist(), strict=True)]


class Edges:
    """Edges in numbers, asked as a world's edge table is."""

    def __init__(
        self, edges: Sequence[tuple[int, int]], *, same_type: bool = True, whole: bool = True
    ) -> None:
        self.source: Any = SimpleNamespace(row_count=8)
        self.target: Any = self.source if same_type else SimpleNamespace(row_count=8)
        self.asked: list[list[int]] = []
        self._whole = whole
        self._pairs = Pairs(
            sources=array(a for a, _ in edges),
            targets=array(b for _, b in edges),
            addresses=array(range(len(edges))),
        )

    def ends(self, side: str) -> tuple[Any, Any]:
        return (self.source, self.target) if side != "in" else (self.target, self.source)

    def adjacency(self, side: Any, origins: np.ndarray, *, per_edge: bool) -> Adjacency:
        """The whole adjacency, or only what was asked for, as a lookup gives it."""
        self.asked.append(sorted(set(origins.tolist())))
        pairs = _seen_from(self._pairs, side)
        if not self._whole:
            pairs = pairs.select(np.isin(pairs.sources, origins))
        make = Adjacency.of_edges if per_edge else Adjacency.of_pairs
        return make(pairs, vertices=8 if self._whole else None)
