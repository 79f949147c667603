"""Small Arrow idioms that several rules share. No rule lives here."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.write.rules.findings import Positions

pc: Any = pyarrow.compute
"""Arrow makes its functions when it is imported, where no type checker can see them."""

NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)

_PARALLEL_ROWS_MIN = 50_000
"""Below this much work starting threads costs more than they save."""

Job = tuple[int, Callable[[], None]]
"""Roughly how many rows a job looks at, and the job. Jobs write their result where they like."""


def run(jobs: Sequence[Job]) -> None:
    """Run independent jobs, on all cores when there is enough to do.

    Arrow and NumPy release the interpreter lock in the loops that matter. Jobs must not read the
    committed state: that stays on the calling thread, in a fixed order.
    """
    if len(jobs) < 2 or sum(rows for rows, _ in jobs) < _PARALLEL_ROWS_MIN:
        for _, job in jobs:
            job()
        return
    with ThreadPoolExecutor(max_workers=min(len(jobs), os.cpu_count() or 1)) as pool:
        # The longest first, so that no core is left alone with a long job at the end.
        ordered = sorted(jobs, key=lambda job: job[0], reverse=True)
        for future in [pool.submit(job) for _, job in ordered]:
            future.result()


def true_at(mask: pa.ChunkedArray | pa.Array) -> Positions:
    """Positions where a mask is true; null counts as false."""
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    if not len(mask) or not mask.true_count:
        return NO_POSITIONS
    return np.flatnonzero(pc.fill_null(mask, False).to_numpy(zero_copy_only=False))


def strings(column: pa.ChunkedArray | pa.Array) -> pa.StringArray:
    """The column as one string array."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return array if array.type == pa.string() else array.cast(pa.string())


def union(columns: Sequence[pa.ChunkedArray | pa.Array]) -> pa.StringArray:
    """The distinct strings of all columns, in order of first appearance, without null."""
    chunks: list[pa.Array] = []
    for column in columns:
        chunks += column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    distinct = pc.unique(pa.chunked_array(chunks, pa.string()))
    return distinct.drop_null() if distinct.null_count else distinct


def among(values: pa.ChunkedArray | pa.Array, known: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A mask of the values that are known; a null is not."""
    return pc.is_in(values, value_set=known, skip_nulls=True)


def without(values: pa.Array, known: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The values that are not known."""
    if not len(values) or not len(known):
        return values
    return values.filter(pc.invert(among(values, known)))
