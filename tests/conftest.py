"""Fixtures that every test folder shares: a place to put a graph, Spark, and Hypothesis profiles.

The S3 server is started by the first test that asks for it, one per test process; so is Spark's
JVM, which serves every kind of session.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from omnigraph.testing import class_archive
from omnigraph.testing.proxy import CountingProxy
from omnigraph.testing.s3 import BUCKET, S3Server, run_s3_server
from support.copies import upload
from support.examples import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.testing.cluster import SparkCluster
    from omnigraph.testing.spark import SparkSessions

# A deadline measures the machine, not the code. Everything else that differs between a laptop and
# CI is the choice of examples: CI must give the same answer twice.
settings.register_profile(
    "dev",
    deadline=None,
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# A shell starts background jobs with interrupts ignored, and processes hand that on: tests that
# interrupt a child would wait for it for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests derive of their graphs stays out of the user's folder; tests of it choose their own.
os.environ["OMNIGRAPH_CACHE_DIR"] = "off"

# Processes that tests start have Spark for seconds: with a simpler collector and compiler it takes
# half of the processor time, and with an archive of classes (below) half of that.
os.environ.setdefault("SPARK_LAUNCHER_OPTS", class_archive.SHORT_LIVED)

MEMORY = Path("/dev/shm")
MEMORY_MIN_BYTES = 8 << 30


def _put_files_in_memory() -> None:
    """Temporary files go to a file system in memory where the machine has one and room for it.

    Nothing that is tested needs a disk: tests kill processes, never the machine. On a
    disk, thousands of small graphs wait for its journal. ``TMPDIR`` chooses another place.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    room = os.statvfs(MEMORY)
    # What the file system may hold is a limit, not a promise: the memory has to be there as well.
    free = min(
        room.f_bavail * room.f_frsize, os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    )
    # Some tests make programs and start them.
    if free >= MEMORY_MIN_BYTES and not room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)  # For the processes that tests start, as well.
        tempfile.tempdir = None


_put_files_in_memory()


def _compile_once() -> Path | None:
    """Where nothing may be compiled beside its source, the processes that tests start (hundreds)
    share a folder for it, instead of compiling the package each."""
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") == "":
        return None
    folder = Path(tempfile.mkdtemp(prefix="pycache-"))
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder)
    return folder


# The first process makes it and hands it on to the others, which find nothing to do.
COMPILED = _compile_once()


CLASS_ARCHIVE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "sampled: a fixed sample of many cases, a larger one with EXAMPLES"
    )
    # Kept from run to run; the first test on Spark makes it.
    folder = config.cache.mkdir("spark") if hasattr(config, "cache") else None
    archive = class_archive.archive_in(folder or Path(tempfile.gettempdir()))
    config.stash[CLASS_ARCHIVE] = archive
    java = f"{class_archive.SHORT_LIVED} {class_archive.options(archive)}"
    os.environ.setdefault("SPARK_SUBMIT_OPTS", java)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: looking through it for garbage would take half the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Memory is given back when all is well; at the end, because a handle that a test left open
    may still be busy in its folder, and the next test must not get the same."""
    factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    is_worker = hasattr(session.config, "workerinput")
    if exitstatus == 0 and not is_worker and os.environ.get("TMPDIR") == str(MEMORY):
        shutil.rmtree(factory.getbasetemp(), ignore_errors=True)
    if COMPILED is not None:
        shutil.rmtree(COMPILED, ignore_errors=True)


_prefixes = count(1)
FORMAT_V1 = Path(__file__).parent / "fixtures" / "format-v1"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server, with the bucket ``BUCKET``."""
    with run_s3_server() as server:
        yield server


@pytest.fixture
def s3_proxy(s3_server: S3Server) -> Iterator[CountingProxy]:
    """A fresh proxy in front of the server, no wider than the budgets assume."""
    with CountingProxy(s3_server.endpoint, concurrency_max=8) as proxy:
        yield proxy


@pytest.fixture
def s3_root(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty ``s3://`` place, with the environment that leads Lance and obstore to it."""
    return _s3_place(monkeypatch, s3_server.env())


@pytest.fixture
def s3_proxied_root(
    s3_server: S3Server, s3_proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> str:
    """As ``s3_root``, by way of ``s3_proxy``."""
    return _s3_place(monkeypatch, s3_server.env(s3_proxy.endpoint))


@pytest.fixture
def beside_proxy(
    s3_server: S3Server, s3_proxied_root: str
) -> Callable[[], AbstractContextManager[None]]:
    """A block whose handles go past ``s3_proxy``: for what a test builds and does not count."""

    @contextmanager
    def block() -> Generator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in s3_server.env().items():
                patch.setenv(name, value)
            yield

    return block


@pytest.fixture
def copied_to_s3(
    s3_proxied_root: str, beside_proxy: Callable[[], AbstractContextManager[None]]
) -> Callable[[Path], str]:
    """Copies a graph from the local disk to a bucket behind ``s3_proxy``: how a test comes by a
    large one."""
    places = count(1)

    def copied(folder: Path) -> str:
        place = f"{s3_proxied_root}/copy{next(places)}"
        with beside_proxy():
            upload(folder, place)
        return place

    return copied


@pytest.fixture(params=["local", "s3"])
def store_root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place on each kind of store: the test runs once per kind."""
    if request.param == "local":
        return str(tmp_path / "store")
    return request.getfixturevalue("s3_root")


@pytest.fixture
def graph_v1(tmp_path: Path) -> Path:
    """A copy of the graph of format 1 that is kept for good (``fixtures/make_format_v1.py``)."""
    return Path(shutil.copytree(FORMAT_V1 / "graph", tmp_path / "graph-v1"))


def _s3_place(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> str:
    # No setting of the machine may leak in: a session token or a profile would change the signature.
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # The server is this process's own, so a counter is unique enough, and it reads well in a log.
    return f"s3://{BUCKET}/t{next(_prefixes)}"


# In this order, because each change from one kind of session to another takes time.
SPARK_FIXTURES = (
    "spark_sessions",
    "spark",
    "spark_stopped",
    "spark_connect",
    "spark_cluster",
    "on_cluster",
)


@pytest.hookimpl(tryfirst=True)  # Before xdist looks for groups.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on Spark run first, by kind of session, and in one process: it has the JVM."""

    def place(item: pytest.Item) -> int:
        used = [SPARK_FIXTURES.index(f) for f in SPARK_FIXTURES if f in _fixtures(item)]
        return max(used, default=len(SPARK_FIXTURES))

    for item in items:
        if place(item) < len(SPARK_FIXTURES) or "/tests/spark/" in item.path.as_posix():
            item.add_marker(pytest.mark.xdist_group("spark"))
    items.sort(key=place)


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


@pytest.fixture(scope="session")
def spark_classes(pytestconfig: pytest.Config) -> Path:
    """The archive of Spark's classes: there if this Java can make one."""
    archive = pytestconfig.stash[CLASS_ARCHIVE]
    class_archive.make_archive(archive)
    return archive


@pytest.fixture(scope="session")
def spark_sessions(spark_classes: Path) -> Iterator[SparkSessions]:
    """The sessions of this test process: one at a time."""
    from omnigraph.testing.spark import SparkSessions

    sessions = SparkSessions()
    yield sessions
    sessions.stop()


@pytest.fixture
def spark(spark_sessions: SparkSessions) -> SparkSession:
    """A quiet classic session, ``local[2]``; the same one for every test."""
    return spark_sessions.local()


@pytest.fixture
def spark_stopped(spark_sessions: SparkSessions) -> SparkSessions:
    """No session, but the JVM of the tests: a session that somebody makes now will be in it."""
    spark_sessions.local()
    spark_sessions.stop()
    return spark_sessions


@pytest.fixture
def spark_connect(spark_sessions: SparkSessions) -> SparkSession:
    """A session of Spark Connect; its workers do not have omnigraph."""
    return spark_sessions.connect()


@pytest.fixture(scope="session")
def running_cluster(spark_classes: Path) -> Iterator[SparkCluster]:
    from omnigraph.testing.cluster import run_spark_cluster

    java = f"{class_archive.SHORT_LIVED} {class_archive.options(spark_classes)}"
    with run_spark_cluster(java_options=java) as cluster:
        yield cluster


@pytest.fixture
def spark_cluster(running_cluster: SparkCluster) -> SparkCluster:
    """A master and two workers, all of them running; the workers do not have omnigraph."""
    running_cluster.start()  # A test may have killed one.
    return running_cluster


@pytest.fixture
def on_cluster(spark_sessions: SparkSessions, spark_cluster: SparkCluster) -> SparkSession:
    """A classic session on ``spark_cluster``."""
    return spark_sessions.on(spark_cluster)
