"""Writer processes for race and crash tests: real processes, one start signal, one result each.

Racers are forked (``support.children``), so a dozen of them start as fast as one. A racer opens the
graph, says that it is ready, waits for the signal, then writes: all start together and nobody sleeps.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing.connection import Connection

from omnigraph.api import opening
from omnigraph.api.graph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.input import publishing as publishing  # With the next: imported before the fork,
from omnigraph.query import engine as engine  # so that a racer races, and does not import.
from omnigraph.write import outcome
from support import branchers, evolvers, mergers, mutators
from support.children import TIMEOUT_S, enter, finished, fork_server
from support.releases import release_of_format

SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""
CROWD = 8
"""Threads of a process that writes with several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Racer:
    """What one process does: ``count`` writes of one kind; ``create`` makes the graph itself."""

    kind: str
    uri: str
    name: str
    count: int
    type_name: str
    format: int | None = None
    """It is a release that knows formats up to this one; None: this release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """How it went."""

    name: str
    done: int
    errors: tuple[str, ...]
    """Kinds of the errors that refused writes."""
    notes: tuple[str, ...] = ()
    """What the steps said, those that say anything."""


def append(graph: Graph, name: str, i: int, type_name: str) -> None:
    """Commit one new node."""
    graph.load([{"type": type_name, "data": {"name": f"{name}-{i}"}}], actor=name)


def connect(graph: Graph, name: str, i: int, type_name: str) -> None:
    """Commit one edge between people of a fixed set; somebody may be removing them meanwhile."""
    ends = {"from": f"p{i % 10}", "to": f"p{(i + 1) % 10}"}
    graph.load([{"edge": type_name, **ends}], actor=name)


def crowd(graph: Graph, name: str, i: int, type_name: str) -> None:
    """Commit a new node in each of several threads, all at once."""

    def add(thread: int) -> None:
        append(graph, f"{name}-{thread}", i, type_name)

    with ThreadPoolExecutor(CROWD) as pool:
        list(pool.map(add, range(CROWD)))


def replace(graph: Graph, name: str, i: int, type_name: str) -> None:
    """Overwrite the people, each time with another one missing."""
    rows = [{"type": type_name, "data": {"name": f"p{n}"}} for n in range(10) if n != i % 10]
    graph.load(rows, mode="overwrite", actor=name)


def merge(graph: Graph, name: str, i: int, type_name: str) -> None:
    """Upsert one person who exists and one who is new."""
    rows = [{"type": type_name, "data": {"name": n}} for n in ("p0", f"{name}-{i}")]
    graph.load(rows, mode="merge", actor=name)


_KINDS: dict[str, Callable[[Graph, str, int, str], str | None]] = {
    "append": append,
    "churn": branchers.churn,
    "connect": connect,
    "crowd": crowd,
    "merge": merge,
    "replace": replace,
    "claim": mutators.claim,
    "deliver": mergers.deliver,
    "drop": mutators.drop,
    "extend": evolvers.extend,
    "grow": evolvers.grow,
    "increment": mutators.increment,
    "insist": evolvers.insist,
    "join": mutators.join,
    "relate": mutators.relate,
    "retire": mergers.retire,
}


def race(racer: Racer, ready: Callable[[], None]) -> RaceResult:
    """Open the graph, wait for the start, write."""
    with nullcontext() if racer.format is None else release_of_format(racer.format):
        return _race(racer, ready)


def _race(racer: Racer, ready: Callable[[], None]) -> RaceResult:
    errors: list[str] = []
    notes: list[str | None] = []
    if racer.kind == "create":
        ready()
        try:
            opening.init(racer.uri, SCHEMA, actor=racer.name).close()
        except OmnigraphError as e:
            errors.append(str(e.kind))
        return RaceResult(name=racer.name, done=1 - len(errors), errors=tuple(errors))
    with opening.open(racer.uri) as graph:
        ready()
        for i in range(racer.count):
            try:
                notes.append(_KINDS[racer.kind](graph, racer.name, i, racer.type_name))
            except OmnigraphError as e:
                errors.append(str(e.kind))
    return RaceResult(
        name=racer.name,
        done=racer.count - len(errors),
        errors=tuple(errors),
        notes=tuple(note for note in notes if note is not None),
    )


def run_racers(racers: Sequence[Racer]) -> list[RaceResult]:
    """Let all racers go together and return their results in order."""
    context = fork_server()
    pipes = [context.Pipe() for _ in racers]
    processes = [
        context.Process(target=_child, args=(racer, theirs, dict(os.environ)), daemon=True)
        for racer, (_, theirs) in zip(racers, pipes, strict=True)
    ]
    try:
        for process in processes:
            process.start()
        for mine, theirs in pipes:
            theirs.close()
            _receive(mine)
        for mine, _ in pipes:
            mine.send("go")
        return [_receive(mine) for mine, _ in pipes]
    finally:
        for process in processes:
            if process.pid is not None:
                process.join(timeout=10)
                process.kill()
                process.join()


def _receive(pipe: Connection) -> RaceResult:
    if not pipe.poll(TIMEOUT_S):
        raise TimeoutError("a racer gave no sign")
    return pipe.recv()


def _child(racer: Racer, pipe: Connection, environment: Mapping[str, str]) -> None:
    enter(environment)

    def ready() -> None:
        pipe.send("ready")
        pipe.recv()

    pipe.send(race(racer, ready))


def run_alone(racer: Racer, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run one racer in a process of its own to its end, however that comes about."""
    arguments = (racer.kind, racer.uri, racer.name, str(racer.count), racer.type_name)
    return finished(_ALONE, *arguments, environment=environment)


_ALONE = "import sys; from support.racers import main; main(sys.argv[1:])"


def main(arguments: Sequence[str]) -> None:
    """Run one racer, without waiting for others."""
    outcome.TOLD_ROWS_MIN = 1  # On a remote store mirrors follow, as after large writes.
    kind, uri, name, count, type_name = arguments
    racer = Racer(kind=kind, uri=uri, name=name, count=int(count), type_name=type_name)
    result = race(racer, ready=lambda: None)
    sys.stdout.write(f"{result.done} done, errors: {result.errors}\n")
