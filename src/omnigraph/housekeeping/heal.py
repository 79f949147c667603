"""Finishing what a published write has left: the first write of a handle does it for all.

    first write -> acknowledged -> [heal] -> intents of published writes are dropped

Runs off the acknowledgement path, once for each handle that writes: a reader never does it, and
neither do the writes that follow. It decides nothing. An intent whose write was not published is
left for ``upkeep/recovery.py``; one that cannot be read is left and told there.
"""

from __future__ import annotations

from contextlib import suppress

from omnigraph.errors import OmnigraphError
from omnigraph.housekeeping.audit import Recovered, RecoveryKind, record_recoveries
from omnigraph.housekeeping.intents import Intent, published_as, read_intents
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit

HEAL_AFTER_S = 60


def heal_once(repository: Repository) -> None:
    """Drop what published writes have left, unless this handle did so before."""
    if not repository.background.take_turn("heal"):
        return
    # A failure leaves everything as it was; the next handle, or recovery itself, will see it.
    with suppress(OmnigraphError):
        heal(repository)


def heal(repository: Repository) -> list[Recovered]:
    """Drop the intents of writes that were published, and write that down."""
    done: list[tuple[Intent, Recovered]] = []
    # A younger one may belong to a write that is about to drop it itself.
    until_us = repository.clock.now_us() - HEAL_AFTER_S * 1_000_000
    for intent in read_intents(repository.objects):
        if not isinstance(intent, Intent) or intent.renewed_us > until_us:
            continue
        with suppress(OmnigraphError):  # Of a branch that is gone, for example.
            head = repository.manifest(intent.manifest_path).head().snapshot
            commit = published_as(repository.lineage, head, intent)
            if commit is not None:
                done.append((intent, rolled_forward(repository, intent, commit)))
    record_recoveries(repository, [row for _, row in done])
    repository.background.discard([intent.name for intent, _ in done])
    return [row for _, row in done]


def rolled_forward(repository: Repository, intent: Intent, commit: GraphCommit) -> Recovered:
    """The row of a write that was published."""
    return Recovered(
        operation_id=intent.operation_id,
        recovery_kind=RecoveryKind.ROLLED_FORWARD,
        operation_kind=intent.kind,
        recovery_for_actor=intent.actor,
        branch=commit.branch,
        graph_commit_id=commit.id,
        at=repository.clock.now_us(),
        outcome="it was published; its intent was dropped",
    )
