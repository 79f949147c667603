"""The rows of a running query: what each variable is bound to, as arrays of integers.

    scan -> [frame] -> expand -> [frame] -> … -> project

A node is a row of its table, or a vertex number; one form is made from the other only when a step
asks. An edge is an address. Properties are looked up as late as possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from omnigraph.arrow.sets import Mask
from omnigraph.errors import InternalError, LimitError
from omnigraph.query.topology.vertices import NOTHING, Vertices
from omnigraph.storage.layout import Addresses, Positions

if TYPE_CHECKING:
    from omnigraph.query.exec.world import EdgeTable, NodeTable


FEW = 256
"""So few values are quicker through a set than through arrays."""
Index = npt.NDArray[np.int64]


class NodeBinding:
    """A column of nodes of one type; ``NOTHING`` where a variable is null."""

    __slots__ = ("_rows", "_vertices", "table")

    def __init__(
        self, table: NodeTable, *, rows: Positions | None = None, vertices: Vertices | None = None
    ) -> None:
        self.table = table
        self._rows = rows
        self._vertices = vertices

    @property
    def rows(self) -> Positions:
        """Positions in the table."""
        if self._rows is None:
            self._rows = self.table.rows_of(self.vertices)
        return self._rows

    @property
    def vertices(self) -> Vertices:
        """Vertex numbers."""
        if self._vertices is None:
            self._vertices = self.table.vertices_of(self.rows)
        return self._vertices

    @property
    def has_rows(self) -> bool:
        """Whether positions are known already."""
        return self._rows is not None

    @property
    def identity(self) -> Index:
        """Whatever form is at hand: equal integers are equal nodes."""
        return self._vertices if self._vertices is not None else self.rows

    def present(self) -> Mask:
        return self.identity >= 0

    def distinct(self, name: str) -> tuple[int, dict[str, Binding]]:
        """Each node once: how many, and as the only variable."""
        values = self.identity
        if len(values) > FEW:
            values = np.unique(values)
        else:
            values = np.array(sorted(set(values.tolist())), np.int64)
        known = self._vertices is not None
        made = NodeBinding(
            self.table, rows=None if known else values, vertices=values if known else None
        )
        return len(values), {name: made}

    def take(self, index: Index) -> NodeBinding:
        return NodeBinding(
            self.table,
            rows=None if self._rows is None else self._rows[index],
            vertices=None if self._vertices is None else self._vertices[index],
        )

    def with_nulls(self, index: Index) -> NodeBinding:
        """Like ``take``; a negative place gives null."""
        return NodeBinding(
            self.table,
            rows=None if self._rows is None else _or_nothing(self._rows, index),
            vertices=None if self._vertices is None else _or_nothing(self._vertices, index),
        )


class EdgeBinding:
    """A column of edges of one type."""

    __slots__ = ("addresses", "table")

    def __init__(self, table: EdgeTable, addresses: Addresses) -> None:
        self.table = table
        self.addresses = addresses

    @property
    def rows(self) -> Positions:
        """Positions in the table."""
        return self.table.rows_of(self.addresses)

    @property
    def identity(self) -> Index:
        return self.addresses

    def present(self) -> Mask:
        return self.addresses >= 0

    def take(self, index: Index) -> EdgeBinding:
        return EdgeBinding(self.table, self.addresses[index])

    def with_nulls(self, index: Index) -> EdgeBinding:
        return EdgeBinding(self.table, _or_nothing(self.addresses, index))


Binding = NodeBinding | EdgeBinding


def _or_nothing(values: Index, index: Index) -> Index:
    if not len(values):
        return np.full(len(index), NOTHING, np.int64)
    return np.where(index < 0, NOTHING, values[index])


class Frame:
    """Rows. Never changed once made; arrays may be shared between frames."""

    __slots__ = ("bindings", "length", "scores", "tags", "weights")

    def __init__(
        self,
        length: int,
        bindings: dict[str, Binding],
        *,
        tags: dict[str, Index] | None = None,
        weights: npt.NDArray[np.int64] | None = None,
        scores: npt.NDArray[np.float64] | None = None,
    ) -> None:
        self.length = length
        self.bindings = bindings
        self.tags = tags or {}
        """Which row of an enclosing frame each row belongs to, by the block's name."""
        self.weights = weights
        """How many rows each row stands for; None: one."""
        self.scores = scores
        """The rank's measure of each row, once ranked."""

    def node(self, variable: str) -> NodeBinding:
        found = self.bindings[variable]
        if not isinstance(found, NodeBinding):
            raise InternalError(f"${variable} is not a node")
        return found

    def take(self, index: Index) -> Frame:
        """Some rows, in this order."""
        return Frame(
            len(index),
            {name: b.take(index) for name, b in self.bindings.items()},
            tags={name: t[index] for name, t in self.tags.items()},
            weights=None if self.weights is None else self.weights[index],
            scores=None if self.scores is None else self.scores[index],
        )

    def where(self, mask: Mask) -> Frame:
        """The rows that are marked."""
        if mask.all():
            return self
        return self.take(np.flatnonzero(mask))

    def plus(self, variable: str, binding: Binding) -> Frame:
        """One more variable."""
        return self.binding({**self.bindings, variable: binding})

    def weighted(self, weights: npt.NDArray[np.int64]) -> Frame:
        """The same rows standing for others."""
        return Frame(
            self.length, self.bindings, tags=self.tags, weights=weights, scores=self.scores
        )

    def only(self, variables: tuple[str, ...]) -> Frame:
        """Fewer variables."""
        return self.binding({name: self.bindings[name] for name in variables})

    def binding(self, bindings: dict[str, Binding]) -> Frame:
        """The same rows with these variables."""
        return Frame(
            self.length, bindings, tags=self.tags, weights=self.weights, scores=self.scores
        )

    def weight_sum(self) -> int:
        """How many rows this stands for."""
        return self.length if self.weights is None else total(self.weights)


# -- weights ---------------------------------------------------------------------------------------
# How many rows a row stands for.
#
# Paths are counted, not walked: degrees are multiplied, and a small graph has more paths than 64
# bits can count. Such a count is an error, never a wrong number.


Weights = npt.NDArray[np.int64]
COUNT_MAX = (1 << 63) - 1
TOO_MANY = float(COUNT_MAX) * (1 - 2.0**-50)
"""What a float of a product or a sum must stay below, its rounding included."""
EXACT = 1 << 53
"""Below this a float holds every whole number."""


def times(weights: Weights, counts: Weights) -> Weights:
    """Row by row, one number times the other."""
    # The bound of all rows is cheap and nearly always enough.
    if len(weights) and int(weights.max()) * int(counts.max()) > COUNT_MAX:
        _check((weights.astype(np.float64) * counts).max())
    return weights * counts


def summed(groups: npt.NDArray[np.int64], weights: Weights | None, count: int) -> Weights:
    """What the rows of each group stand for together."""
    if weights is None:
        return np.bincount(groups, minlength=count)
    if not len(weights):
        return np.zeros(count, np.int64)
    if count == 1:
        return np.array([total(weights)], np.int64)
    if int(weights.max()) * len(weights) > COUNT_MAX:
        _check(np.bincount(groups, weights=weights).max())
    elif float(weights.sum()) < EXACT:
        return np.bincount(groups, weights=weights, minlength=count).astype(np.int64)
    sums = np.zeros(count, np.int64)
    np.add.at(sums, groups, weights)
    return sums


def total(weights: Weights) -> int:
    """What all rows stand for."""
    if not len(weights) or int(weights.max()) * len(weights) <= COUNT_MAX:
        return int(weights.sum())
    exact = sum(weights.tolist())
    if exact > COUNT_MAX:
        raise _too_many()
    return exact


def _check(most: float) -> None:
    if most >= TOO_MANY:
        raise _too_many()


def _too_many() -> LimitError:
    return LimitError(
        f"the query counts more than {COUNT_MAX:,} rows",
        hint="bound the pattern: fewer traversals, a filter or a key",
        details={"limit": "count", "count_max": COUNT_MAX},
    )
