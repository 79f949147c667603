"""The Spark session that the pipeline runs on: the caller's, else the active one, else our own.

    pipeline_session(spark)  ─▶  Pipeline(spark, owned)  ─▶  close() stops only what was made here

A session that another program made is used as it is: no setting of it is changed, and it is not
stopped. Our own is quiet (no UI, no progress lines, no log on the terminal) and shared: a
handle that asks for one while it runs gets the same, and the last one to close it stops it.

Everything above this module works with classic and Connect sessions alike, so it must not use
``sparkContext``, the JVM or RDDs.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from omnigraph.errors import StorageError, UsageError
from omnigraph.spark import jvm
from omnigraph.spark.errors import translated
from omnigraph.spark.jvm import java_available, scratch_folder
from omnigraph.spark.package import ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MEMORY = "2g"
_SHUFFLE_PARTITIONS_MIN = 16
_LOCAL_MASTER = "local[*,2]"
"""Every core, and a task that fails is tried once more: a store may refuse a request once."""

_lock = threading.RLock()
_own: _Own | None = None


class _Own:
    """The one session that was made here, and how many pipelines use it."""

    def __init__(self, spark: SparkSession, before: _Before) -> None:
        self.spark = spark
        self.before = before
        self.users = 0


class Pipeline:
    """A session to work with. A context manager: leaving it stops a session that is our own."""

    def __init__(self, spark: SparkSession, *, owned: bool) -> None:
        self.spark = spark
        self.owned = owned
        self._closed = False

    def close(self) -> None:
        """Stop the session if it is our own and no other handle uses it. Can be called again."""
        global _own
        if self._closed:
            return
        self._closed = True
        if not self.owned:
            return
        with _lock:
            if _own is None or _own.spark is not self.spark:
                return
            _own.users -= 1
            if _own.users == 0:
                own, _own = _own, None
                _stop(own)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def pipeline_session(
    spark: SparkSession | None = None,
    *,
    app: str = "omnigraph",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Pipeline:
    """The session to use, with omnigraph's code on its way to the workers.

    ``app``, ``master`` and ``conf`` matter only when a session has to be made. The master is
    ``OMNIGRAPH_SPARK_MASTER``, else all cores of this machine; ``SPARK_REMOTE`` leads to a Spark
    Connect server instead. The driver's memory is ``OMNIGRAPH_SPARK_MEMORY`` (2g).
    """
    global _own
    _require_pyspark()
    with _lock, translated("starting a session"):
        if spark is None:
            running = _active()
            if _own is not None and (running is None or running is _own.spark):
                _own.users += 1
                return Pipeline(_own.spark, owned=True)
            spark = running
        if spark is not None:
            ship(spark)
            return Pipeline(spark, owned=False)
        own = _make(app, master, conf or {})
        try:
            # Workers on this machine run this Python, so they have what this process has.
            ship(own.spark, check=not _is_local(_master(master)))
        except BaseException:
            _stop(own)
            raise
        own.users = 1
        _own = own
        return Pipeline(own.spark, owned=True)


def spark_available() -> bool:
    """Whether ``pipeline_session`` would find or could make a session. Starts nothing."""
    if find_spec("pyspark") is None:
        return False
    with _lock:
        return _active() is not None or "SPARK_REMOTE" in os.environ or java_available()


def _require_pyspark() -> None:
    if find_spec("pyspark") is None:
        raise UsageError("Spark is not installed", hint='pip install "omnigraph[spark]"')


def _active() -> SparkSession | None:
    """The session that this program runs already, in whichever thread it was made."""
    if "pyspark.sql.session" not in sys.modules:
        return None
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    jvm.forget_if_dead()
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _master(master: str | None) -> str:
    return master or os.environ.get("OMNIGRAPH_SPARK_MASTER") or _LOCAL_MASTER


def _is_local(master: str) -> bool:
    return "SPARK_REMOTE" not in os.environ and master.startswith("local")


def _make(app: str, master: str | None, conf: Mapping[str, str]) -> _Own:
    from pyspark.sql import SparkSession

    before = _Before()
    if "SPARK_REMOTE" in os.environ:
        # A server refuses settings that were decided when it started.
        builder = _configured(SparkSession.builder, {**_RUNTIME_CONF, **conf})
        return _Own(builder.getOrCreate(), before)
    chosen = _own_conf(app, _master(master)) | dict(conf)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if submitted and master is None:
        del chosen["spark.master"]  # The command that submitted this program has named one.
    with jvm.running(chosen, loopback=_is_local(chosen.get("spark.master", ""))):
        spark = _configured(SparkSession.builder, chosen).getOrCreate()
    before.forget_paths()
    return _Own(spark, before)


def _configured(builder: SparkSession.Builder, conf: Mapping[str, str]) -> SparkSession.Builder:
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder


_RUNTIME_CONF = {
    # Without it a reader cannot offer to take filters: the query would be refused.
    "spark.sql.python.filterPushdown.enabled": "true",
    # Large enough that the cost per batch does not count; a byte limit guards wide rows.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # A worker that crashes says where.
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
}
"""Settings of our own sessions that can be given to a running server as well."""


def _own_conf(app: str, master: str) -> dict[str, str]:
    cores = os.cpu_count() or 1
    return {
        **_RUNTIME_CONF,
        "spark.app.name": app,
        "spark.master": master,
        "spark.api.mode": "classic",
        "spark.driver.memory": os.environ.get("OMNIGRAPH_SPARK_MEMORY") or _MEMORY,
        # Adaptive execution joins small ones; more of them means less memory per task.
        "spark.sql.shuffle.partitions": str(max(_SHUFFLE_PARTITIONS_MIN, 4 * cores)),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Otherwise folders of these names appear where the program was started.
        "spark.sql.warehouse.dir": (scratch_folder() / "warehouse").as_uri(),
        "spark.python.worker.faulthandler.enabled": "true",
        # Over TCP a task waits for a delayed acknowledgement: 40 ms each, more than many tasks do.
        "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
    }


def _stop(own: _Own) -> None:
    # It stays: Py4J also logs so when the last objects of the session are collected afterwards.
    logging.getLogger().addFilter(_is_worth_logging)
    try:
        with translated("stopping a session"):
            own.spark.stop()
    except StorageError:
        pass  # Its JVM or its server is gone: it is as stopped as it can be.
    finally:
        own.before.restore()


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Not that a JVM that ends closes its connection: Py4J logs that with a traceback."""
    return record.msg != "Exception while sending command."


class _Before:
    """What PySpark changes in this process when it starts a session, to be put back."""

    def __init__(self) -> None:
        self._path = set(sys.path)
        self._handler: Any = signal.getsignal(signal.SIGINT)

    def forget_paths(self) -> None:
        """Take the session's folder of files off the path: modules of this process are not there,
        and after the session it is gone."""
        sys.path[:] = [p for p in sys.path if p in self._path or "userFiles-" not in p]

    def restore(self) -> None:
        """Restore the handler of ctrl-C, which during the session also cancels the jobs."""
        self.forget_paths()
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handler)
