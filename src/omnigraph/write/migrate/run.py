"""The one dispatcher: brings a branch of an older format to the newest before it is written.

    publish, restate -> [bring up to date] -> stage -> commit, with the new stamp

Called with every attempt to publish, right before anything is staged: a write that is refused,
that has nothing to do or that is a dry run changes nothing, and neither does a process that only
reads. On a branch of the newest format it compares two numbers. The stamp itself is no step: it is
part of the version that the write publishes (ADR 0018).
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors import InternalError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.store import Head
from omnigraph.write.migrate.steps import MIGRATIONS, Migration


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
