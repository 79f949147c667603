"""On a disk the next version of the manifest is written while tables are staged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import ManifestStore
from omnigraph.storage import compact, row_changes
from omnigraph.write.stage import Stager

SCHEMA = "node P { name: String @key  n: I32? }\nedge E: P -> P { w: I32? }"


def people(*names: str) -> list[dict[str, Any]]:
    return [{"type": "P", "data": {"name": name, "n": 1}} for name in names]


def names(graph: omnigraph.Graph) -> list[str]:
    found = graph.query("match { $p: P } return { $p.name as name } order { name }")
    return [row["name"] for row in found.to_dicts()]


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        made.load([*people("a", "b", "c"), {"edge": "E", "from": "a", "to": "b"}])
        yield made


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Snapshot]:
    """What versions of the manifest were written, whether or not they were committed."""
    snapshots: list[Snapshot] = []
    stage = ManifestStore.stage

    def noting(store: ManifestStore, head: Any, snapshot: Snapshot) -> Any:
        snapshots.append(snapshot)
        return stage(store, head, snapshot)

    monkeypatch.setattr(ManifestStore, "stage", noting)
    return snapshots


WRITES: dict[str, Callable[[omnigraph.Graph], object]] = {
    "append": lambda g: g.load(people("x")),
    "two tables": lambda g: g.load([*people("x"), {"edge": "E", "from": "x", "to": "a"}]),
    "update": lambda g: g.mutate('update P set { n: 7 } where name = "b"'),
    "update and insert": lambda g: g.mutate(
        'update P set { n: 7 } where name = "b"\ninsert P { name: "x" }'
    ),
    "merge load": lambda g: g.load(people("b", "x"), mode="merge"),
    "delete": lambda g: g.mutate('delete P where name = "c"'),
    "delete in two tables": lambda g: g.mutate('delete P where name = "a"'),
}


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("tail", [False, True], ids=["", "tail"])
@pytest.mark.parametrize("kind", WRITES)
def test_what_will_be_made_is_foreseen(
    graph: omnigraph.Graph,
    written: list[Snapshot],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    tail: bool,
    large: bool,
) -> None:
    if large:
        monkeypatch.setattr(row_changes, "LARGE_ROWS", 1)
    if tail:
        monkeypatch.setattr(compact, "TAIL_MAX", 2)
        for name in ("d", "e", "f"):
            graph.load(people(name))
    written.clear()
    WRITES[kind](graph)
    assert len(written) == 1, "it was written once, ahead"
    shown = graph._repository.branch("main").head.snapshot
    assert written[0] == shown
    assert all(pin.name.manifest_size for pin in shown.pins.values()), "this handle knows sizes"


@pytest.mark.parametrize("kind", WRITES)
def test_a_wrong_guess_costs_a_file_and_nothing_else(
    graph: omnigraph.Graph,
    written: list[Snapshot],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    foreseen = Stager.foreseen

    def wrong(*arguments: Any) -> Any:
        pins = foreseen(*arguments)
        return {
            key: replace(pin, name=replace(pin.name, version=pin.name.version + 5))
            for key, pin in pins.items()
        }

    monkeypatch.setattr(Stager, "foreseen", wrong)
    WRITES[kind](graph)
    assert len(written) == 2
    with omnigraph.open(graph.uri) as other:
        assert other._repository.branch("main").head.snapshot == written[1] != written[0]
        assert names(other) == names(graph)
        assert other.upkeep.check().ok


def test_a_reader_does_without_sizes(graph: omnigraph.Graph) -> None:
    for name, write in WRITES.items():
        if name in ("append", "update", "delete"):
            write(graph)
    with omnigraph.open(graph.uri) as other:
        pins = other._repository.branch("main").head.snapshot.pins
        assert pins["node:P"].name.manifest_size is None
        assert names(other) == ["a", "b", "x"]
        # Which version it is has nothing to do with whether its size is known: no conflict.
        edges = [{"edge": "E", "from": "b", "to": "x"}]
        other.load(people("q"))
        graph.load(edges, mode="overwrite")
        other.load(edges, mode="overwrite")
    assert names(graph) == ["a", "b", "q", "x"]
    assert graph.upkeep.check().ok
