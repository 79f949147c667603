"""Which engine finds what a cleanup keeps: this process, or Spark where very much is kept.

graph.upkeep.cleanup(…) -> [cleaning] -> upkeep/sweep.py | spark/marking.py
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from omnigraph.errors import UsageError
from omnigraph.input.engine import Engine
from omnigraph.storage.location import Location
from omnigraph.storage.names import TableVersion

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
    if len(versions) < AUTO_VERSIONS:
        return False
    from omnigraph.spark.sessions import spark_available

    return spark_available()
