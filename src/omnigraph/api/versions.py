"""What a graph has because it is versioned: states, branches, differences, merges, history.

    graph -> [versions] -> branch/*, manifest/lineage, manifest/targets

The part of the Python API that ``Graph`` inherits; it delegates, and imports, like the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.api.view import SnapshotView
from omnigraph.branch import control
from omnigraph.branch.control import BranchInfo
from omnigraph.branch.history import branch_infos
from omnigraph.branch.tags import Tag, create_tag, delete_tag, list_tags, show_tag
from omnigraph.choices import GranularityWord, PreferWord
from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot
from omnigraph.manifest.targets import HEAD, Target, find_commit, resolve
from omnigraph.results import Commits
from omnigraph.tabular import Tabular

if TYPE_CHECKING:
    from omnigraph.api.changes import Changes
    from omnigraph.api.upkeep import Upkeep
    from omnigraph.branch.diff import Diff
    from omnigraph.branch.history import LoggedCommit
    from omnigraph.branch.merge.conflicts import MergeResult
    from omnigraph.branch.merge.resolve import Resolution
    from omnigraph.query.engine import QueryEngine


class Versions(ABC):
    """The versions of an open graph."""

    @property
    @abstractmethod
    def _repository(self) -> Repository:
        """The open graph."""

    _queries: Callable[[], QueryEngine]
    """What runs its queries."""
    _last_shown: SnapshotView | None = None
    """The state that was asked for last; it never changes, so it is shown again."""

    @property
    def branches(self) -> Branches:
        """The branches: list, show, create, delete, rename, describe."""
        return Branches(lambda: self._repository)

    @property
    def tags(self) -> Tags:
        """The tags: list, show, create, delete."""
        return Tags(lambda: self._repository)

    @cached_property
    def upkeep(self) -> Upkeep:
        """Upkeep of the graph: status, check, recovery, cleanup."""
        from omnigraph.api.upkeep import Upkeep

        return Upkeep(lambda: self._repository)

    @cached_property
    def changes(self) -> Changes:
        """The change feed: by commit, by polls, as an iterator, from a baseline."""
        from omnigraph.api.changes import Changes

        return Changes(lambda: self._repository)

    def snapshot(
        self,
        branch: str | None = None,
        *,
        commit: str | None = None,
        tag: str | None = None,
        version: int | None = None,
        at: str | datetime | None = None,
    ) -> SnapshotView:
        """A state of the graph: the newest of a branch (main), or one of its past.

        By ``commit`` (an id, or its beginning), by ``tag``, by the ``version`` of the branch's
        manifest, or as it was at a moment: ``at="2026-11-15T10:00:00Z"``. It is fixed from now on
        whatever others publish, and is read with the schema that it had.
        """
        if commit is None and tag is None and version is None and at is None:
            # What nearly every read asks for, and all that it has to find out.
            return self._shown(self._repository.head(MAIN if branch is None else branch).snapshot)
        clock = self._repository.clock
        target = Target.of(
            branch=branch, commit=commit, tag=tag, version=version, at=at, clock=clock
        )
        return self._view(target)

    def at(self, target: str) -> SnapshotView:
        """A state by one text: ``main``, ``v1.0`` (a tag), ``01JQ…`` (a commit or its beginning),
        ``main@12`` (a manifest version), ``main@2026-11-15T10:00Z`` or ``main@yesterday`` (a
        moment), ``main~2`` or ``HEAD~2`` (two commits before the newest)."""
        return self._view(Target.parse(target))

    def _view(self, target: Target) -> SnapshotView:
        return self._shown(resolve(self._repository, target))

    def _shown(self, snapshot: Snapshot) -> SnapshotView:
        shown = self._last_shown
        if shown is None or not shown.shows(snapshot):
            shown = SnapshotView(self._repository, snapshot, self._queries)
            self._last_shown = shown
        return shown

    def diff(self, before: str, after: str = MAIN) -> Diff:
        """What changed from one state to another, entity by entity; both as texts of ``at``."""
        from omnigraph.branch.diff import Diff

        states = [resolve(self._repository, Target.parse(text)) for text in (before, after)]
        return Diff(self._repository, *states)

    def merge(
        self,
        source: str,
        *,
        into: str = MAIN,
        granularity: GranularityWord = "property",
        prefer: PreferWord | None = None,
        resolutions: Sequence[Resolution] | bytes | None = None,
        dry_run: bool = False,
        delete_branch: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Bring what ``source`` changed into a branch, as one commit with two parents or not at
        all. ``source`` is a branch, or any text of ``at``.

        Two sides may change different properties of one entity; with ``granularity="row"`` they may
        not change the same entity. Raises ``MergeConflictError`` with all conflicts that are left
        open by ``resolutions`` (``omnigraph.Resolution``, or a resolution file's bytes) and then by
        ``prefer``, "ours" or "theirs". A dry run returns them and publishes nothing. With
        ``delete_branch`` the source is deleted if it was not written to meanwhile.
        """
        from omnigraph.branch.merge.three_way import merge

        result = merge(
            self._repository,
            source,
            into=into,
            granularity=granularity,
            prefer=prefer,
            resolutions=resolutions,
            dry_run=dry_run,
            actor=actor,
            message=message,
        )
        return self._without_source(result) if delete_branch and not dry_run else result

    def _without_source(self, result: MergeResult) -> MergeResult:
        """The merge is published: that its source could not be deleted is reported, not raised."""
        try:
            self.branches.delete(result.source, if_commit=result.source_commit)
        except OmnigraphError as e:
            return replace(result, branch_deleted=False, branch_delete_error=e.message)
        return replace(result, branch_deleted=True)

    def revert(
        self,
        commit: str,
        *,
        branch: str = MAIN,
        granularity: GranularityWord = "property",
        prefer: PreferWord | None = None,
        resolutions: Sequence[Resolution] | bytes | None = None,
        dry_run: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> MergeResult:
        """Take one commit back, as a new commit; what was changed since is a conflict, decided
        as in ``merge``. A merge commit goes back to its first parent."""
        from omnigraph.branch.merge.revert import revert

        return revert(
            self._repository,
            commit,
            branch=branch,
            granularity=granularity,
            prefer=prefer,
            resolutions=resolutions,
            dry_run=dry_run,
            actor=actor,
            message=message,
        )

    def reset(
        self,
        target: str,
        *,
        branch: str = MAIN,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
    ) -> GraphCommit | None:
        """Make a branch show an earlier state again, and leave its later commits behind.

        Returns the new commit, or None if the branch is there already. Commits that are left behind
        can still be read by their ids until they are reclaimed; tag what must be kept.
        """
        from omnigraph.branch.merge.revert import reset_branch

        state = resolve(self._repository, Target.parse(target))
        return reset_branch(
            self._repository,
            branch,
            state,
            actor=actor,
            message=message,
            expected_commit=if_commit,
        ).commit

    def commits(
        self,
        *,
        branch: str = MAIN,
        limit: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        type: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        first_parent: bool = False,
        not_in: str | None = None,
    ) -> Commits:
        """Commits that went into a branch, newest first, also those of branches it was made from
        and those that were merged; with ``first_parent`` its own line only.

        ``type`` keeps commits that changed this node or edge type; ``since`` and ``until`` are
        moments, both included, also in words such as ``yesterday``. ``not_in`` leaves out what went
        into another state as well, a text of ``at``. One manifest is read per fifty commits.
        """
        from omnigraph.branch.history import CommitFilter

        if first_parent and not_in is not None:
            raise UsageError("first_parent and not_in cannot be combined")
        head = self._repository.head(branch).snapshot
        wanted = CommitFilter.of(
            limit=limit,
            actor=actor,
            kind=kind,
            type_name=type,
            since=since,
            until=until,
            clock=self._repository.clock,
        )
        lineage = self._repository.lineage
        known = [] if not_in is None else [resolve(self._repository, Target.parse(not_in))]
        history = lineage.first_parents(head) if first_parent else lineage.beyond([head], known)
        return Commits(list(wanted.select(history)))

    def log(
        self, *, branch: str | None = None, limit: int | None = None, first_parent: bool = False
    ) -> tuple[LoggedCommit, ...]:
        """The commit graph of a branch, or of all branches: each commit before its parents, with
        the branches whose newest commit it is, and its tags."""
        from omnigraph.branch.history import read_log

        if first_parent and branch is None:
            raise UsageError("first_parent follows one branch", hint="name the branch")
        return read_log(self._repository, branch=branch, limit=limit, first_parent=first_parent)

    def commit(self, commit_id: str, *, branch: str | None = None) -> GraphCommit:
        """One commit by id, or by the beginning of one if no other begins so; ``HEAD`` and
        ``main~2`` are counted from the newest.

        Looked for on ``branch``, else on main and then on all others.
        """
        named = str(commit_id).strip()
        if branch is None and (named.startswith(HEAD) or "~" in named):
            return resolve(self._repository, Target.parse(named)).head
        return find_commit(self._repository, Target(branch=branch, commit=str(commit_id)))


# -- branches --------------------------------------------------------------------------------------
# Branches and tags as people use them: ``graph.branches`` and ``graph.tags``.
#
# graph -> [branches, tags] -> branch/control, branch/tags


Opened = Callable[[], Repository]


_BRANCH_COLUMNS = pa.schema(
    [
        ("name", pa.string()),
        ("graph_commit_id", pa.string()),
        ("graph_manifest_version", pa.int64()),
        ("parent", pa.string()),
        ("fork_commit_id", pa.string()),
        ("created_at", pa.timestamp("us", tz="UTC")),
        ("actor_id", pa.string()),
        ("description", pa.string()),
    ]
)


class Branches(Tabular):
    """The branches of a graph. Making, ending and renaming one costs the same at any size."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        return name in self.list()

    def __repr__(self) -> str:
        return f"<Branches {', '.join(self.list())}>"

    def to_arrow(self) -> pa.Table:
        """One row a branch; a few requests for each of them."""
        rows = [info.to_dict() for info in self.details()]
        return pa.Table.from_pylist(rows, schema=_BRANCH_COLUMNS)

    def _head(self, rows_max: int) -> tuple[pa.Table, int]:
        table = self.to_arrow()
        shown = table.select(["name", "graph_commit_id", "parent", "actor_id", "description"])
        shown = shown.rename_columns(["branch", "newest commit", "parent", "actor", "description"])
        return shown.slice(0, rows_max), table.num_rows

    def list(self) -> list[str]:
        """All names, main first. One request, whatever their number."""
        return control.list_branches(self._opened())

    def details(self) -> tuple[BranchInfo, ...]:
        """What is known about every branch, main first; a few requests for each of them."""
        return tuple(branch_infos(self._opened()))

    def show(self, name: str) -> BranchInfo:
        """What is known about a branch."""
        return control.branch_info(self._opened(), name)

    def create(
        self,
        name: str,
        source: str = MAIN,
        *,
        description: str | None = None,
        actor: str | None = None,
    ) -> BranchInfo:
        """Make a branch of what ``source`` shows: a branch, a tag, a commit (``Graph.at``)."""
        repository = self._opened()
        start = resolve(repository, Target.parse(source))
        return control.create_branch(repository, name, start, description=description, actor=actor)

    def delete(self, name: str, *, if_commit: str | None = None) -> BranchInfo:
        """End a branch; with ``if_commit`` only if that is its newest commit.

        Branches that were made from it, and commits that were merged, keep all they need.
        """
        return control.delete_branch(self._opened(), name, expected_commit=if_commit)

    def rename(self, name: str, new_name: str) -> BranchInfo:
        """Give a branch another name. It stays the same branch."""
        return control.rename_branch(self._opened(), name, new_name)

    def describe(self, name: str, description: str | None) -> BranchInfo:
        """Say what a branch is for; None takes that back."""
        return control.describe_branch(self._opened(), name, description)


class Tags:
    """The tags of a graph: names for commits, which keep them from being reclaimed."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __iter__(self) -> Iterator[Tag]:
        return iter(self.list())

    def list(self) -> list[Tag]:
        """All tags, by name."""
        return list_tags(self._opened())

    def show(self, name: str) -> Tag:
        """One tag."""
        return show_tag(self._opened(), name)

    def create(
        self, name: str, target: str = MAIN, *, actor: str | None = None, message: str | None = None
    ) -> Tag:
        """Name the commit that ``target`` shows: a branch, a tag, a commit (``Graph.at``)."""
        repository = self._opened()
        snapshot = resolve(repository, Target.parse(target))
        return create_tag(repository, name, snapshot, actor=actor, message=message)

    def delete(self, name: str) -> Tag:
        """Take a name away; the commit stays as long as anything else leads to it."""
        return delete_tag(self._opened(), name)
