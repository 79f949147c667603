"""The one dispatcher: brings a branch of an older format to the newest before it is written.

    publish, restate -> [bring up to date] -> stage -> commit, with the new stamp

Called with every attempt to publish, right before anything is staged: a write that is refused,
that has nothing to do or that is a dry run changes nothing, and neither does a process that only
reads. On a branch of the newest format it compares two numbers. The stamp itself is no step: it is
part of the version that the write publishes (ADR 0018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import InternalError, OmnigraphError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.mirror import mirror_main
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN
from omnigraph.manifest.store import Head


def bring_up_to_date(repository: Repository, branch: Branch, head: Head) -> None:
    """Take the steps that a branch lacks. ``head`` is the version that is to be replaced.

    If another write was published since, the caller loses its race and comes again with the newer
    head.
    """
    if head.snapshot.format == graph_format.FORMAT:
        return
    # A handle that slept would otherwise repeat steps that others have done, on what it remembers.
    newest = branch.refresh()
    for step in steps_between(MIGRATIONS, newest.snapshot.format, graph_format.FORMAT):
        hit(FailPoint.MIGRATE_BEFORE_STEP)
        step.run(repository, branch)
        hit(FailPoint.MIGRATE_AFTER_STEP)


def steps_between(migrations: Sequence[Migration], start: int, goal: int) -> list[Migration]:
    """The steps from one format to another, in order; ``InternalError`` if one is missing."""
    found: list[Migration] = []
    at = start
    while at < goal:
        leading = [m for m in migrations if m.from_format == at]
        if len(leading) != 1 or not at < leading[0].to_format <= goal:
            raise InternalError(
                f"no single way from format {at} towards format {goal}",
                details={"from": start, "to": goal},
            )
        found.append(leading[0])
        at = leading[0].to_format
    return found


# -- steps -----------------------------------------------------------------------------------------
# Every step from one format to the next, as data.
#
# A step changes what lies beside the manifests; the stamp becomes visible with the version that is
# published after it. So a step runs again if its writer died, lost the race or was refused, and it
# may run in several processes at once, while writers of the older release publish. Each one
#
# - can be repeated, in part or as a whole, and then finds nothing to do;
# - changes no answer and nothing that the older release needs: that one goes on working until the
#   stamp is there;
# - looks at the branch as it is when it runs, and leaves what others put there;
# - is never changed once it was released. A correction is a new step.


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step."""

    from_format: int
    to_format: int
    name: str
    """What it does, in a few words."""
    run: Callable[[Repository, Branch], None]
    """Do it for one branch, the one that is about to be written and stamped."""


def _mirror(repository: Repository, branch: Branch) -> None:
    # Only main is mirrored: a branch of format 1 is one of format 2 as it is. A mirror may lag, so
    # one that cannot be made does not stop a write; the next mirror tries again.
    if branch.name == MAIN:
        with suppress(OmnigraphError):
            mirror_main(repository)


def _nothing(repository: Repository, branch: Branch) -> None:
    # What older versions of a manifest say is the same in format 3: each makes one commit.
    pass


MIGRATIONS: tuple[Migration, ...] = (
    Migration(from_format=1, to_format=2, name="mirror the tables of main", run=_mirror),
    Migration(from_format=2, to_format=3, name="nothing beside the manifests", run=_nothing),
)
"""In order, without a hole, from the oldest format that is read to the one that is written."""
