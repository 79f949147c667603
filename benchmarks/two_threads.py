"""What two threads make of the array work of a query, and what sorting by counting does.

    python benchmarks/two_threads.py [ROWS]

Each line is one pass over all rows beside two threads with half of them, the best of five: only
what lets go of the interpreter's lock gains.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from omnigraph.query.exec.order import stable_order

ROUNDS = 5
Work = Callable[[slice], Any]


def main() -> None:
    """Measure."""
    rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    dice = np.random.default_rng(1)
    keys, places = np.sort(dice.integers(0, 1 << 40, rows)), dice.integers(0, rows, rows)
    ages, codes = dice.integers(0, 90, rows), dice.integers(0, 1000, rows)
    weights, out = dice.random(rows), np.empty(rows, np.int64)
    steps: dict[str, Work] = {
        "gather": lambda s: keys[places[s]] & 0xFFFFFFFF,
        "take into": lambda s: np.take(keys, places[s], out=out[s], mode="clip"),
        "count": lambda s: np.bincount(codes[s], minlength=1000),
        "count weighted": lambda s: np.bincount(codes[s], weights=weights[s], minlength=1000),
        "stable sort": lambda s: np.argsort(ages[s], kind="stable"),
        "unique": lambda s: np.unique(ages[s]),
        "add": lambda s: ages[s] + codes[s],
        "mask": lambda s: (ages[s] > 60) & (codes[s] < 500),
    }
    with ThreadPoolExecutor(1) as pool:

        def both(work: Work) -> None:
            first = pool.submit(work, slice(0, rows // 2))
            work(slice(rows // 2, rows))
            first.result()

        for name, work in steps.items():
            one, two = best(lambda w=work: w(slice(0, rows))), best(lambda w=work: both(w))
            print(f"{name:16} one {one:7.1f} ms, two {two:7.1f} ms: {one / two:.2f}x", flush=True)
    for name, numbers in (("0 to 89", ages), ("a permutation", dice.permutation(rows))):
        compared = best(lambda n=numbers: np.argsort(n, kind="stable"))
        counted = best(lambda n=numbers: stable_order(n))
        print(f"sort {name}: compared {compared:.0f} ms, counted {counted:.0f} ms", flush=True)


def best(work: Callable[[], Any]) -> float:
    """Milliseconds."""
    spent: list[float] = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        work()
        spent.append((time.perf_counter() - started) * 1e3)
    return min(spent)


if __name__ == "__main__":
    main()
