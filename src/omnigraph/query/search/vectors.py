"""Exact nearest neighbours in one vector column.

    vector column ─▶ [VectorColumn] ─▶ rows and distances, nearest first

The distance is what Lance calls `_distance` for the metric L2: the **squared** Euclidean distance,
a 32-bit float. Ours is the sum of squares in 64-bit arithmetic, rounded once; Lance adds up in 32
bits, so the last digit or two may differ. The distance of a row never depends on which other rows
are asked for.

Distances to all rows are first estimated with one product of the matrix and the query,
`|x|² - 2 x·q + |q|²`, which is fast but loses digits when vectors are close to each other. The
error of such an estimate has a known bound. Every row that could be among the k nearest within that
bound is then computed exactly, so estimates decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import InternalError

Rows = npt.NDArray[np.int64]
Distances = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float32]

# Half a unit in the last place of a 32-bit float, and its smallest normal number.
_ROUNDING = 2.0**-24
_SMALLEST = 2.0**-126
# Above this a distance, or a product on the way to it, could leave the range of 32-bit floats.
_LARGEST = 1e37
# A single pass over the matrix is as fast as picking one row in so many out of it.
_PICKED = 12
_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorColumn:
    """The vectors of a column as a matrix, without null rows."""

    matrix: npt.NDArray[np.float32]
    rows: Rows | None
    """The row number of each line of the matrix; None if no row is null."""
    lengths: npt.NDArray[np.float64]
    """The Euclidean length of each line."""
    count: int
    """Rows of the column, nulls included."""

    @classmethod
    def build(cls, column: pa.ChunkedArray | pa.Array) -> VectorColumn:
        """Prepare a column; a column of one piece without nulls is not copied."""
        size = column.type.list_size
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [_matrix(chunk, size) for chunk in chunks if len(chunk)]
        matrix = parts[0] if len(parts) == 1 else np.concatenate([_no_lines(size), *parts])
        rows = None
        if column.null_count:
            valid = pa.chunked_array([chunk.is_valid() for chunk in chunks]).to_numpy()
            rows = np.flatnonzero(valid)
            matrix = matrix[rows]
        lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix, dtype=np.float64))
        return cls(matrix=matrix, rows=rows, lengths=lengths, count=len(column))

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        rows = 0 if self.rows is None else self.rows.nbytes
        return self.matrix.nbytes + self.lengths.nbytes + rows

    def nearest(
        self,
        query: Vector,
        rows: npt.NDArray[np.integer] | None = None,
        k: int | None = None,
    ) -> tuple[Rows, Distances]:
        """The k nearest rows and their distances, by distance and then by row; None is all rows.

        Rows that are as far away as the k-th are all returned, so that the caller can break ties
        by other means. ``rows`` restricts the answer to some candidates. Null rows are absent.
        """
        if query.shape != (self.matrix.shape[1],):
            raise InternalError(
                f"a query of shape {query.shape} on vectors of size {self.matrix.shape[1]}"
            )
        query = np.ascontiguousarray(query, np.float32)
        lines = self._lines(rows)
        if k is not None:
            lines = self._promising(query, lines, k)
        distances = self._distances(query, lines)
        if lines is None:
            lines = np.arange(len(self.matrix))
        if k is not None and 0 < k < len(distances):
            keep = distances <= np.partition(distances, k - 1)[k - 1]
            lines, distances = lines[keep], distances[keep]
        lines, distances = _ordered(lines, distances)
        return (lines if self.rows is None else self.rows[lines]), distances

    # ------------------------------------------------------------ inner parts

    def _lines(self, rows: npt.NDArray[np.integer] | None) -> Rows | None:
        """Lines of the matrix of the candidate rows, ascending and distinct; None is all."""
        if rows is None:
            return None
        rows = rows.astype(np.int64, copy=False)
        if not bool((rows[1:] > rows[:-1]).all()):
            rows = np.unique(rows)
        if self.rows is None:
            return rows
        line_of = np.full(self.count, -1, np.int64)
        line_of[self.rows] = np.arange(len(self.rows))
        lines = line_of[rows]
        return lines[lines >= 0]

    def _promising(self, query: Vector, lines: Rows | None, k: int) -> Rows | None:
        """Lines that may be among the k nearest, or as near as the k-th."""
        available = len(self.matrix) if lines is None else len(lines)
        if k <= 0:
            return np.empty(0, np.int64)
        if k >= available or (lines is not None and available * _PICKED <= len(self.matrix)):
            return lines
        length = float(np.sqrt(np.dot(query.astype(np.float64), query)))
        if (float(self.lengths.max()) + length) ** 2 > _LARGEST:
            return lines
        # Not `@`: the threads of BLAS wait for each other for milliseconds when a core is busy.
        products = np.einsum("ij,j->i", self.matrix, query)
        lengths = self.lengths
        if lines is not None:
            products, lengths = products[lines], lengths[lines]
        estimates = lengths * lengths
        estimates -= 2.0 * products
        estimates += length * length
        # A sum of n products in any order is off by less than n roundings of the product of the
        # two lengths; twice that, because the product counts twice, and some room for the rest.
        size = len(query) + 8
        slack = lengths * (2.0 * size * _ROUNDING * length)
        slack += size * _SMALLEST
        reach = np.partition(estimates + slack, k - 1)[k - 1]
        # Distances that are rounded to the same 32-bit float are equal, hence a little further.
        promising = np.flatnonzero(estimates - slack <= reach * (1 + 4 * _ROUNDING) + _SMALLEST)
        return promising if lines is None else lines[promising]

    def _distances(self, query: Vector, lines: Rows | None) -> Distances:
        """Exact distances, in blocks so that 64-bit differences stay near the processor."""
        count = len(self.matrix) if lines is None else len(lines)
        distances = np.empty(count, np.float64)
        wide = query.astype(np.float64)
        for start in range(0, count, _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            difference = self.matrix[block if lines is None else lines[block]] - wide
            distances[block] = np.einsum("ij,ij->i", difference, difference)
        with np.errstate(over="ignore"):  # Beyond 32 bits everything is equally far: infinity.
            return distances.astype(np.float32)


def _ordered(lines: Rows, distances: Distances) -> tuple[Rows, Distances]:
    """By distance, then by line. The bits of floats from 0 up have the order of the floats, so one
    number holds both, and numbers sort faster than places.
    """
    both = distances.view(np.uint32).astype(np.uint64) << np.uint64(32)
    both |= lines.astype(np.uint64)
    both.sort()
    bits = (both >> np.uint64(32)).astype(np.uint32)
    return (both & np.uint64(0xFFFFFFFF)).astype(np.int64), bits.view(np.float32)


def _matrix(chunk: pa.Array, size: int) -> npt.NDArray[np.float32]:
    """The values of a fixed-size list array as lines; lines of null rows hold anything."""
    values = chunk.values.slice(chunk.offset * size, len(chunk) * size)
    return values.to_numpy(zero_copy_only=False).reshape(len(chunk), size)


def _no_lines(size: int) -> npt.NDArray[np.float32]:
    return np.empty((0, size), np.float32)
