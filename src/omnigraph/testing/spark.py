"""Spark sessions for tests: local, on a cluster, through Connect; one at a time, in one JVM.

Starting a JVM takes most of the time that a Spark test takes. PySpark keeps its JVM when a session
stops, so all sessions of a test process share one, and changing from one kind to another costs a
second. They are sessions as a user makes them, not the pipeline's own.

The workers of a local session run this Python. Those of the cluster and of Connect run one that
does not have omnigraph, so what runs there has been sent there.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.spark import jvm
from omnigraph.spark.jvm import scratch_folder
from omnigraph.testing.class_archive import SHORT_LIVED
from omnigraph.testing.cluster import SparkCluster, bare_python
from omnigraph.testing.spark_daemon import forking_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONF = {
    "spark.driver.memory": "1g",
    # The client of a Connect session cannot say whether the server has a UI, so the JVM is told.
    "spark.driver.extraJavaOptions": f"{SHORT_LIVED} "
    "-Dspark.ui.enabled=false -Dspark.ui.showConsoleProgress=false",
    "spark.app.name": "tests",
    "spark.sql.shuffle.partitions": "4",
    # On a busy machine a worker may need longer than 15 seconds to authenticate.
    "spark.python.authenticate.socketTimeout": "120s",
    "spark.sql.warehouse.dir": (scratch_folder() / "warehouse").as_uri(),
}


class SparkSessions:
    """The session of a test process. Asking for another kind stops the one that runs."""

    def __init__(self) -> None:
        self._kind: object = None
        self._session: SparkSession | None = None
        self._bare = bare_python(scratch_folder() / "bare")
        self._forking = forking_python(scratch_folder() / "forking")

    def local(self, python: Path | None = None) -> SparkSession:
        """A classic session with two cores of this machine, and another Python if one is named."""
        conf = {**_CONF, "spark.master": "local[2]"}
        return self._of(("local", python), str(python or self._forking), conf)

    def on(self, cluster: SparkCluster, conf: Mapping[str, str] = {}) -> SparkSession:
        """A classic session on a cluster, perhaps with more settings."""
        chosen = _CONF | cluster.conf() | dict(conf)
        return self._of((cluster, *sorted(conf)), str(cluster.python), chosen)

    def connect(self) -> SparkSession:
        """A session of Spark Connect, with a server of its own on this machine."""
        conf = {"spark.remote": "local[2]", "spark.sql.shuffle.partitions": "4"}
        with jvm.environment(SPARK_TESTING="1"):  # Any free port: other tests may run beside us.
            return self._of("connect", str(self._bare), conf)

    @contextmanager
    def lent(self) -> Generator[dict[str, str]]:
        """No session, but the JVM for one that another program makes in this block.

        Gives the variables that lead the program there, as ``spark-submit`` leads one. A program
        that is killed leaves its session behind, which is stopped after the block.
        """
        from pyspark.core.context import SparkContext

        self.local()
        self.stop()
        context: Any = SparkContext
        gateway = context._gateway
        where = gateway.gateway_parameters
        yield {
            "PYSPARK_GATEWAY_PORT": str(where.port),
            "PYSPARK_GATEWAY_SECRET": where.auth_token,
        }
        left = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession()
        if left.isDefined():
            left.get().stop()

    def stop(self) -> None:
        """Stop the session that runs, if one does."""
        if self._session is not None:
            session, self._session, self._kind = self._session, None, None
            session.stop()

    def _of(self, kind: object, python: str, conf: dict[str, str]) -> SparkSession:
        if self._kind == kind and self._session is not None and _is_alive(self._session):
            return self._session
        self.stop()
        self._session = self._start(python, conf)
        self._kind = kind
        return self._session

    def _start(self, python: str, conf: dict[str, str]) -> SparkSession:
        from pyspark.sql import SparkSession

        # A Connect server takes the workers' Python from the environment of its JVM, and there is
        # one JVM for all: it gets the bare one. A path of the project must not lead around that.
        bare = jvm.environment(PYSPARK_PYTHON=str(self._bare), PYTHONPATH=None)
        with bare, jvm.running(_CONF, loopback=True):
            os.environ["PYSPARK_PYTHON"] = python
            builder = SparkSession.builder
            for key, value in conf.items():
                builder = builder.config(key, value)
            return builder.getOrCreate()


def _is_alive(session: SparkSession) -> bool:
    try:
        session.range(1).schema  # noqa: B018 - a Connect session asks its server
        return jvm.log_of_ended(wait_s=0) is None and not getattr(session, "is_stopped", False)
    except Exception:
        return False
