"""Spark sessions for graphs: the format ``omnigraph``, and a session for who has none.

    from omnigraph.spark import register, session

    register(spark)                    # spark.read.format("omnigraph") works from here on
    with session() as spark: ...       # a quiet one of our own, on whatever Java there is

Must not: import pyspark before somebody asks for Spark.
"""

from __future__ import annotations

from omnigraph.pipeline.user_session import register, session

__all__ = ["register", "session"]
