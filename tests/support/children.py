"""Child processes of tests, forked from a server that has imported omnigraph but never used it.

Lance must not be forked once it is in use; a process that only imported it is as good as a new
interpreter, and is there in milliseconds instead of a second. What is about the start of a program
itself (its imports, its options, its environment) starts a real one.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import omnigraph
from omnigraph.failpoints import arm_from_environment

COMMAND_LINE = "from omnigraph.cli.main import main; main()"
TIMEOUT_S = 300

# With what a racer or a command uses: imported once, before the fork.
_IMPORTED = ("support.children", "support.racers", "omnigraph.cli.main", "omnigraph.upkeep")
_IMPORTED_BY = os.getpid()
_TESTS = Path(__file__).parents[1]
_SOURCE = Path(omnigraph.__file__).parents[1]


def fork_server() -> ForkServerContext:
    """The server of this test process, running."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_IMPORTED])
    before = os.environ.get("PYTHONPATH")
    # The server does not know the path of this process, and does not say what it failed to import.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_TESTS), str(_SOURCE), before or ""])
    try:
        ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    return context


def enter(environment: Mapping[str, str]) -> None:
    """In the child: the environment of the test instead of that of the server's first use."""
    assert os.getpid() != _IMPORTED_BY, "the server could not import what its children need"
    os.environ.clear()
    os.environ.update(environment)
    arm_from_environment(environment)


@contextmanager
def ended(child: subprocess.Popen[bytes]) -> Generator[subprocess.Popen[bytes]]:
    """A process that is not waited for if a test fails before it has ended."""
    with child:
        try:
            yield child
        finally:
            child.kill()


@contextmanager
def started(
    code: str, *arguments: str, environment: Mapping[str, str]
) -> Generator[tuple[ForkServerProcess, Path]]:
    """A program that runs beside the block and does not outlive it, and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        process = fork_server().Process(
            target=_run, args=(code, arguments, dict(environment), str(said)), daemon=True
        )
        process.start()
        try:
            yield process, said
        finally:
            process.kill()
            process.join()


def finished(
    code: str, *arguments: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, however that comes about."""
    with started(code, *arguments, environment=environment) as (process, said):
        process.join(TIMEOUT_S)
        if process.exitcode is None:
            raise TimeoutError(f"a child did not end in {TIMEOUT_S} s: {said.read_text()}")
        return subprocess.CompletedProcess([code, *arguments], process.exitcode, said.read_text())


def _run(code: str, arguments: tuple[str, ...], environment: dict[str, str], said: str) -> None:
    with open(said, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    enter(environment)
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<child>", "exec"), {"__name__": "__main__"})
