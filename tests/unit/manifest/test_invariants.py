"""A version of a manifest that cannot be right is never committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import InternalError
from omnigraph.manifest.invariants import INVARIANTS, check_invariants
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.write.publish import restate

SCHEMA = "node A { k: String @key }\nnode B { k: String @key }"


def with_pin(state: Snapshot, key: str, **facts: object) -> Snapshot:
    pin = replace(state.pins[key], **facts)  # type: ignore[arg-type]
    return replace(state, pins={**state.pins, key: pin})


def with_head(state: Snapshot, **facts: object) -> Snapshot:
    made = replace(state.head, **facts)  # type: ignore[arg-type]
    return replace(state, commits=(made, *state.commits[1:]))


FAULTS: dict[str, Callable[[Snapshot], Snapshot]] = {
    "follows": lambda s: replace(s, version=s.version + 1),
    "current format": lambda s: replace(s, format=1),
    "one life of a branch": lambda s: replace(s, path="__branches/other"),
    "of one graph": lambda s: replace(s, graph_id="another"),
    "cleanups and resets": lambda s: s.saying(swept=s.swept - 1),
    "younger than its parent": lambda s: with_head(s, created_at_us=0),
    "stands on it": lambda s: with_head(s, parent_id="another"),
    "is younger than": lambda s: with_head(s, generation=1),
    "states on the way": lambda s: replace(s, steps=({},)),
    "under its own key": lambda s: with_pin(s, "node:A", table_key="node:B"),
    "pinned under": lambda s: with_pin(s, "node:A", row_count=-1),
    "a type has one table": lambda s: with_pin(
        s, "node:A", type_id=s.pins["node:B"].type_id, incarnation=s.pins["node:B"].incarnation
    ),
    "has a type in the schema": lambda s: with_pin(s, "node:A", type_id=99),
}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        for kind in ("A", "B"):
            made.load([{"type": kind, "data": {"k": "x"}}])
        yield made


def states(graph: omnigraph.Graph) -> tuple[Snapshot, Snapshot]:
    """The newest state, and the one before it."""
    newest = graph._repository.head("main").snapshot
    before = graph.at(f"commit:{newest.head.parent_id}")._snapshot
    return before, newest


def test_a_version_that_was_published_holds_them(graph: omnigraph.Graph) -> None:
    before, newest = states(graph)
    check_invariants(before, newest, graph.catalog)


@pytest.mark.parametrize("sentence", FAULTS)
def test_each_is_told_by_its_sentence(graph: omnigraph.Graph, sentence: str) -> None:
    before, newest = states(graph)
    with pytest.raises(InternalError, match=sentence):
        check_invariants(before, FAULTS[sentence](newest), graph.catalog)


def test_every_predicate_has_a_fault(graph: omnigraph.Graph) -> None:
    before, newest = states(graph)
    for sentence, holds in INVARIANTS:
        assert holds(before, newest)
        assert any(not holds(before, fault(newest)) for fault in FAULTS.values()), sentence


def test_nothing_is_published_that_breaks_one(graph: omnigraph.Graph) -> None:
    branch = graph._repository.branch("main")
    before = branch.head.snapshot
    with pytest.raises(InternalError, match="was not published"):
        restate(graph._repository, branch, FAULTS["has a type in the schema"])
    assert graph._repository.head("main").snapshot == before
