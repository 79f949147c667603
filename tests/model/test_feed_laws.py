"""Laws of the change feed over random histories with branches, merges, resets and renames.

Whatever happened to a branch, replaying its feed from the beginning rebuilds it, a baseline and the
feed behind it make its head, pages of any size say the same as one page, and a filter leaves
exactly the others out. Snapshots carry few commits here, so that short histories have borders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.branch.changes import EntityChange, Image
from omnigraph.branch.merge.three_way import merge
from omnigraph.errors import ErrorKind
from omnigraph.testing.clock import ManualClock
from support.examples import examples

SCHEMA = """
node P { code: String @key  n: I32?  x: F64? }
node Q { code: String @key }
edge E: P -> P { n: I32? }
edge F: P -> Q { w: F32?  @key(@src, @dst) }
"""
NAMES = ("main", "one", "two")
TYPES = ("P", "Q", "E", "F")

Entity = tuple[str, str]
State = dict[Entity, str]
"""Lines of an export, spelled alike, by type and id."""
Step = tuple[str, int, int, int]
"""What to do, and three numbers to choose with."""


def spelled(line: Any) -> str:
    return json.dumps(line, sort_keys=True)


def entity(line: dict[str, Any]) -> Entity:
    return line.get("type") or line["edge"], line["data"]["id"]


def read_state(content: bytes) -> State:
    lines = [json.loads(line, parse_int=_number_of) for line in content.splitlines()]
    return {entity(line): spelled(line) for line in lines if "baseline" not in line}


def _number_of(digits: str) -> float:
    # Python reads -0 as the integer, which has no sign.
    return -0.0 if digits == "-0" else int(digits)


def exported(graph: omnigraph.Graph, branch: str) -> State:
    out = BytesIO()
    graph.export(out, branch=branch)
    return read_state(out.getvalue())


def as_line(change: EntityChange, image: Image) -> str:
    data = {"id": change.id, **image.properties}
    if image.endpoints is None:
        return spelled({"type": change.type_name, "data": data})
    source, target = image.endpoints
    return spelled({"edge": change.type_name, "from": source, "to": target, "data": data})


def applied(state: State, changes: list[EntityChange]) -> State:
    """The state after the changes; each must find exactly what it says was there."""
    made = dict(state)
    for change in changes:
        was = made.pop((change.type_name, change.id), None)
        assert was == (as_line(change, change.before) if change.before else None)
        if change.after is not None:
            made[change.type_name, change.id] = as_line(change, change.after)
    return made


@dataclass
class History:
    """A graph, and readers that began at some of its moments."""

    graph: omnigraph.Graph
    life: dict[str, int] = field(default_factory=lambda: {"main": 0})
    """How often each branch lost its past: by a new life or a reset."""
    baselines: list[tuple[str, int, State, str]] = field(default_factory=list)
    """Branch, its life, what was written, the cursor."""
    counter: int = 0

    def run(self, step: Step) -> None:
        verb, a, b, c = step
        living = [n for n in NAMES if n in self.graph.branches]
        branch = living[a % len(living)]
        try:
            getattr(self, verb)(branch, b, c)
        except (omnigraph.ConstraintError, omnigraph.ConflictError):
            pass
        except omnigraph.MergeConflictError:
            pass

    def load(self, branch: str, b: int, c: int) -> None:
        codes = "abcde"
        rows: list[dict[str, Any]] = [
            {
                "type": "P",
                "data": {"code": codes[b % 5], "n": c % 3, "x": (None, -0.0, 0.1)[b % 3]},
            },
            {"type": "Q", "data": {"code": codes[c % 5]}},
        ]
        if b % 2:
            rows.append(
                {
                    "edge": "E", "from": codes[b % 5], "to": codes[b % 5],
                    "data": {"id": f"e{c % 4}", "n": b % 3},
                }
            )  # fmt: skip
        if c % 2:
            rows.append(
                {
                    "edge": "F",
                    "from": codes[b % 5],
                    "to": codes[c % 5],
                    "data": {"w": 0.1 * (b % 3)},
                }
            )
        self.graph.load(rows[: 1 + (b + c) % len(rows)], mode="merge", branch=branch)

    def delete(self, branch: str, b: int, c: int) -> None:
        kind = "PQ"[c % 2]
        self.graph.mutate(
            f'query m() {{ delete {kind} where code = "{"abcde"[b % 5]}" }}', branch=branch
        )

    def branch(self, branch: str, b: int, c: int) -> None:
        name = NAMES[1 + b % 2]
        if name not in self.graph.branches:
            history = self.graph.commits(branch=branch)
            self.graph.branches.create(name, history[c % len(history)].id)
            self._new_past(name)

    def end(self, branch: str, b: int, c: int) -> None:
        if branch != "main":
            self.graph.branches.delete(branch)

    def rename(self, branch: str, b: int, c: int) -> None:
        if branch != "main":
            self.graph.branches.rename(branch, "aside")
            self.graph.branches.rename("aside", branch)

    def reset(self, branch: str, b: int, c: int) -> None:
        living = [n for n in NAMES if n in self.graph.branches]
        history = self.graph.commits(branch=living[b % len(living)])
        if self.graph.reset(history[c % len(history)].id, branch=branch) is not None:
            self._new_past(branch)

    def merge(self, branch: str, b: int, c: int) -> None:
        living = [n for n in NAMES if n in self.graph.branches and n != branch]
        if living:
            prefer = ("ours", "theirs")[c % 2]
            merge(self.graph._repository, living[b % len(living)], into=branch, prefer=prefer)

    def baseline(self, branch: str, b: int, c: int) -> None:
        out = BytesIO()
        made = self.graph.changes.baseline(out, branch=branch)
        self.baselines.append((branch, self.life[branch], read_state(out.getvalue()), made.cursor))

    def _new_past(self, branch: str) -> None:
        self.counter += 1
        self.life[branch] = self.counter


VERBS = (
    "load", "load", "load", "load", "delete", "branch", "branch", "rename", "reset", "merge",
    "merge", "baseline", "end",
)  # fmt: skip
_number = st.integers(0, 60)
histories = st.lists(
    st.tuples(st.sampled_from(VERBS), _number, _number, _number), min_size=4, max_size=16
)
sizes = st.fixed_dictionaries(
    {
        "max_commits": st.sampled_from([1, 2, 3, 512]),
        "max_changes": st.sampled_from([1, 2, 3, 8192]),
        "max_bytes": st.sampled_from([1, 200, 700, 32 << 20]),
    }
)


@contextmanager
def history(steps: list[Step], window: int) -> Iterator[History]:
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as root:
        for module in ("manifest.codec", "branch.feed.line"):
            patch.setattr(f"omnigraph.{module}.COMMITS_MAX", window)
        with omnigraph.init(root, SCHEMA, clock=ManualClock()) as graph:
            made = History(graph)
            for step in steps:
                made.run(step)
            # A reader that has seen nothing of all this.
            with omnigraph.open(root) as reader:
                made.graph = reader
                yield made


def replay(graph: omnigraph.Graph, branch: str, **options: Any) -> list[EntityChange]:
    feed = graph.changes.follow(branch=branch, until_caught_up=True, **options)
    found = [change for block in feed for change in block.changes]
    rest = {n: options[n] for n in ("kinds", "types", "ops") if n in options}
    assert graph.changes.poll(branch=branch, cursor=feed.cursor, **rest).blocks == ()
    return found


@settings(max_examples=examples(10))
@given(steps=histories, window=st.sampled_from([2, 3, 50]), size=sizes)
def test_the_feed_from_the_beginning_rebuilds_every_branch(
    steps: list[Step], window: int, size: dict[str, int]
) -> None:
    with history(steps, window) as made:
        for branch in made.graph.branches:
            changes = replay(made.graph, branch, start="beginning", **size)
            assert applied({}, changes) == exported(made.graph, branch)


@settings(max_examples=examples(10))
@given(steps=histories, window=st.sampled_from([2, 3, 50]), size=sizes)
def test_a_baseline_and_the_feed_behind_it_make_the_head(
    steps: list[Step], window: int, size: dict[str, int]
) -> None:
    with history(steps, window) as made:
        for branch, life, state, cursor in made.baselines:
            if branch not in made.graph.branches:
                continue
            if made.life[branch] == life:
                changes = replay(made.graph, branch, cursor=cursor, **size)
                assert applied(state, changes) == exported(made.graph, branch)
                continue
            try:
                changes = replay(made.graph, branch, cursor=cursor)
            except omnigraph.UsageError as error:
                assert error.kind is ErrorKind.CURSOR_REJECTED
                assert error.details["reason"] in ("left_behind", "other_branch")
            else:  # The branch was set back, but not behind this commit.
                assert applied(state, changes) == exported(made.graph, branch)


@settings(max_examples=examples(10))
@given(
    steps=histories,
    window=st.sampled_from([2, 50]),
    size=sizes,
    kinds=st.lists(st.sampled_from(["node", "edge"]), max_size=1),
    types=st.lists(st.sampled_from(TYPES), max_size=2),
    ops=st.lists(st.sampled_from(["insert", "update", "delete"]), max_size=2),
)
def test_pages_say_the_same_as_one_page_and_filters_leave_the_others_out(
    steps: list[Step],
    window: int,
    size: dict[str, int],
    kinds: list[str],
    types: list[str],
    ops: list[str],
) -> None:
    with history(steps, window) as made:
        graph = made.graph
        for branch in graph.branches:
            whole = graph.changes.poll(branch=branch, start="beginning", max_changes=8192)
            assert whole.caught_up
            everything = [c for block in whole.blocks for c in block.changes]
            assert repr(replay(graph, branch, start="beginning", **size)) == repr(everything)
            wish = {"kinds": kinds, "types": types, "ops": ops}
            some = replay(graph, branch, start="beginning", **wish, **size)
            assert repr(some) == repr(
                [
                    c
                    for c in everything
                    if (not kinds or c.kind in kinds)
                    and (not types or c.type_name in types)
                    and (not ops or c.op in ops)
                ]
            )
            line = [c.id for c in graph.commits(branch=branch, first_parent=True)]
            assert [b.cause.commit_id for b in whole.blocks] == line[-2::-1]
            for block in whole.blocks:
                assert repr(graph.changes.commit(block.cause.commit_id).changes) == repr(
                    block.changes
                )
                order = [(c.kind != "node", c.type_id, c.id.encode()) for c in block.changes]
                assert order == sorted(order)
