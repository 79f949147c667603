"""A branch that a command makes for what it is going to write, and takes back if that fails.

load --from -> [new_branch] -> graph.load
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ErrorKind,
    OmnigraphError,
    UsageError,
)

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.graph import Graph


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Where a command writes."""

    branch: str
    base: str | None = None
    """The branch it was made from, if it was made by this command."""


@contextmanager
def branch_for(
    graph: Graph, branch: str, start: str | None, *, actor: str | None, dry_run: bool
) -> Generator[Written]:
    """The branch to write to, made from ``start`` if there is none of this name.

    When the block fails, a branch that was made here goes again, unless somebody has written to it.
    """
    made = None if start is None else _made(graph, branch.strip(), start, actor, dry_run=dry_run)
    if made is None:
        yield Written(branch=branch)
        return
    if dry_run:
        yield Written(branch=made.name)
        return
    try:
        yield Written(branch=made.name, base=made.parent)
    except CommitUnknownError:
        raise  # The data may be there: nothing is deleted.
    except BaseException:
        with suppress(OmnigraphError):
            graph.branches.delete(made.name, if_commit=made.head.id)
        raise


def _made(
    graph: Graph, branch: str, start: str, actor: str | None, *, dry_run: bool
) -> BranchInfo | None:
    """The new branch; in a dry run the one that it would start from. None if it exists."""
    view = graph.at(start)  # A wrong target is told in any case.
    if branch in graph.branches:
        return None
    if dry_run:
        base = graph.branches.show(view.branch)
        if base.head.id != view.commit.id:
            raise UsageError(
                f"a dry run cannot check against {start}: no branch shows it",
                hint="make the branch first: omnigraph branch create",
            )
        return base
    try:
        return graph.branches.create(branch, start, actor=actor)
    except AlreadyExistsError as e:
        if e.kind is not ErrorKind.BRANCH_EXISTS:
            raise
        return None  # Somebody else made it just now.
