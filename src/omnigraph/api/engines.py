"""The way into a load: an engine is chosen by what is given, and carries the load out.

graph.load(…) -> [loading] -> this process (input/publishing.py) | Spark (spark/load.py)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from functools import partial
from typing import Any

from omnigraph.choices import AutoEngineWord
from omnigraph.errors import UsageError
from omnigraph.input.publishing import LoadDone, LoadRequest, load_locally
from omnigraph.input.rejects import RejectFile
from omnigraph.input.sources import Given, Kind
from omnigraph.manifest.repository import Repository
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion


def run_load(
    repository: Repository,
    load: LoadRequest,
    *,
    engine: AutoEngineWord = "auto",
    spark: Any = None,
    rejects: str | os.PathLike[str] | None = None,
) -> LoadDone:
    """Carry a load out. See ``Graph.load``."""
    if spark is not None and engine == "auto":
        engine = "spark"
    chosen = choose_engine(engine, load.given, spark_available=_spark_available)
    if chosen is Engine.LOCAL and spark is not None:
        raise UsageError(
            "a Spark session is given, and the engine is local", hint='say engine="spark"'
        )
    with RejectFile(rejects, load.given.paths) as out:
        if chosen is Engine.LOCAL:
            return load_locally(repository, load, out)
        from omnigraph.spark.load import bulk_load

        return bulk_load(repository, load, out, spark=spark)


def _spark_available() -> bool:
    from omnigraph.spark.sessions import spark_available

    return spark_available()


# -- engine ----------------------------------------------------------------------------------------
# Which engine carries out a load: one process, or Spark.
#
# One process is faster as long as it can hold the input, on every size that was measured; Spark is
# for what it cannot hold, and for clusters. Starts nothing and imports no Spark.


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


# -- cleaning --------------------------------------------------------------------------------------
# Which engine finds what a cleanup keeps: this process, or Spark where very much is kept.
#
# graph.upkeep.cleanup(…) -> [cleaning] -> upkeep/sweep.py | spark/marking.py


Mark = Callable[[Sequence[TableVersion]], Any]

AUTO_VERSIONS = 5_000
"""Tables of which so many versions are kept are for Spark."""


@contextmanager
def marking(location: Location, here: Mark, engine: str, spark: Any) -> Generator[Mark]:
    """How to mark with an engine: ``local`` is ``here``, ``auto`` goes by how much there is."""
    if engine not in ("auto", *Engine):
        raise UsageError(f"unknown engine '{engine}'", hint="use auto, local or spark")
    if engine == Engine.LOCAL:
        yield here
        return
    with ExitStack() as open_sessions:
        made: list[Mark] = []

        def on_spark(versions: Sequence[TableVersion]) -> Iterator[str]:
            from omnigraph.spark.marking import mark_on_spark
            from omnigraph.spark.sessions import pipeline_session

            if not made:
                pipeline = open_sessions.enter_context(pipeline_session(spark))
                made.append(partial(mark_on_spark, pipeline.spark, location))
            return made[0](versions)

        def by_size(versions: Sequence[TableVersion]) -> Any:
            return on_spark(versions) if _is_large(versions) else here(versions)

        yield on_spark if engine == Engine.SPARK or spark is not None else by_size


def _is_large(versions: Sequence[TableVersion]) -> bool:
    return len(versions) >= AUTO_VERSIONS and _spark_available()
