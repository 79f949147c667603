"""A small graph, every kind of write on it, and a crash: what the recovery scenarios share.

A write *dies* by an interrupt that nobody handles: its intent and its files stay as after a kill, and
the handle goes on. It *fails* by an exception: then it tidies up after itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.clock import SystemClock
from omnigraph.failpoints import FailPoint, armed
from omnigraph.housekeeping.intents import LEASE_S
from omnigraph.testing.clock import ManualClock
from omnigraph.upkeep.recovery import RecoveryReport, recover

SCHEMA = """
node Person { name: String @key  age: I64? @index }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City
"""
GROWN = """
node Human @rename_from("Person") { name: String @key  age: I64? @index  born: I64 @backfill(0) }
node City { name: String @key  zone: String? @backfill("none") }
edge Knows: Human -> Human
edge LivesIn: Human -> City
"""
ACTOR = "alice"


def person(name: str, age: int | None = None) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def city(name: str) -> dict[str, Any]:
    return {"type": "City", "data": {"name": name}}


def lives(name: str, place: str) -> dict[str, Any]:
    return {"edge": "LivesIn", "from": name, "to": place}


def knows(name: str, other: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": name, "to": other}


def build(uri: str) -> None:
    """Main, a branch `work` that was never written to, and a branch `side` with something to merge."""
    with omnigraph.init(uri, SCHEMA) as graph:
        graph.load([person("ann", 1), person("bob", 2), city("oslo"), city("rome")])
        graph.tags.create("start")
        graph.load([knows("ann", "bob"), lives("ann", "oslo"), lives("bob", "rome")])
        graph.branches.create("side")
        graph.load([person("cem", 3), city("bonn"), lives("cem", "bonn")], branch="side")
        graph.mutate('update Person set { age: 20 } where name = "bob"', branch="side")
        graph.load([person("dora", 4), city("graz")])
        graph.tags.create("taken back")
        graph.load([person("eve", 5), city("wien")])
        graph.branches.create("work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of write, over several tables where it can."""

    run: Callable[[omnigraph.Graph, str], object]
    tables: int = 2
    """How many tables it stages."""
    writes_files: bool = True
    """Whether rows go to data files; a deletion or an index has files of other kinds."""


def _merge(graph: omnigraph.Graph, branch: str) -> object:
    return graph.merge("side", into=branch, actor=ACTOR)


KINDS: dict[str, Kind] = {
    "mutation": Kind(
        run=lambda g, b: g.mutate(
            'insert Person { name: "new" } insert City { name: "novo" } '
            'insert LivesIn { from: "new", to: "novo" }',
            branch=b,
            actor=ACTOR,
        ),
        tables=3,
    ),
    "delete": Kind(
        run=lambda g, b: g.mutate('delete Person where name = "ann"', branch=b, actor=ACTOR),
        tables=3,
        writes_files=False,
    ),
    "append": Kind(run=lambda g, b: g.load([person("new"), city("novo")], branch=b, actor=ACTOR)),
    "merge load": Kind(
        run=lambda g, b: g.load(
            [person("ann", 9), city("novo")], mode="merge", branch=b, actor=ACTOR
        )
    ),
    "overwrite": Kind(
        run=lambda g, b: g.load(
            [person("ann", 9), knows("ann", "ann"), lives("ann", "oslo")],
            mode="overwrite",
            branch=b,
            actor=ACTOR,
        ),
        tables=3,
    ),
    "schema apply": Kind(
        run=lambda g, b: g.schema_apply(GROWN, branch=b, actor=ACTOR), writes_files=False
    ),
    "merge": Kind(run=_merge, tables=2),
    "index build": Kind(
        run=lambda g, b: g.build_indexes(branch=b, actor=ACTOR), tables=4, writes_files=False
    ),
    "optimize": Kind(
        run=lambda g, b: g.optimize(branch=b, actor=ACTOR), tables=4, writes_files=False
    ),
    "revert": Kind(
        run=lambda g, b: g.revert(g.snapshot(tag="taken back").commit.id, branch=b, actor=ACTOR),
        writes_files=False,
    ),
    "reset": Kind(
        run=lambda g, b: g.reset("start", branch=b, actor=ACTOR), tables=0, writes_files=False
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All that a reader can tell about one state."""

    schema: str
    rows: dict[str, list[str]]


def picture(graph: omnigraph.Graph, at: str = "main") -> Picture:
    """A state, row by row."""
    view = graph.at(at)
    types = ("Person", "Human", "City", "Knows", "LivesIn")
    return Picture(
        schema=view.schema,
        rows={
            name: sorted(
                str(
                    {
                        k: v
                        for k, v in row.items()
                        if k != "id" or name in ("Person", "Human", "City")
                    }
                )
                for row in view.rows(name)
            )
            for name in types
            if f" {name} " in view.schema or f" {name}:" in view.schema
        },
    )


@cache
def template(folder: Path) -> Path:
    """The graph, made once for each folder of a test process."""
    place = folder / "template"
    build(str(place))
    return place


def copy_of(folder: Path, place: Path) -> str:
    """A graph of one's own."""
    shutil.copytree(template(folder), place, ignore=shutil.ignore_patterns("tables"))
    return str(place)


def die() -> None:
    raise SystemExit


def crash(
    graph: omnigraph.Graph, write: Callable[[], object], point: FailPoint, skip: int = 0
) -> None:
    """Let a write die at a point, whether it is told of it or its housekeeping is."""
    with armed(point, die, skip=skip) as arm:
        if point.startswith("settle."):
            write()
            graph.settle()
        else:
            with pytest.raises(SystemExit):
                write()
    assert arm.fired == 1


def later(uri: str, seconds: float = 2 * LEASE_S) -> omnigraph.Graph:
    """A handle of somebody to whom everything that was written so far is old."""
    return omnigraph.open(uri, clock=ManualClock(SystemClock().now_us() + round(seconds * 1e6)))


def recovered(uri: str) -> RecoveryReport:
    """Recovery, two hours later."""
    with later(uri) as graph:
        return recover(graph._repository)


def intents(graph: omnigraph.Graph) -> list[str]:
    graph.settle()
    return sorted(graph._repository.objects.names("__recovery"))
