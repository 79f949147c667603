"""Spark: bulk loads, tables and queries as DataFrames, the format ``omnigraph``; sessions.

    from omnigraph.spark import register, session

    register(spark)                    # spark.read.format("omnigraph") works from here on
    with session() as spark: ...       # a quiet one of our own, on whatever Java there is

Every file here imports pyspark, when it is used and not before.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.errors import UsageError
from omnigraph.spark.sessions import pipeline_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make ``format("omnigraph")`` known to a session, and send omnigraph to its workers."""
    if spark is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError("no session is given", hint="omnigraph.spark.session() makes one")
    with pipeline_session(spark) as pipeline:
        from omnigraph.spark import datasource

        datasource.register(pipeline.spark)


@contextmanager
def session(
    *, app: str = "omnigraph", master: str | None = None, conf: Mapping[str, str] | None = None
) -> Generator[SparkSession]:
    """The active session, else one that is made for the block and stopped after it.

    ``master`` is ``OMNIGRAPH_SPARK_MASTER``, else all cores of this machine; ``SPARK_REMOTE`` leads
    to a Spark Connect server instead. The driver's memory is ``OMNIGRAPH_SPARK_MEMORY`` (2g).
    """
    with pipeline_session(app=app, master=master, conf=conf) as pipeline:
        register(pipeline.spark)
        yield pipeline.spark
