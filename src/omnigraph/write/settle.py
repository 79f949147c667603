"""Phase D: housekeeping after a write was acknowledged.

Nothing here can lose or change data, so failures are swallowed: a hint that lags costs a reader one
listing, an intent that stays is found by recovery, which sees that its commit is in the lineage.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from omnigraph.errors import OmnigraphError
from omnigraph.failpoints import FailPoint, hit
from omnigraph.manifest.repository import Branch, Repository
from omnigraph.write.heal import heal_once
from omnigraph.write.intents import intent_name


def settle(
    repository: Repository, branch: Branch, operation_id: str, leftovers: Sequence[str]
) -> None:
    """Start the housekeeping of one published write."""
    version = branch.head.snapshot.version
    gone = [intent_name(operation_id), *leftovers]
    repository.later(lambda: _settle(repository, branch, version, gone))


def _settle(repository: Repository, branch: Branch, version: int, gone: Sequence[str]) -> None:
    hit(FailPoint.SETTLE_BEFORE_HINT)
    # A later write of this process will say more; let it.
    if branch.head.snapshot.version == version:
        with suppress(OmnigraphError):
            branch.store.write_hint(version)
    hit(FailPoint.SETTLE_BEFORE_INTENT_DROP)
    repository.discard(gone)
    heal_once(repository)
