"""Writer processes for race tests: real processes, one start signal, one line of result each.

    python -m omnigraph.testing.racers append URI NAME COUNT TYPE

A racer opens the graph, prints ``ready``, waits for a line on its standard input, then writes. So
all racers start together and no test needs to sleep.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import omnigraph
from omnigraph.errors import OmnigraphError

TIMEOUT_S = 300
SCHEMA = """
node Person { name: String @key }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""


def append(graph: omnigraph.Graph, name: str, i: int, type_name: str) -> None:
    """Commit one new node."""
    graph.load([{"type": type_name, "data": {"name": f"{name}-{i}"}}], actor=name)


def connect(graph: omnigraph.Graph, name: str, i: int, type_name: str) -> None:
    """Commit one edge between people of a fixed set; somebody may be removing them meanwhile."""
    ends = {"from": f"p{i % 10}", "to": f"p{(i + 1) % 10}"}
    graph.load([{"edge": type_name, **ends}], actor=name)


def replace(graph: omnigraph.Graph, name: str, i: int, type_name: str) -> None:
    """Overwrite the people, each time with another one missing."""
    rows = [{"type": type_name, "data": {"name": f"p{n}"}} for n in range(10) if n != i % 10]
    graph.load(rows, mode="overwrite", actor=name)


def merge(graph: omnigraph.Graph, name: str, i: int, type_name: str) -> None:
    """Upsert one person who exists and one who is new."""
    rows = [{"type": type_name, "data": {"name": n}} for n in ("p0", f"{name}-{i}")]
    graph.load(rows, mode="merge", actor=name)


_KINDS: dict[str, Callable[[omnigraph.Graph, str, int, str], None]] = {
    "append": append,
    "connect": connect,
    "merge": merge,
    "replace": replace,
}


def run_racers(racers: Sequence[Sequence[str | int]]) -> list[dict[str, Any]]:
    """Start racers (kind, uri, name, count, type), let them go together, return their results."""
    running = [
        subprocess.Popen(
            [sys.executable, "-m", __name__, *map(str, racer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for racer in racers
    ]
    try:
        for process in running:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("a racer did not start")
        for process in running:
            if process.stdin is not None:
                process.stdin.write("go\n")
                process.stdin.flush()
        return [json.loads(p.communicate(timeout=TIMEOUT_S)[0]) for p in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()


def run_alone(
    racer: Sequence[str | int], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run one racer to its end, however that comes about."""
    return subprocess.run(
        [sys.executable, "-m", __name__, *map(str, racer)],
        input="go\n",
        capture_output=True,
        text=True,
        env=dict(environment),
        timeout=TIMEOUT_S,
        check=False,
    )


def main(arguments: Sequence[str]) -> None:
    """Run one racer."""
    kind, uri, name, count, type_name = arguments
    errors: list[str] = []
    done = 0
    with omnigraph.open(uri) as graph:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        for i in range(int(count)):
            try:
                _KINDS[kind](graph, name, i, type_name)
                done += 1
            except OmnigraphError as e:
                errors.append(str(e.kind))
    sys.stdout.write(json.dumps({"name": name, "done": done, "errors": errors}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
