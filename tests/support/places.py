"""The places of all rows at once."""

from __future__ import annotations

import numpy as np

from omnigraph.rules.table_delta import Origins


def lines(origins: Origins) -> list[int]:
    """The line of each row."""
    return [int(line) for _, some in origins.stretches for line in some]


def sources(origins: Origins) -> np.ndarray:
    """The number of the source of each row."""
    counts = [len(some) for _, some in origins.stretches]
    return np.repeat(np.array([source for source, _ in origins.stretches], np.int32), counts)
