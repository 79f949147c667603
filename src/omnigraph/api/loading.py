"""The way into a load: an engine is chosen by what is given, and carries the load out.

graph.load(…) -> [loading] -> this process (input/publishing.py) | Spark (spark/load.py)
"""

from __future__ import annotations

import os
from typing import Any

from omnigraph.errors import UsageError
from omnigraph.input.engine import Engine, choose_engine
from omnigraph.input.publishing import LoadDone, LoadRequest, load_locally
from omnigraph.input.rejects import RejectFile
from omnigraph.manifest.repository import Repository


def run_load(
    repository: Repository,
    load: LoadRequest,
    *,
    engine: str = "auto",
    spark: Any = None,
    rejects: str | os.PathLike[str] | None = None,
) -> LoadDone:
    """Carry a load out. See ``Graph.load``."""
    if spark is not None and engine == "auto":
        engine = Engine.SPARK
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
