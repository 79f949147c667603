"""Every step from one format to the next, as data.

A step changes what lies beside the manifests; the stamp becomes visible with the version that is
published after it. So a step runs again if its writer died, lost the race or was refused, and it
may run in several processes at once, while writers of the older release publish. Each one

- can be repeated, in part or as a whole, and then finds nothing to do;
- changes no answer and nothing that the older release needs: that one goes on working until the
  stamp is there;
- looks at the branch as it is when it runs, and leaves what others put there;
- is never changed once it was released. A correction is a new step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from omnigraph.errors import OmnigraphError
from omnigraph.housekeeping.mirror import mirror_main
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN


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


MIGRATIONS: tuple[Migration, ...] = (
    Migration(from_format=1, to_format=2, name="mirror the tables of main", run=_mirror),
)
"""In order, without a hole, from the oldest format that is read to the one that is written."""
