"""After any history and any cleanup every kept state reads back exactly as it was when it was made,
everything else is whole or says that it is gone, and a second cleanup finds nothing."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, armed
from omnigraph.maintain.cleanup import cleanup
from omnigraph.maintain.recovery import recover
from omnigraph.maintain.retention import Policy

SCHEMA = """
node Person { name: String @key  age: I64?  text: Blob? }
edge Knows: Person -> Person
"""
State = dict[str, list[dict[str, Any]]]
NAMES = st.sampled_from(["a", "b", "c"])
BRANCHES = st.sampled_from(["main", "x", "y"])
OTHERS = st.sampled_from(["x", "y"])
PLACES = st.integers(0, 30)
PEOPLE = st.builds(
    lambda name, age: {"type": "Person", "data": {"name": name, "age": age}},
    NAMES,
    st.integers(0, 99),
)
ROWS = st.lists(PEOPLE, min_size=1, max_size=3, unique_by=lambda row: row["data"]["name"])
MODES = st.sampled_from(["merge", "overwrite"])
STAGES = [
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
]
CLEANUPS = [
    FailPoint.CLEANUP_AFTER_RECORD,
    FailPoint.CLEANUP_AFTER_NEWS,
    FailPoint.CLEANUP_BETWEEN_FILES,
]


class _Killed(BaseException):
    """Ends a command as a kill would: no handler of an error sees it."""


def _die() -> None:
    raise _Killed


class CleanupKeepsItsPromise(RuleBasedStateMachine):
    """Two handles, one of them usually stale, and what every commit showed when it was made."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.place = self.folder / "g"
        self.handles = [omnigraph.init(self.place, SCHEMA), omnigraph.open(self.place)]
        self.shown: dict[str, State] = {}
        self.made: list[str] = []
        self.tags: dict[str, str] = {}
        self.gone: set[str] = set()
        """Commits that were told to be reclaimed: none of them ever comes back."""
        rows = [{"type": "Person", "data": {"name": n, "age": 0}} for n in "abc"]
        self.handles[0].load(rows)
        self.learn("main")

    def teardown(self) -> None:
        if hasattr(self, "handles"):
            for handle in self.handles:
                handle.close()
            shutil.rmtree(self.folder)

    def learn(self, branch: str) -> None:
        """Remember what the newest commit of a branch shows."""
        for handle in self.handles:
            handle.settle()
        with omnigraph.open(self.place) as fresh:
            view = fresh.snapshot(branch)
            if view.commit.id not in self.shown:
                self.shown[view.commit.id] = content(view)
                self.made.append(view.commit.id)

    def branches(self) -> list[str]:
        return self.handles[0].branches.list()

    # -- histories -------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), branch=BRANCHES, rows=ROWS, mode=MODES)
    def write(self, which: int, branch: str, rows: list[dict[str, Any]], mode: str) -> None:
        if branch in self.branches():
            self.attempt(lambda: self.handles[which].load(rows, mode=mode, branch=branch))
            self.learn(branch)

    @rule(which=st.integers(0, 1), branch=BRANCHES, start=NAMES, end=NAMES)
    def connect(self, which: int, branch: str, start: str, end: str) -> None:
        if branch in self.branches():
            edge = [{"edge": "Knows", "from": start, "to": end}]
            self.attempt(lambda: self.handles[which].load(edge, branch=branch))
            self.learn(branch)

    @rule(which=st.integers(0, 1), name=OTHERS, place=PLACES)
    def branch(self, which: int, name: str, place: int) -> None:
        if name not in self.branches():
            source = self.made[-1 - place % len(self.made)]
            self.attempt(lambda: self.handles[which].branches.create(name, source), source)

    @rule(which=st.integers(0, 1), name=OTHERS)
    def end_branch(self, which: int, name: str) -> None:
        if name in self.branches():
            self.attempt(lambda: self.handles[which].branches.delete(name))

    @rule(which=st.integers(0, 1), name=st.sampled_from(["v1", "v2"]), place=PLACES)
    def tag(self, which: int, name: str, place: int) -> None:
        if name in self.tags:
            self.handles[which].tags.delete(name)
            del self.tags[name]
            return
        commit = self.made[-1 - place % len(self.made)]
        if self.attempt(lambda: self.handles[which].tags.create(name, commit), commit):
            self.tags[name] = commit

    @rule(which=st.integers(0, 1), branch=BRANCHES, place=PLACES)
    def reset(self, which: int, branch: str, place: int) -> None:
        if branch in self.branches():
            commit = self.made[-1 - place % len(self.made)]
            self.attempt(lambda: self.handles[which].reset(commit, branch=branch), commit)
            self.learn(branch)

    @rule(which=st.integers(0, 1), name=OTHERS)
    def merge(self, which: int, name: str) -> None:
        if name in self.branches():
            self.attempt(lambda: self.handles[which].merge(name, prefer="theirs"))
            self.learn("main")

    # -- misfortunes -----------------------------------------------------------------------------

    @rule(branch=BRANCHES, rows=ROWS, mode=MODES, point=st.sampled_from(STAGES))
    def killed_write(
        self, branch: str, rows: list[dict[str, Any]], mode: str, point: FailPoint
    ) -> None:
        if branch not in self.branches():
            return
        with (
            omnigraph.open(self.place) as victim,
            armed(point, _die, times=None),
            suppress(_Killed, omnigraph.ConstraintError),  # Nobody may be taken who is known.
        ):
            victim.load(rows, mode=mode, branch=branch)
        self.learn(branch)

    @rule(
        which=st.integers(0, 1),
        branch=BRANCHES,
        rows=ROWS,
        mode=MODES,
        point=st.sampled_from(STAGES),
        keep=st.integers(1, 3),
        gives_up=st.booleans(),
    )
    def stalled_write(
        self,
        which: int,
        branch: str,
        rows: list[dict[str, Any]],
        mode: str,
        point: FailPoint,
        keep: int,
        gives_up: bool,
    ) -> None:
        """A write stands still while somebody recovers and cleans up."""
        if branch not in self.branches():
            return

        def meanwhile() -> None:
            with omnigraph.open(self.place) as other:
                if gives_up:
                    recover(other._repository, lease_s=0)
                cleanup(other._repository, Policy(keep=keep), confirm=True)

        with armed(point, meanwhile):
            self.attempt(lambda: self.handles[which].load(rows, mode=mode, branch=branch))
        self.learn(branch)

    @rule(which=st.integers(0, 1), place=PLACES, keep=st.integers(1, 3))
    def stalled_reset(self, which: int, place: int, keep: int) -> None:
        commit = self.made[-1 - place % len(self.made)]

        def meanwhile() -> None:
            with omnigraph.open(self.place) as other:
                cleanup(other._repository, Policy(keep=keep), confirm=True)

        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, meanwhile):
            self.attempt(lambda: self.handles[which].reset(commit), commit)
        self.learn("main")

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.handles[which].close()
        self.handles[which] = omnigraph.open(self.place)

    # -- cleanups --------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), keep=st.integers(1, 4), lease_s=st.sampled_from([0, 3600]))
    def clean(self, which: int, keep: int, lease_s: int) -> None:
        policy = Policy(keep=keep)
        handle = self.handles[which]
        handle.settle()
        report = cleanup(handle._repository, policy, confirm=True, lease_s=lease_s)
        assert report.errors == ()
        with omnigraph.open(self.place) as fresh:
            again = cleanup(fresh._repository, policy, lease_s=lease_s)
            assert again.places == (), again.to_dict()
            for name in fresh.branches.list():
                for commit in fresh.commits(branch=name, first_parent=True, limit=keep):
                    if commit.id in self.shown and commit.id not in self.gone:
                        assert content(fresh.at(f"commit:{commit.id}")) == self.shown[commit.id]

    @rule(which=st.integers(0, 1), keep=st.integers(1, 3), point=st.sampled_from(CLEANUPS))
    def killed_cleanup(self, which: int, keep: int, point: FailPoint) -> None:
        with armed(point, _die, skip=1 if "between" in point else 0), suppress(_Killed):
            cleanup(self.handles[which]._repository, Policy(keep=keep), confirm=True)

    # -- laws ------------------------------------------------------------------------------------

    @precondition(lambda self: hasattr(self, "handles"))
    @invariant()
    def everything_is_whole_or_gone(self) -> None:
        with omnigraph.open(self.place) as fresh:
            for name in fresh.branches.list():
                view = fresh.snapshot(name)
                self.note_recoveries(fresh, name)
                assert content(view) == self.shown[view.commit.id], name
            for name, commit in self.tags.items():
                assert content(fresh.snapshot(tag=name)) == self.shown[commit], name
            for commit in self.made:
                try:
                    found = content(fresh.at(f"commit:{commit}"))
                except omnigraph.NotFoundError as e:
                    assert e.kind in (ErrorKind.HISTORY_RECLAIMED, ErrorKind.COMMIT_NOT_FOUND)
                    assert commit not in self.tags.values()
                    self.gone.add(commit)
                else:
                    assert found == self.shown[commit]

    def note_recoveries(self, fresh: omnigraph.Graph, branch: str) -> None:
        """A write that was given up is told by a commit that shows what was there before."""
        unknown = []
        for commit in fresh.commits(branch=branch, first_parent=True):
            if commit.id in self.shown or commit.parent_id is None:
                break
            assert (commit.kind, commit.actor) == ("recovery", "omnigraph:recovery")
            unknown.append(commit)
        for commit in reversed(unknown):
            assert commit.parent_id is not None
            self.shown[commit.id] = self.shown[commit.parent_id]
            self.made.append(commit.id)

    def attempt(self, command: Any, commit: str | None = None) -> bool:
        """Run a command; it may be refused, but only for a reason."""
        try:
            command()
        except omnigraph.NotFoundError as e:
            assert e.kind in (
                ErrorKind.HISTORY_RECLAIMED,
                ErrorKind.COMMIT_NOT_FOUND,
                ErrorKind.BRANCH_NOT_FOUND,
            )
            return False
        except (omnigraph.ConstraintError, omnigraph.ConflictError, omnigraph.UsageError):
            return False
        except omnigraph.MergeConflictError:
            return False
        return True


def content(view: Any) -> State:
    """All rows, in an order of their own."""
    return {
        name: sorted((dict(row) for row in view.rows(name)), key=lambda row: row["id"])
        for name in ("Person", "Knows")
    }


TestCleanupKeepsItsPromise = CleanupKeepsItsPromise.TestCase
TestCleanupKeepsItsPromise.settings = settings(
    settings.get_profile(settings.get_current_profile_name()),
    max_examples=20,
    stateful_step_count=14,
)
