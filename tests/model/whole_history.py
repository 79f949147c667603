"""A history of everything, step by step against the model, and the shortest one that still fails.

A step is a verb and a number. What exactly happens follows from the number and from what there is,
so a history stays one when steps are left out, and a failure can be made small.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import history_choices as choices
from feed_replay import Replica
from feed_replay import exported as shown
from remembered_checks import remembering
from schema_merge import Ambiguous
from schema_model import KEY, text_of
from schema_states import State
from schema_world import Differs, World, check, reload_view
from state_merge import Commit, merge, merge_bases, revert

import omnigraph
from omnigraph.errors import ErrorKind, OmnigraphError
from omnigraph.testing.clock import ManualClock

Step = tuple[str, int]

WEIGHTS = {
    "load": 24, "update": 8, "delete": 8, "schema": 14, "branch": 5, "rename": 2, "end": 2,
    "merge": 10, "cross": 3, "revert": 5, "reset": 2, "tag": 3, "cleanup": 2, "optimize": 2,
    "index": 1, "reopen": 2, "hold": 2, "follow": 2, "look": 3,
}  # fmt: skip
BRANCHES = ("main", "x", "y", "z")
REPLAYED_MAX = 120
"""Commits of a graph whose feed is replayed from its beginning now and then."""


def steps_of(seed: int | str, count: int) -> list[Step]:
    random = Random(seed)
    verbs, weights = list(WEIGHTS), list(WEIGHTS.values())
    return [(random.choices(verbs, weights)[0], random.randrange(10**6)) for _ in range(count)]


@dataclass
class Reader:
    """A reader that follows a branch: what it knows, and where it goes on."""

    branch: str
    life: int
    copy: Replica
    cursor: str | None
    """None for one that begins at the beginning."""


@dataclass
class History:
    """A graph with two handles, one of them usually stale, and what should be true of it."""

    long: bool = False
    """Everything is looked at now and then, not after every step, and is also loaded again."""
    moved: set[str] = field(default_factory=set)
    """Branches with another state than when they were loaded again."""
    handles: list[omnigraph.Graph] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)
    doubtful: set[str] = field(default_factory=set)
    """Commits that a cleanup did not have to keep."""
    gone: set[str] = field(default_factory=set)
    views: list[tuple[Any, str]] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    lives: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BRANCHES, 0))
    cleaned: bool = False
    count: int = 0

    def __post_init__(self) -> None:
        self.folder = Path(mkdtemp())
        self.clock = ManualClock()
        schema = choices.start_schema()
        graph = omnigraph.init(self.folder / "g", text_of(schema), clock=self.clock)
        self.handles = [graph, self._open()]
        self.world = World(graph, {"main": Commit(State(schema))})
        self.ids = {c: i for i, c in self.world.commits.items()}

    def _open(self) -> omnigraph.Graph:
        return omnigraph.open(self.folder / "g", clock=self.clock)

    def close(self) -> None:
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- running ---------------------------------------------------------------------------------

    def run(self, step: Step) -> None:
        """One step, and what must hold after it."""
        verb, number = step
        random = Random(number)
        self.count += 1
        self.clock.advance(60)
        self.world.graph = random.choice(self.handles)
        before = dict(self.world.heads)
        with suppress(Ambiguous):
            getattr(self, verb)(random)
        self.ids = {c: i for i, c in self.world.commits.items()}
        self._laws(
            random, [b for b in self.world.heads if self.world.heads[b] is not before.get(b)]
        )

    def _laws(self, random: Random, moved: Iterable[str]) -> None:
        whole = not self.long or self.count % WHOLE_EVERY == 0
        self.moved |= set(moved)
        for branch in self.world.heads if whole else moved:
            self.world.agree(branch, "afterwards")
        if whole:
            self.world.sound("afterwards")
        if self.long and self.count % LOADED_EVERY == 0:
            for branch in sorted(self.moved & self.world.heads.keys()):
                reload_view(self.world.graph.snapshot(branch), branch)
            self.moved.clear()
        known = list(self.world.commits)
        for commit_id in random.sample(known, min(2, len(known))):
            self._past(self.world.graph, commit_id)
        if self.count % 10 == 0:
            with self._open() as fresh:
                for branch in self.world.heads:
                    self.world.agree(branch, "a fresh handle", fresh)
                for commit_id in random.sample(known, min(4, len(known))):
                    self._past(fresh, commit_id)
                for name, commit_id in self.tags.items():
                    view = fresh.snapshot(tag=name)
                    self.world.same(view, self.world.commits[commit_id].state, f"tag {name}")

    def _past(self, graph: omnigraph.Graph, commit_id: str) -> None:
        """A commit shows what it showed, or is gone for a reason."""
        try:
            view = graph.at(f"commit:{commit_id}")
            self.world.same(view, self.world.commits[commit_id].state, f"commit {commit_id}")
        except omnigraph.NotFoundError as e:
            self._lost(commit_id, e)

    def _lost(self, commit_id: str, error: OmnigraphError) -> None:
        kinds = (ErrorKind.HISTORY_RECLAIMED, ErrorKind.COMMIT_NOT_FOUND)
        check(error.kind in kinds, f"commit {commit_id}", kinds, error)
        check(commit_id in self.doubtful, f"commit {commit_id} is lost", "kept", error)
        self.gone.add(commit_id)

    # -- choices ---------------------------------------------------------------------------------

    def _branch(self, random: Random) -> str:
        return random.choice(sorted(self.world.heads))

    def _commit(self, random: Random) -> str:
        """A commit, usually one that is still there."""
        known = list(self.world.commits)
        near = [i for i in known[-40:] if i not in self.doubtful]
        return random.choice(near if near and random.random() < 0.9 else known)

    def _head_id(self, branch: str) -> str:
        return self.world.graph.snapshot(branch).commit.id

    # -- writes ----------------------------------------------------------------------------------

    def load(self, random: Random) -> None:
        branch = self._branch(random)
        mode = random.choices(["merge", "append", "overwrite"], [7, 3, 1])[0]
        rows = choices.rows(random, self.world.heads[branch].state, random.choice([1, 1, 2, 4]))
        self.world.load(branch, rows, mode)

    def update(self, random: Random) -> None:
        """One property of one entity."""
        branch = self._branch(random)
        head = self.world.heads[branch]
        found = [(t, i) for t in head.state.schema.types() for i in sorted(head.state.of(t.id))]
        if not found:
            return
        thing, entity = random.choice(found)
        keys = thing.facts.get(KEY, ())
        own = [p for p in head.state.schema.properties(thing.id) if p.id not in keys]
        if own:
            prop = random.choice(own)
            value = choices.value(random, head.state.schema, prop)
            self.world.update(branch, thing.id, entity, prop, value)

    def delete(self, random: Random) -> None:
        branch = self._branch(random)
        state = self.world.heads[branch].state
        found = [(t.id, i) for t in state.schema.types() for i in sorted(state.of(t.id))]
        if found:
            self.world.delete(branch, *random.choice(found))

    def schema(self, random: Random) -> None:
        branch = self._branch(random)
        _, schema = choices.schema_step(random, self.world.heads[branch].state.schema)
        self.world.apply(branch, schema)

    def optimize(self, random: Random) -> None:
        self._kept_house(self._branch(random), self.world.graph.optimize)

    def index(self, random: Random) -> None:
        self._kept_house(self._branch(random), self.world.graph.build_indexes)

    def _kept_house(self, branch: str, run: Callable[..., Any]) -> None:
        done = run(branch=branch)
        if done.commit is not None:
            head = self.world.heads[branch]
            self.world.published(branch, head.state, (head,), done.commit, "optimize")

    # -- names -----------------------------------------------------------------------------------

    def branch(self, random: Random) -> None:
        free = [n for n in BRANCHES if n not in self.world.heads]
        name = random.choice(free or list(BRANCHES[1:]))
        source = self._commit(random) if random.random() < 0.5 else self._branch(random)
        commit_id = source if source in self.world.commits else self._head_id(source)
        try:
            self.world.graph.branches.create(name, source)
        except omnigraph.AlreadyExistsError:
            check(not free, f"branch {name} was not made", "made", "branch_exists")
        except omnigraph.NotFoundError as e:
            self._lost(commit_id, e)
        else:
            check(bool(free), f"branch {name} was made twice", "branch_exists")
            self.world.heads[name] = self.world.commits[commit_id]
            self.doubtful.discard(commit_id)
            self._new_life(name)

    def _new_life(self, *names: str) -> None:
        for name in names:
            self.lives[name] = self.count
            if name in self.world.heads:  # A writer may be told once that the branch it knew ended.
                for handle in self.handles:
                    handle.snapshot(name)

    def end(self, random: Random) -> None:
        name = random.choice(BRANCHES[1:])
        if name in self.world.heads:
            self.world.graph.branches.delete(name)
            del self.world.heads[name]
            self._new_life(name)
            self._forget()
            return
        try:
            self.world.graph.branches.delete(name)
        except omnigraph.NotFoundError as e:
            check(e.kind is ErrorKind.BRANCH_NOT_FOUND, f"delete {name}", None, e)
        else:
            raise Differs(f"branch {name} was deleted, and there was none")

    def _forget(self) -> None:
        """What no name leads to any more need not be found; nothing else is lost with a name."""
        named = [*self.world.heads.values(), *(self.world.commits[i] for i in self.tags.values())]
        behind = {c for head in named for c in head.ancestors()}
        self.doubtful |= {i for i, c in self.world.commits.items() if c not in behind}

    def rename(self, random: Random) -> None:
        name, new = random.choice(BRANCHES[1:]), random.choice(BRANCHES[1:])
        if name in self.world.heads and new not in self.world.heads:
            self.world.graph.branches.rename(name, new)
            self.world.heads[new] = self.world.heads.pop(name)
            for reader in self.readers:
                if reader.branch == name and reader.life == self.lives[name]:
                    reader.branch, reader.life = new, self.count
            self._new_life(name, new)

    def tag(self, random: Random) -> None:
        name = f"v{random.randrange(3)}"
        if name in self.tags:
            self.world.graph.tags.delete(name)
            del self.tags[name]
            self._forget()
            return
        commit_id = self._commit(random)
        try:
            self.world.graph.tags.create(name, f"commit:{commit_id}")
        except omnigraph.NotFoundError as e:
            self._lost(commit_id, e)
        else:
            self.tags[name] = commit_id
            self.doubtful.discard(commit_id)

    # -- merges ----------------------------------------------------------------------------------

    def merge(self, random: Random) -> None:
        others = sorted(self.world.heads)
        into = random.choice(others)
        source = random.choice(others)
        if source != into:
            prefer = random.choice([None, None, None, "ours", "theirs"])
            self._merge(source, into, prefer, self.world.heads[source])

    def cross(self, random: Random) -> None:
        """Two branches merge what the other was before: two best common ancestors."""
        if len(self.world.heads) < 2:
            return
        one, other = random.sample(sorted(self.world.heads), 2)
        prefer = random.choice([None, "ours", "theirs"])
        before, commit_id = self.world.heads[one], self._head_id(one)
        self._merge(other, one, prefer, self.world.heads[other])
        self._merge(f"commit:{commit_id}", other, prefer, before)

    def _merge(self, source: str, into: str, prefer: str | None, theirs: Commit) -> None:
        ours = self.world.heads[into]
        if theirs is ours:
            return
        expected = merge(ours, theirs, prefer)
        if expected.loose_schema:
            return
        try:
            self.world.merge(source, into, prefer, theirs)
        except Differs as e:
            if not self._may_be_lost(e, self._needed(ours, theirs)):
                raise

    def _needed(self, *commits: Commit) -> set[Commit]:
        """Common ancestors, and theirs as far as there are several."""
        found: set[Commit] = set()
        waiting = [merge_bases(*commits)]
        while waiting:
            bases = waiting.pop()
            found |= set(bases)
            waiting += [merge_bases(a, b) for i, a in enumerate(bases) for b in bases[i + 1 :]]
        return found

    def _may_be_lost(self, error: Differs, needed: Iterable[Commit]) -> bool:
        why = error.__cause__
        lost = isinstance(why, OmnigraphError) and why.kind is ErrorKind.HISTORY_RECLAIMED
        return lost and any(self.ids.get(c) in self.doubtful for c in needed)

    def revert(self, random: Random) -> None:
        branch, commit_id = self._branch(random), self._commit(random)
        commit = self.world.commits[commit_id]
        # Only what went into a branch can be taken back on it.
        if not commit.parents or commit not in self.world.heads[branch].ancestors():
            return
        prefer = random.choice([None, None, "ours", "theirs"])
        if revert(self.world.heads[branch], commit, prefer).loose_schema:
            return
        try:
            self.world.revert(branch, commit_id, prefer)
        except Differs as e:
            kinds = (ErrorKind.HISTORY_RECLAIMED, ErrorKind.COMMIT_NOT_FOUND)
            doubtful = {commit_id, self.ids.get(commit.parents[0])} & self.doubtful
            kind = getattr(e.__cause__, "kind", None)
            if not (doubtful and kind in kinds):
                raise

    def reset(self, random: Random) -> None:
        branch, commit_id = self._branch(random), self._commit(random)
        try:
            before = self.world.heads[branch]
            self.world.reset(branch, commit_id)
        except omnigraph.NotFoundError as e:
            self._lost(commit_id, e)
        else:
            if self.world.heads[branch] is not before:
                self._new_life(branch)

    # -- upkeep ----------------------------------------------------------------------------------

    def cleanup(self, random: Random) -> None:
        keep = random.randint(1, 6)
        for handle in self.handles:
            handle.settle()
        if random.random() < 0.7:
            report = self.world.graph.upkeep.cleanup(keep=keep, confirm=True, grace=0)
        else:
            span = keep * 60 * 5
            report = self.world.graph.upkeep.cleanup(older_than=span, confirm=True, grace=0)
            keep = 1
        check(report.errors == (), "cleanup", (), report.errors)
        self.cleaned = True
        promised = {self.ids[c] for c in self._promised(keep)} | set(self.tags.values())
        self.doubtful |= set(self.world.commits) - promised
        with self._open() as fresh:
            for commit_id in sorted(promised - self.doubtful):
                self._past(fresh, commit_id)

    def _promised(self, keep: int) -> set[Commit]:
        """Commits that a cleanup has to leave whole."""
        found: set[Commit] = set()
        heads = list(self.world.heads.values())
        for head in heads:
            commit: Commit | None = head
            for _ in range(keep):
                if commit is None:
                    break
                found.add(commit)
                commit = commit.parents[0] if commit.parents else None
        for i, one in enumerate(heads):
            for other in heads[i + 1 :]:
                found |= set(merge_bases(one, other))
        return found

    # -- readers ---------------------------------------------------------------------------------

    def reopen(self, random: Random) -> None:
        place = random.randrange(2)
        self.handles[place].close()
        self.handles[place] = self._open()
        self.views = []
        self.world.graph = self.handles[place]

    def hold(self, random: Random) -> None:
        branch = self._branch(random)
        view = self.world.graph.snapshot(branch)
        self.views = [*self.views[-5:], (view, view.commit.id)]

    def look(self, random: Random) -> None:
        """What a reader holds is what it was, or is told to be gone."""
        for view, commit_id in self.views:
            try:
                self.world.same(view, self.world.commits[commit_id].state, f"held {commit_id}")
            except Differs as e:
                if not isinstance(e.__cause__, omnigraph.NotFoundError):
                    raise
                self._lost(commit_id, e.__cause__)
        for reader in self.readers:
            self._read(reader)
        if not self.cleaned and len(self.world.commits) < REPLAYED_MAX:
            branch = self._branch(random)
            self._read(Reader(branch, self.lives[branch], Replica(), None))

    def follow(self, random: Random) -> None:
        branch = self._branch(random)
        cursor = self.world.graph.changes.poll(branch=branch).cursor
        copy = copied(self.world.graph.snapshot(branch))
        self.readers = [*self.readers[-3:], Reader(branch, self.lives[branch], copy, cursor)]

    def _read(self, reader: Reader) -> None:
        """The feed behind a cursor leads from what the reader knows to what the branch shows."""
        if reader.branch not in self.world.heads or reader.life != self.lives[reader.branch]:
            return
        start = {"start": "beginning"} if reader.cursor is None else {"cursor": reader.cursor}
        feed = self.world.graph.changes.follow(branch=reader.branch, until_caught_up=True, **start)
        try:
            for block in feed:
                reader.copy.apply(block.to_dict())
        except OmnigraphError as e:
            check(e.kind is ErrorKind.FEED_GAP, "feed", "change_feed_gap", e)
            check(self.cleaned, "the feed has a gap, and nothing was cleaned up", None, e)
            self.readers = [r for r in self.readers if r is not reader]
            return
        wanted = shown(self.world.graph.snapshot(reader.branch))
        made = reader.copy.state()
        check(made == wanted, f"feed of {reader.branch}", wanted, made)
        reader.cursor = feed.cursor


def copied(view: Any) -> Replica:
    """A copy of what a state shows, ready to follow what comes."""
    made, rows = Replica(), shown(view)
    for kind in (*view.catalog.nodes.values(), *view.catalog.edges.values()):
        number = f"{kind.id:016x}"
        made.names[number] = kind.name
        made.rows[number] = rows.get(kind.name, {})
    return made


# -- failures --------------------------------------------------------------------------------------


WHOLE_EVERY = 5
"""Steps of a long history after which everything is looked at, not only what a step moved."""
LOADED_EVERY = 20
"""Steps of a long history after which what branches show is loaded again."""
CHECKED_AGAIN = 50
"""Steps after which a check also looks again at what it found sound before."""


def fails(steps: Iterable[Step], *, long: bool = False) -> tuple[int, str] | None:
    """Where a history fails, and how; None if it does not."""
    history = History(long=long)
    try:
        with remembering() as checks:
            for place, step in enumerate(steps):
                if place % CHECKED_AGAIN == 0:
                    checks.forget()
                try:
                    history.run(step)
                except Differs as e:
                    return place, str(e)
                except Exception as e:
                    return place, f"{type(e).__name__}: {e}"
        return None
    finally:
        history.close()


WINDOWS = (25, 50, 100, 200, 400)
"""Whatever fails late fails mostly without the beginning, too."""


def shrunk(steps: list[Step], why: str, rounds: int = 300) -> tuple[list[Step], str]:
    """The fewest steps that still fail, found greedily: the end alone, halves, single ones."""
    for size in WINDOWS:
        failed = fails(steps[-size:]) if size < len(steps) else None
        if failed is not None:
            steps, why = steps[-size:][: failed[0] + 1], failed[1]
            break
    size = max(1, len(steps) // 2)
    rounds = min(rounds, 3_000 // len(steps))
    while rounds > 0:
        place, better = 0, False
        while place < len(steps) - 1 and rounds > 0:
            rounds -= 1
            tried = steps[:place] + steps[place + size :]
            failed = fails(tried) if tried else None
            if failed is not None:
                steps, why, better = tried[: failed[0] + 1], failed[1], True
            else:
                place += size
        if size == 1 and not better:
            break
        size = max(1, size // 2)
    return steps, why


def spelled(steps: list[Step]) -> str:
    """A history as the environment takes it back."""
    return json.dumps(steps, separators=(",", ":"))
