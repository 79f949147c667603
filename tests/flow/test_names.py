"""Names that come back: one name is one living branch, through any deletions, renames, cleanups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph.branch import control
from omnigraph.branch.control import create_branch
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, FailPointError, armed
from omnigraph.manifest.refs import branch_names, find_branch, newest_life
from omnigraph.upkeep.cleanup import cleanup
from omnigraph.upkeep.retention import Policy
from support.examples import examples

SCHEMA = "node Person { name: String @key }"
STEPS = 5
SAMPLE = examples(20)


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        put(made, "main", "m")
        yield made


def put(graph: omnigraph.Graph, branch: str, name: str) -> None:
    graph.load([{"type": "Person", "data": {"name": name}}], mode="merge", branch=branch)
    graph.settle()


def people(graph: omnigraph.Graph, branch: str) -> set[str]:
    return {row["name"] for row in graph.snapshot(branch).rows("Person")}


def clean(graph: omnigraph.Graph) -> None:
    with omnigraph.open(graph.uri) as other:
        assert cleanup(other._repository, Policy(keep=1), confirm=True).errors == ()


def refs(graph: omnigraph.Graph) -> set[str]:
    return {n.removeprefix("_refs/branches/") for n in graph._repository.objects.names("_refs")}


def refused(command: Callable[[], object]) -> ErrorKind:
    with pytest.raises(omnigraph.OmnigraphError) as error:
        command()
    return error.value.kind


def again(graph: omnigraph.Graph, name: str, row: str) -> None:
    graph.branches.create(name)
    put(graph, name, row)


def test_a_branch_that_lives_keeps_its_name_after_a_cleanup(graph: omnigraph.Graph) -> None:
    again(graph, "x", "first")
    graph.branches.delete("x")
    again(graph, "x", "second")
    clean(graph)
    for handle in (graph, omnigraph.open(graph.uri)):
        assert refused(lambda h=handle: h.branches.create("x")) is ErrorKind.BRANCH_EXISTS
        assert people(handle, "x") == {"m", "second"}
    clean(graph)
    with omnigraph.open(graph.uri) as fresh:
        assert people(fresh, "x") == {"m", "second"}
        assert fresh.branches.list() == ["main", "x"]


def test_a_branch_that_is_made_after_a_cleanup_is_found(graph: omnigraph.Graph) -> None:
    for row in ("first", "second"):
        again(graph, "x", row)
        graph.branches.delete("x")
    clean(graph)
    again(graph, "x", "third")
    for _ in range(2):
        with omnigraph.open(graph.uri) as fresh:
            assert fresh.branches.list() == ["main", "x"]
            assert people(fresh, "x") == {"m", "third"}
        clean(graph)


def test_what_is_left_of_a_name_does_not_grow(graph: omnigraph.Graph) -> None:
    for row in range(6):
        again(graph, "x", f"{row}")
        graph.branches.delete("x")
    clean(graph)
    # The first number stays taken, the last one says how far the name got.
    assert refs(graph) == {"x/1.json", "x/6.dead"}
    again(graph, "x", "last")
    clean(graph)
    assert refs(graph) == {"x/1.json", "x/7.json"}


def test_a_name_that_a_branch_got_back_ends_with_it(graph: omnigraph.Graph) -> None:
    again(graph, "x", "own")
    held = omnigraph.open(graph.uri)
    assert people(held, "x") == {"m", "own"}
    graph.branches.rename("x", "y")
    graph.branches.rename("y", "x")
    clean(graph)
    with held:  # It knows the branch by the first life of its name.
        held.branches.delete("x")
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.branches.list() == ["main"]


def test_an_old_handle_deletes_and_renames_what_has_the_name_now(graph: omnigraph.Graph) -> None:
    again(graph, "x", "first")
    with omnigraph.open(graph.uri) as old:
        assert people(old, "x") == {"m", "first"}
        graph.branches.delete("x")
        again(graph, "x", "second")
        clean(graph)
        old.branches.rename("x", "y")
        assert people(old, "y") == {"m", "second"}
        graph.branches.delete("y")
        again(graph, "y", "third")
        old.branches.delete("y")
        assert refused(lambda: old.branches.delete("y")) is ErrorKind.BRANCH_NOT_FOUND
    assert graph.branches.list() == ["main"]


@pytest.mark.parametrize("lives", [0, 1, 2])
@pytest.mark.parametrize("living", [False, True])
def test_who_was_slow_to_take_a_name_does_not_take_one_that_was_given(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, lives: int, living: bool
) -> None:
    """Numbers of lives that a cleanup takes away are not free for who counted before it."""
    for row in range(lives):
        again(graph, "x", f"{row}")
        graph.branches.delete("x")

    def meanwhile() -> None:
        with omnigraph.open(graph.uri) as other:
            for row in ("a", "b"):
                again(other, "x", row)
                other.branches.delete("x")
            again(other, "x", "taken")
            if not living:
                other.branches.delete("x")
            clean(other)

    with omnigraph.open(graph.uri) as slow:
        slow.snapshot()
        with monkeypatch.context() as patched:
            first_then(patched, "create_branch_ref", meanwhile)
            if living:
                assert refused(lambda: slow.branches.create("x")) is ErrorKind.BRANCH_EXISTS
            else:
                slow.branches.create("x")
                put(slow, "x", "late")
    expected = {"m", "taken"} if living else {"m", "late"}
    for _ in range(2):
        with omnigraph.open(graph.uri) as fresh:
            assert people(fresh, "x") == expected
            assert fresh.upkeep.check(full=True).ok
        clean(graph)


def test_a_creation_that_is_refused_has_ended(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a cleanup told the branch meanwhile: nothing is left that seems to live."""
    old = graph.snapshot()._snapshot
    for row in range(4):
        put(graph, "main", f"{row}")
    clean(graph)
    put(graph, "main", "more")
    with omnigraph.open(graph.uri) as other, monkeypatch.context() as patched:
        # It needs what is gone already: that cleanup tells the branch, and leaves its tables alone.
        tell = lambda: cleanup(graph._repository, Policy(keep=1), confirm=True)  # noqa: E731
        first_then(patched, "check_still_kept", tell)
        kind = refused(lambda: create_branch(other._repository, "x", old))
    assert kind is ErrorKind.HISTORY_RECLAIMED
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.branches.list() == ["main"]
        (path,) = fresh._repository.objects.folders("_branches")
        assert fresh._repository.manifest(path).head().snapshot.deleted
        assert fresh.upkeep.check().ok


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_name_that_two_want_at_once_is_one_branch(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """One gives it to its branch while the other makes a new one."""
    again(graph, "x", "own")
    with omnigraph.open(graph.uri) as other:
        other.snapshot()

        def meanwhile() -> None:
            again(other, "y", "made")

        if point == "before":  # The ref is there, and the manifest has the old name.
            with armed(FailPoint.BRANCH_BEFORE_RENAME, meanwhile):
                kind = refused(lambda: graph.branches.rename("x", "y"))
        else:  # The other one has looked at the manifest already.
            with monkeypatch.context() as patched:
                first_then(patched, "end_branch_ref", lambda: graph.branches.rename("x", "y"))
                with armed(FailPoint.BRANCH_BEFORE_RENAME, "raise"), pytest.raises(FailPointError):
                    graph.branches.rename("x", "y")
                kind = refused(meanwhile)
        assert kind is ErrorKind.BRANCH_EXISTS
    owner, name = ({"m", "own"}, "x") if point == "before" else ({"m", "own"}, "y")
    for _ in range(2):
        with omnigraph.open(graph.uri) as fresh:
            assert people(fresh, name) == owner
            assert fresh.branches.list() == (["main", "x", "y"] if name == "x" else ["main", "y"])
            assert fresh.upkeep.check(full=True).ok
        clean(graph)


def test_a_branch_that_was_renamed_is_not_deleted_by_its_old_name(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(graph, "x", "own")
    with omnigraph.open(graph.uri) as other, monkeypatch.context() as patched:
        other.snapshot("x")
        first_then(patched, "_restate", lambda: graph.branches.rename("x", "y"))
        assert refused(lambda: other.branches.delete("x")) is ErrorKind.BRANCH_NOT_FOUND
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.branches.list() == ["main", "y"]
        assert people(fresh, "y") == {"m", "own"}


def first_then(patched: pytest.MonkeyPatch, name: str, meanwhile: Callable[[], object]) -> None:
    """The first call of a function of ``control`` waits until something else has happened."""
    real: Callable[..., Any] = getattr(control, name)
    waiting = [meanwhile]

    def call(*args: Any, **kwargs: Any) -> Any:
        if waiting:
            waiting.pop()()
        return real(*args, **kwargs)

    patched.setattr(control, name, call)


# -- everything in every order ---------------------------------------------------------------------

Step = tuple[str, str, str]
NAMES = ("x", "y")


def steps(living: frozenset[str]) -> Iterator[tuple[Step, frozenset[str]]]:
    """What can be done with two names, and which of them live then."""
    for name in NAMES:
        other = NAMES[1 - NAMES.index(name)]
        if name not in living:
            yield ("create", name, ""), living | {name}
        else:
            yield ("delete", name, ""), living - {name}
            if other not in living:
                yield ("rename", name, other), living - {name} | {other}


def histories(length: int, living: frozenset[str] = frozenset()) -> Iterator[tuple[Step, ...]]:
    """All of this length; the names are alike, so the first step is about the first one."""
    if not length:
        yield ()
        return
    for step, then in steps(living):
        if living or length < STEPS or step[1] == NAMES[0]:
            for rest in histories(length - 1, then):
                yield (step, *rest)


def cases() -> list[tuple[tuple[Step, ...], tuple[bool, ...], int]]:
    """Histories, after which of their steps a cleanup runs, and which handles take the steps."""
    everything = list(product(histories(STEPS), product((False, True), repeat=STEPS), range(3)))
    return Random(8).sample(everything, min(SAMPLE, len(everything)))


@pytest.mark.sampled
@pytest.mark.parametrize(("history", "cleanups", "handles"), cases(), ids=lambda v: None)
def test_names_and_cleanups_in_every_order(
    graph: omnigraph.Graph,
    history: tuple[Step, ...],
    cleanups: tuple[bool, ...],
    handles: int,
) -> None:
    """One handle all the time, two that take turns, or a fresh one for each step."""
    shown: dict[str, set[str]] = {}
    old = [graph, omnigraph.open(graph.uri)]
    for number, ((verb, name, new), cleans) in enumerate(zip(history, cleanups, strict=True)):
        handle = old[number % 2] if handles == 1 else old[0]
        if handles == 2:
            handle = omnigraph.open(graph.uri)
        getattr(handle.branches, verb)(*filter(None, (name, new)))
        row = f"{number}"
        if verb == "create":
            put(handle, name, row)
            shown[name] = {"m", row}
        elif verb == "rename":
            shown[new] = shown.pop(name)
        else:
            del shown[name]
        if cleans:
            clean(graph)
        for reader in (*old, omnigraph.open(graph.uri)):
            compare(reader, shown)
        if handles == 2:
            handle.close()
    assert graph.upkeep.check(full=True).ok
    old[1].close()


def compare(reader: omnigraph.Graph, shown: dict[str, set[str]]) -> None:
    assert reader.branches.list() == ["main", *sorted(shown)]
    for name in NAMES:
        if name in shown:
            assert people(reader, name) == shown[name]
            assert refused(lambda n=name: reader.branches.create(n)) is ErrorKind.BRANCH_EXISTS
        else:
            kind = ErrorKind.BRANCH_NOT_FOUND
            assert refused(lambda n=name: reader.snapshot(n)) is kind
            assert refused(lambda n=name: reader.branches.delete(n)) is kind
    objects = reader._repository.objects
    assert branch_names(objects) == sorted(shown)
    for name in shown:
        ref, (life, dead) = find_branch(objects, name), newest_life(objects, name)
        assert ref is not None
        assert (ref.life, dead) == (life, False)
