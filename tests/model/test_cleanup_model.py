"""After any history and any cleanup every kept state reads back exactly as it was when it was made,
by its commit and by its moment; everything else is whole or says that it is gone, also to who still
holds it; every name is the branch that got it last; no merge is taken away; and a second cleanup
finds nothing."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count, cycle, pairwise
from pathlib import Path
from typing import Any

from cleanup_support import (
    EVOLUTIONS,
    SCHEMA,
    Held,
    State,
    bulk_load,
    can_merge,
    content,
    evolved,
    fitting,
    incarnations,
    line,
    living,
    refused,
)
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, armed
from omnigraph.upkeep.cleanup import cleanup
from omnigraph.upkeep.name_check import NameFaultKind, name_faults
from omnigraph.upkeep.recovery import recover
from omnigraph.upkeep.retention import Policy
from support.examples import examples

NAMES = st.sampled_from(["a", "b", "c"])
BRANCHES = st.sampled_from(["main", "x", "y"])
OTHERS = st.sampled_from(["x", "y"])
HANDLES = st.lists(st.integers(0, 1), min_size=1, max_size=3)
TWIGS = 17
PLACES = st.integers(0, 30)
PEOPLE = st.builds(
    lambda name, age, size: {"name": name, "age": age, "years": age, "note": age, "text": size},
    NAMES,
    st.integers(0, 99),
    st.sampled_from([0, 10, 90_000]),  # Bytes: in no file, in the data file, in one of its own.
)
ROWS = st.lists(PEOPLE, min_size=1, max_size=3, unique_by=lambda row: row["name"])
MODES = st.sampled_from(["merge", "overwrite"])
COMMANDS = st.sampled_from(
    ["load", "optimize", "index", "schema", "merge", "reset", "revert", "create", "delete"]
)
"""What may die, or stand still while others clean up."""
STAGES = st.sampled_from(
    [
        FailPoint.SCHEMA_AFTER_OBJECTS,
        FailPoint.STAGE_AFTER_FILES,
        FailPoint.STAGE_AFTER_COMMIT,
        FailPoint.STAGE_AFTER_PIN,
        FailPoint.WRITE_ALL_STAGED,
        FailPoint.PUBLISH_BEFORE_COMMIT,
        FailPoint.PUBLISH_AFTER_COMMIT,
        FailPoint.BRANCH_BEFORE_REF,
        FailPoint.BRANCH_BEFORE_DEATH,
    ]
)
CLEANUPS = [
    FailPoint.CLEANUP_AFTER_RECORD,
    FailPoint.CLEANUP_AFTER_ANNOUNCEMENT,
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
        self.given_up: set[str] = set()
        """Commits that a cleanup has given up which then died: the next one may take them."""
        self.bulks = count()
        self.names: dict[str, str | None] = {}
        """Living branches by name, each with its incarnation; None if it is not known what became."""
        self.held: list[Held] = []
        self.twigs = 0
        rows = [{"type": "Person", "data": {"name": n, "age": 0}} for n in "abc"]
        self.handles[0].load([*rows, {"type": "Pet", "data": {"name": "rex"}}])
        self.learn("main")

    def teardown(self) -> None:
        if hasattr(self, "handles"):
            for handle in (*self.handles, *(held.graph for held in self.held)):
                handle.close()
            shutil.rmtree(self.folder)

    def learn(self, branch: str) -> None:
        """Remember what the newest commit of a branch shows."""
        for handle in self.handles:
            handle.settle()
        with omnigraph.open(self.place) as fresh:
            if branch not in living(fresh):
                return
            view = fresh.snapshot(branch)
            if view.commit.id not in self.shown:
                self.shown[view.commit.id] = content(view)
                self.made.append(view.commit.id)

    def branches(self) -> list[str]:
        return living(self.handles[0])

    def past(self, place: int) -> str:
        return self.made[-1 - place % len(self.made)]

    def head(self, branch: str) -> Any:
        return self.handles[0].snapshot(branch)

    # -- histories -------------------------------------------------------------------------------

    @rule(which=st.integers(0, 1), branch=BRANCHES, rows=ROWS, mode=MODES)
    def write(self, which: int, branch: str, rows: list[dict[str, Any]], mode: str) -> None:
        if branch in self.branches():
            fit = fitting(self.head(branch), rows)
            self.attempt(lambda: self.handles[which].load(fit, mode=mode, branch=branch))
            self.learn(branch)

    @rule(which=st.integers(0, 1), branch=BRANCHES, start=NAMES, end=NAMES)
    def connect(self, which: int, branch: str, start: str, end: str) -> None:
        if branch in self.branches() and "Knows" in self.head(branch).catalog.edges:
            edge = [{"edge": "Knows", "from": start, "to": end}]
            self.attempt(lambda: self.handles[which].load(edge, branch=branch))
            self.learn(branch)

    @rule(
        which=st.integers(0, 1),
        branch=BRANCHES,
        step=st.sampled_from(EVOLUTIONS),
        hard=st.booleans(),
    )
    def evolve(self, which: int, branch: str, step: str, hard: bool) -> None:
        if branch in self.branches():
            text = evolved(self.head(branch), step)
            graph = self.handles[which]
            self.attempt(
                lambda: graph.schema_apply(text, branch=branch, confirm=True, allow_data_loss=hard)
            )
            self.learn(branch)

    @rule(which=st.integers(0, 1), branch=BRANCHES, indexes=st.booleans())
    def optimize(self, which: int, branch: str, indexes: bool) -> None:
        if branch in self.branches():
            graph = self.handles[which]
            run = graph.build_indexes if indexes else graph.optimize
            before = content(self.head(branch))
            self.attempt(lambda: run(branch=branch))
            self.learn(branch)
            assert content(self.head(branch)) == before

    @rule(which=st.integers(0, 1), name=OTHERS, place=PLACES)
    def branch(self, which: int, name: str, place: int) -> None:
        graph, source = self.handles[which], self.past(place)
        if name in self.names:  # The branch that has it keeps it.
            assert refused(lambda: graph.branches.create(name, "main")) is ErrorKind.BRANCH_EXISTS
        elif self.attempt(lambda: graph.branches.create(name, source), taken=False):
            self.names[name] = graph.branches.show(name).incarnation

    @rule(which=st.integers(0, 1), name=OTHERS)
    def end_branch(self, which: int, name: str) -> None:
        graph = self.handles[which]
        if name in self.names:
            graph.branches.delete(name)
            del self.names[name]
        else:
            assert refused(lambda: graph.branches.delete(name)) is ErrorKind.BRANCH_NOT_FOUND

    @rule(which=st.integers(0, 1), name=OTHERS, new=OTHERS)
    def rename_branch(self, which: int, name: str, new: str) -> None:
        graph = self.handles[which]
        if name == new or name not in self.names:
            return
        if new in self.names:
            assert refused(lambda: graph.branches.rename(name, new)) is ErrorKind.BRANCH_EXISTS
        else:
            graph.branches.rename(name, new)
            self.names[new] = self.names.pop(name)

    @rule(name=OTHERS, lives=st.lists(st.booleans(), min_size=1, max_size=3), which=HANDLES)
    def come_back(self, name: str, lives: list[bool], which: list[int]) -> None:
        """A name is used again and again, by several; a cleanup follows some of its lives."""
        turns = cycle(self.handles[number] for number in which)
        for cleans in lives:
            if name in self.names:
                next(turns).branches.delete(name)
            graph = next(turns)
            self.names[name] = graph.branches.create(name, "main").incarnation
            if cleans:
                self.meanwhile(keep=9, gives_up=False)
        taken = refused(lambda: next(turns).branches.create(name, "main"))
        assert taken is ErrorKind.BRANCH_EXISTS

    @precondition(lambda self: not self.twigs)
    @rule(branch=BRANCHES, rows=ROWS)
    def many_branches(self, branch: str, rows: list[dict[str, Any]]) -> None:
        """Too many to compare pair by pair, of a stem that is gone; two of them go on
        by themselves."""
        if branch not in self.branches():
            return
        graph, self.twigs = self.handles[0], TWIGS

        def write(name: str) -> None:
            fit = fitting(self.head(name), rows)
            self.attempt(lambda: graph.load(fit, mode="merge", branch=name))
            self.learn(name)

        graph.branches.create("stem", branch)
        ends = ("twig0", f"twig{TWIGS - 1}")
        for names in (ends, [f"twig{number}" for number in range(1, TWIGS - 1)]):
            write("stem")
            for name in names:
                self.names[name] = graph.branches.create(name, "stem").incarnation
        graph.branches.delete("stem")
        for name in ends:
            write(name)

    @rule(branch=BRANCHES, reads=st.booleans(), rows=st.lists(ROWS, max_size=2))
    def hold(self, branch: str, reads: bool, rows: list[list[dict[str, Any]]]) -> None:
        """A reader looks at a branch, and stays; perhaps all of it is soon replaced and taken."""
        if branch not in self.branches() or len(self.held) == 3:
            return
        self.held.append(Held(self.place, branch, reads=reads))
        for some in rows:
            fit = fitting(self.head(branch), some)
            self.attempt(lambda f=fit: self.handles[0].load(f, mode="overwrite", branch=branch))
            self.learn(branch)
        if rows:
            self.meanwhile(keep=1, gives_up=False)

    @rule(which=st.integers(0, 1), name=st.sampled_from(["v1", "v2"]), place=PLACES)
    def tag(self, which: int, name: str, place: int) -> None:
        if name in self.tags:
            self.handles[which].tags.delete(name)
            del self.tags[name]
            return
        commit = self.past(place)
        if self.attempt(lambda: self.handles[which].tags.create(name, commit)):
            self.tags[name] = commit

    @rule(which=st.integers(0, 1), branch=BRANCHES, place=PLACES)
    def reset(self, which: int, branch: str, place: int) -> None:
        if branch in self.branches():
            self.attempt(lambda: self.handles[which].reset(self.past(place), branch=branch))
            self.learn(branch)

    @rule(which=st.integers(0, 1), branch=BRANCHES, place=PLACES)
    def revert(self, which: int, branch: str, place: int) -> None:
        if branch in self.branches():
            graph, commit = self.handles[which], self.past(place)
            self.attempt(lambda: graph.revert(commit, branch=branch, prefer="theirs"))
            self.learn(branch)

    @rule(which=st.integers(0, 1), name=OTHERS, into=BRANCHES)
    def merge(self, which: int, name: str, into: str) -> None:
        if {name, into} <= set(self.branches()):
            self.attempt(lambda: self.handles[which].merge(name, into=into, prefer="theirs"))
            self.learn(into)

    # -- misfortunes -----------------------------------------------------------------------------

    def command(self, kind: str, graph: Any, branch: str, data: st.DataObject) -> Callable[[], Any]:
        """Some command, to be run when somebody stands ready to disturb it."""
        if kind == "load":
            rows, mode = fitting(self.head(branch), data.draw(ROWS)), data.draw(MODES)
            return lambda: graph.load(rows, mode=mode, branch=branch)
        if kind == "schema":
            text = evolved(self.head(branch), data.draw(st.sampled_from(EVOLUTIONS)))
            return lambda: graph.schema_apply(text, branch=branch, confirm=True)
        commit, other = self.past(data.draw(PLACES)), data.draw(OTHERS)
        commands: dict[str, Callable[[], Any]] = {
            "optimize": lambda: graph.optimize(branch=branch),
            "index": lambda: graph.build_indexes(branch=branch),
            "merge": lambda: graph.merge(other, into=branch, prefer="theirs"),
            "reset": lambda: graph.reset(commit, branch=branch),
            "revert": lambda: graph.revert(commit, branch=branch, prefer="ours"),
            "create": lambda: graph.branches.create(other, commit),
            "delete": lambda: graph.branches.delete(other),
        }
        return commands[kind]

    @rule(branch=BRANCHES, kind=COMMANDS, point=STAGES, data=st.data())
    def killed(self, branch: str, kind: str, point: FailPoint, data: st.DataObject) -> None:
        if branch not in self.branches():
            return
        with omnigraph.open(self.place) as victim:
            run = self.command(kind, victim, branch, data)
            with armed(point, _die, times=None), suppress(_Killed):
                self.attempt(run)
        self.look_at_names(kind)
        self.learn(branch)

    @rule(
        which=st.integers(0, 1),
        branch=BRANCHES,
        kind=COMMANDS,
        point=STAGES,
        keep=st.integers(1, 3),
        gives_up=st.booleans(),
        data=st.data(),
    )
    def stalled(
        self,
        which: int,
        branch: str,
        kind: str,
        point: FailPoint,
        keep: int,
        gives_up: bool,
        data: st.DataObject,
    ) -> None:
        """A command stands still while somebody recovers and cleans up."""
        if branch in self.branches():
            run = self.command(kind, self.handles[which], branch, data)
            with armed(point, lambda: self.meanwhile(keep, gives_up)):
                self.attempt(run)
            self.look_at_names(kind)
            self.learn(branch)

    @rule(which=st.integers(0, 1), branch=BRANCHES, keep=st.integers(1, 3), gives_up=st.booleans())
    def stalled_bulk(self, which: int, branch: str, keep: int, gives_up: bool) -> None:
        """A long write is spared while it lives; given up it fails, and leaves nothing."""
        if branch in self.branches():
            graph, name = self.handles[which], f"bulk{next(self.bulks)}"
            done = self.attempt(
                lambda: bulk_load(graph, branch, name, lambda: self.meanwhile(keep, gives_up))
            )
            self.learn(branch)
            found = {row["id"] for row in content(self.head(branch))["Person"]}
            assert (name in found) == done
            assert done or gives_up

    def look_at_names(self, kind: str) -> None:
        """What became of a name whose maker or ender may have died."""
        if kind not in ("create", "delete"):
            return
        with omnigraph.open(self.place) as fresh:
            found = incarnations(fresh)
        for name in ("x", "y"):
            # It is as it was, or as the command wanted it.
            before, after = self.names.get(name), found.get(name)
            assert before == after or (kind == "create") == (before is None)
            self.names.pop(name, None)
            if after is not None:
                self.names[name] = after

    def meanwhile(self, keep: int, gives_up: bool) -> None:
        with omnigraph.open(self.place) as other:
            if gives_up:
                recover(other._repository, lease_s=0)
            cleanup(other._repository, Policy(keep=keep), confirm=True)

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
        pairs = self.pairs()
        with omnigraph.open(self.place) as fresh:
            pairs = [pair for pair in pairs if can_merge(fresh, *pair)]
        report = cleanup(handle._repository, policy, confirm=True, lease_s=lease_s)
        assert report.errors == ()
        with omnigraph.open(self.place) as fresh:
            assert [pair for pair in pairs if not can_merge(fresh, *pair)] == []
            assert {fault.fault for fault in name_faults(fresh._repository)} <= {
                NameFaultKind.UNFINISHED
            }
            again = cleanup(fresh._repository, policy, lease_s=lease_s)
            assert again.places == (), again.to_dict()
            for name in living(fresh):
                for commit in line(fresh, name, keep):
                    if commit.id in self.shown and commit.id not in self.gone | self.given_up:
                        assert content(fresh.at(f"commit:{commit.id}")) == self.shown[commit.id]

    @rule(which=st.integers(0, 1), keep=st.integers(1, 3), point=st.sampled_from(CLEANUPS))
    def killed_cleanup(self, which: int, keep: int, point: FailPoint) -> None:
        with omnigraph.open(self.place) as fresh:
            kept = [c.id for n in living(fresh) for c in line(fresh, n, keep)]
        self.given_up |= set(self.made) - set(kept)
        with armed(point, _die, skip=1 if "between" in point else 0), suppress(_Killed):
            cleanup(self.handles[which]._repository, Policy(keep=keep), confirm=True)

    def pairs(self) -> list[tuple[str, str]]:
        """Some that differ, and those that have most to compare."""
        ends = [name for name in ("main", "x", "y") if name == "main" or name in self.names]
        chosen = list(pairwise(ends))
        return [*chosen, ("twig0", f"twig{TWIGS - 1}")] if self.twigs else chosen

    # -- laws ------------------------------------------------------------------------------------

    @precondition(lambda self: hasattr(self, "handles"))
    @invariant()
    def everything_is_whole_or_gone(self) -> None:
        with omnigraph.open(self.place) as fresh:
            assert incarnations(fresh) == self.names
            for name in living(fresh):
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
                    self.found_by_its_moment(fresh, commit)

    def found_by_its_moment(self, fresh: omnigraph.Graph, commit_id: str) -> None:
        """A view that can be read is what its branch showed when it was made."""
        commit = fresh.commit(commit_id)
        paths = {f"_branches/{made}": name for name, made in self.names.items()}
        name = "main" if commit.path == "__manifest" else paths.get(commit.path)
        if name is not None:
            at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=commit.created_at_us)
            assert fresh.snapshot(name, at=at).commit.id == commit_id

    @precondition(lambda self: hasattr(self, "handles"))
    @invariant()
    def who_holds_a_state_is_told_the_truth(self) -> None:
        for held in self.held:
            held.look_again()

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

    def attempt(self, command: Any, *, taken: bool = True) -> bool:
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
        except omnigraph.AlreadyExistsError:
            assert taken
            return False
        except omnigraph.MergeConflictError:
            return False
        return True


TestCleanupKeepsItsPromise = CleanupKeepsItsPromise.TestCase
TestCleanupKeepsItsPromise.settings = settings(
    settings.get_profile(settings.get_current_profile_name()),
    max_examples=examples(6),
    stateful_step_count=16,
)
