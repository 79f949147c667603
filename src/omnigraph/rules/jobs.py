"""Rules that need nothing of each other, checked on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

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
