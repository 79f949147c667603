"""Branches and tags as people use them: ``graph.branches`` and ``graph.tags``.

graph -> [branches, tags] -> branch/control, branch/tags
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.branch import control
from omnigraph.branch.control import BranchInfo
from omnigraph.branch.history import branch_infos
from omnigraph.branch.tags import Tag, create_tag, delete_tag, list_tags, show_tag
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.manifest.targets import Target, resolve

Opened = Callable[[], Repository]


class Branches:
    """The branches of a graph. Making, ending and renaming one costs the same at any size."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    def __iter__(self) -> Iterator[str]:
        return iter(self.list())

    def __contains__(self, name: object) -> bool:
        return name in self.list()

    def __repr__(self) -> str:
        return f"<Branches {', '.join(self.list())}>"

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
