"""Phase D: housekeeping after a write was acknowledged.

    publish -> acknowledged -> [hint, intent]; now and then, and at last: [mirror, history]

Nothing here can lose or change data, so failures are swallowed: a hint that lags costs a reader one
listing, a mirror that lags shows other programs an earlier state, an intent that stays is found by
recovery, which sees that its commit is in the lineage.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.housekeeping.heal import heal_once
from omnigraph.housekeeping.mirror import mirror_main
from omnigraph.housekeeping.projection import is_due, project
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, Snapshot


def settle(repository: Repository, branch: Branch, shown: Snapshot, gone: Sequence[str]) -> None:
    """Start the housekeeping of one published write; ``gone`` are objects that have served."""
    repository.background.before_close(branch.name, lambda: tell_others(repository, branch))
    repository.background.later(lambda: _settle(repository, branch, shown, gone))


def tell_others(repository: Repository, branch: Branch) -> None:
    """Bring up to date what other programs see of a branch: its history, and main's tables."""
    hit(FailPoint.SETTLE_BEFORE_MIRROR)
    with suppress(OmnigraphError):
        project(repository, branch.head.snapshot)
    if branch.name == MAIN:
        with suppress(OmnigraphError):
            mirror_main(repository)


def _settle(repository: Repository, branch: Branch, shown: Snapshot, gone: Sequence[str]) -> None:
    hit(FailPoint.SETTLE_BEFORE_HINT)
    # A later write of this process will say more; let it.
    if branch.head.snapshot.version == shown.version:
        with suppress(OmnigraphError):
            branch.store.write_hint(shown.version)
    hit(FailPoint.SETTLE_BEFORE_INTENT_DROP)
    repository.background.discard(gone)
    heal_once(repository)
    if is_due(shown):
        tell_others(repository, branch)
