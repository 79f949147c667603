"""A real Spark cluster for tests: a master and workers, each a process of its own on loopback.

Started from the pyspark package by Spark's own scripts. The workers run a Python that does not have
omnigraph (``bare_python``), in an environment that does not name this project. Each worker listens
on a loopback address of its own, because Spark never starts a second copy of a slow task on the
host of the first.

Must not: outlive the process that started it, or end a process that it did not start. Linux only:
it finds the processes of a worker by ``/proc``.
"""

from __future__ import annotations

import http.client
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import StorageError
from omnigraph.spark.jvm import find_java, spark_home
from omnigraph.testing import spark_daemon
from omnigraph.testing.class_archive import SHORT_LIVED
from omnigraph.testing.s3 import free_ports, has_ended, log_tail

_START_MAX_S = 180.0
_POLL_S = 0.05
_HOST = "127.0.0.1"

# Ends every process group that it was told about, and removes the files, when its standard input
# closes: on ``stop``, and also when the process that started it is killed.
_WATCHDOG = """
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -9 "-$group" 2>/dev/null; done
rm -rf -- "$1"
"""


@contextmanager
def run_spark_cluster(
    workers: int = 2, java_options: str = SHORT_LIVED
) -> Generator[SparkCluster, None, None]:
    """Start a cluster and stop it after the block."""
    cluster = SparkCluster(workers, java_options)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


class SparkCluster:
    """A master and its workers, one core and one executor each."""

    def __init__(self, workers: int, java_options: str) -> None:
        self._java_options = java_options
        self._folder = Path(tempfile.mkdtemp(prefix="omnigraph-cluster-"))
        self._clock: Clock = SystemClock()
        self._port, self._web_port = free_ports(2)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes] | None] = [None] * workers
        self._started = 0
        self.python = bare_python(self._folder / "python")
        """The Python of the workers: ``PYSPARK_PYTHON`` of a program that uses the cluster."""
        self._watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "watchdog", str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def master(self) -> str:
        """What a session calls its master."""
        return f"spark://{_HOST}:{self._port}"

    def conf(self) -> dict[str, str]:
        """Settings for a session on this cluster."""
        return {
            "spark.master": self.master,
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": self._java_options,
            # A lost executor is a fact of these tests, and its blocks are not waited for.
            "spark.network.timeout": "60s",
        }

    def start(self) -> None:
        """Start the master and every worker that is not running, and wait until all are in."""
        if not self._processes:
            self._spawn(
                *("org.apache.spark.deploy.master.Master", _HOST, "master"),
                *("--host", _HOST, "--port", str(self._port), "--webui-port", str(self._web_port)),
            )
            self._wait("the master", lambda: self._state() is not None)
        for index, process in enumerate(self._workers):
            if process is None:
                self._workers[index] = self._start_worker(index)
        self._wait("the workers", lambda: self.alive_workers() == len(self._workers))

    def alive_workers(self) -> int:
        """How many workers the master counts on."""
        state = self._state() or {"aliveworkers": 0}
        return int(state["aliveworkers"])

    def kill_worker(self, index: int) -> None:
        """End a worker as a machine ends that loses power: its executors and their Pythons, too."""
        process = self._workers[index]
        if process is not None:
            self._workers[index] = None
            _kill_session(process.pid)

    def processes(self) -> list[int]:
        """The processes that were started here, without those that these have started."""
        return [process.pid for process in self._processes]

    def logs(self) -> str:
        """The end of every log, for failure messages."""
        found = sorted([*self._folder.glob("*.log"), *self._folder.glob("work-*/*/*/stderr")])
        return "\n".join(f"--- {log.relative_to(self._folder)}\n{log_tail(log)}" for log in found)

    def stop(self) -> None:
        """End all processes and remove all files, by the path that a crash takes too."""
        for process in self._processes:
            _kill_session(process.pid)
        if self._watchdog.stdin is not None:
            with suppress(BrokenPipeError):
                self._watchdog.stdin.close()
        self._watchdog.wait()
        # Only now: a number that is not collected cannot pass to another process, so the watchdog
        # met ours or none.
        for process in self._processes:
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)  # A Python may have died a little later.

    def _start_worker(self, index: int) -> subprocess.Popen[bytes]:
        host = f"127.0.0.{index + 1}"
        return self._spawn(
            *("org.apache.spark.deploy.worker.Worker", host, f"worker-{index}"),
            *("--host", host, "--cores", "1", "--memory", "1g"),
            *("--webui-port", "0", "--work-dir", str(self._folder / f"work-{index}")),
            self.master,
        )

    def _spawn(self, main: str, host: str, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        self._started += 1
        with (self._folder / f"{name}-{self._started}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(spark_home() / "bin" / "spark-class"), main, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=self._environment(host),
                # Its own session: everything that a worker starts stays in it.
                start_new_session=True,
            )
        self._processes.append(process)
        stdin = self._watchdog.stdin
        if stdin is not None:
            stdin.write(f"{process.pid}\n".encode())
            stdin.flush()
        return process

    def _environment(self, host: str) -> dict[str, str]:
        """Nothing of this process's environment: no path of this project, no credentials."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),  # Where java may be.
            **find_java().environment(),
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": self._java_options,
            "SPARK_LAUNCHER_OPTS": SHORT_LIVED,
        }

    def _wait(self, what: str, ready: Any) -> None:
        deadline_s = self._clock.monotonic_s() + _START_MAX_S
        while not ready():
            running = [p for p in (self._processes[0], *self._workers) if p is not None]
            if any(map(has_ended, running)) or self._clock.monotonic_s() > deadline_s:
                raise StorageError(f"{what} of the Spark cluster did not start:\n{self.logs()}")
            self._clock.sleep(_POLL_S)

    def _state(self) -> dict[str, Any] | None:
        """What the master says about itself; None while it does not answer."""
        connection = http.client.HTTPConnection(_HOST, self._web_port, timeout=10)
        try:
            connection.request("GET", "/json/")
            answer = connection.getresponse()
            return json.loads(answer.read()) if answer.status == 200 else None
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()


def _kill_session(leader: int) -> None:
    """End every process of a session that was started here, until none is left.

    By session and not by group: the Python processes of an executor form groups of their own.
    """
    while members := _members(leader):
        for pid in members:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _members(session: int) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name of the program is in brackets and may hold anything.
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session and fields[0] not in "ZX":
                    found.append(int(entry.name))
    return found


# -- bare python -----------------------------------------------------------------------------------
# A Python for Spark's workers that has what omnigraph needs, and not omnigraph.
#
# It stands for a machine of a cluster: the dependencies are installed there, our code is not. In
# development our code is on every path of this interpreter, so a test that wants to see it arrive
# must take it away first.


_HIDDEN = ("omnigraph", "_omnigraph", "__editable__", "pyspark", "py4j")
"""Ours, and Spark's: workers get Spark from the program that started them."""

_SCRIPT = """#!/bin/sh{asked}
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{site}" exec {python} -S "$@"
"""


def bare_python(folder: Path, *, without: Collection[str] = ()) -> Path:
    """Make such a Python in an empty folder and return its program.

    ``without`` hides more of what is installed, by the beginning of the file's name.
    """
    hidden = (*_HIDDEN, *without)
    site = folder / "site"
    site.mkdir(parents=True)
    for installed in (Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))):
        for entry in installed.iterdir():
            # A .pth file is a line of a path: that is how an editable install is found.
            if entry.suffix == ".pth" or entry.name.lower().startswith(hidden):
                continue
            link = site / entry.name
            if not link.exists():
                link.symlink_to(entry)
    program = folder / "python"
    shutil.copy(spark_daemon.__file__, site)
    asked = spark_daemon.ASKED.format(module="spark_daemon")
    program.write_text(
        _SCRIPT.format(asked=asked, site=shlex.quote(str(site)), python=sys.executable)
    )
    program.chmod(0o755)
    return program
