"""Which engine carries out a load: one process, or Spark.

One process is faster as long as it can hold the input, on every size that was measured; Spark is
for what it cannot hold, and for clusters. Starts nothing and imports no Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from omnigraph.errors import UsageError
from omnigraph.input.sources import Given, Kind

AUTO_BYTES = 2 << 30
"""Files of this size together are for Spark. Measured (`benchmarks/spark_auto.py`): of JSONL one
process needs 0.25 GiB and 1.2 to 1.3 times the size, 2.7 GiB here; below it needs less than Spark
does on the same machine (1.5 to 2.6 GiB), and is faster than a session that must be started."""


class Engine(StrEnum):
    """What carries out a load."""

    LOCAL = "local"
    SPARK = "spark"


def choose_engine(engine: str, given: Given, *, spark_available: Callable[[], bool]) -> Engine:
    """The engine for an input. ``auto``: by its size, and what only Spark holds is for Spark."""
    if engine in tuple(Engine):
        return Engine(engine)
    if engine != "auto":
        raise UsageError(f"unknown engine '{engine}'", hint="use auto, local or spark")
    if given.has(Kind.FRAME):
        return Engine.SPARK
    large = (given.size_bytes or 0) >= AUTO_BYTES
    return Engine.SPARK if large and spark_available() else Engine.LOCAL
