"""The intents of writes: what is running, and what a process that died has left.

    plan -> intent object -> [intents] -> recovery, cleanup, status

An intent is the plan of a write as an object, from before its first file until after its commit.
Nothing that is published depends on it. A write that takes long renews it; one that was not renewed
for the length of a lease is taken for dead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any

from omnigraph.errors import OmnigraphError
from omnigraph.housekeeping.audit import Recovered, RecoveryKind, record_recoveries
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.refs import branch_path
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN_PATH, GraphCommit, ManifestPlace, Snapshot
from omnigraph.storage.objects import Objects, StoredObject

INTENT_FORMAT = 1
"""Of the intent object. One of a higher number is not understood, and is not guessed at."""
PREFIX = "__recovery"
QUARANTINE = f"{PREFIX}/unreadable"
LEASE_S = 3600
"""A write that was not heard of for so long is taken for dead."""
RENEW_S = 300
INTENT_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A write that runs, or that died."""

    name: str
    """Of the object."""
    operation_id: str
    kind: str
    branch: str
    manifest_path: str
    actor: str | None
    message: str | None
    base_manifest_version: int
    tables: tuple[str, ...]
    """Keys of the tables it changes; a long job does not know them at first."""
    long: bool
    renewed_us: int
    """When it was last heard of, by the clock of the store."""

    @property
    def began_us(self) -> int:
        """When the write began, by the clock of its own machine: a ULID begins with its time."""
        digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
        try:
            milliseconds = 0
            for character in self.operation_id[:10].upper():
                milliseconds = milliseconds * 32 + digits.index(character)
        except ValueError:
            return 0
        return milliseconds * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableIntent:
    """An object that should be an intent and is none, or that the store does not hand out."""

    name: str
    reason: str
    renewed_us: int
    withheld: bool = False
    """The store did not hand it out: its content is not known."""


def intent_name(operation_id: str) -> str:
    """The object that holds a write's plan while it runs."""
    return f"{PREFIX}/{operation_id}.json"


def read_intents(objects: Objects) -> Iterator[Intent | UnreadableIntent]:
    """All intents, by id. Objects that vanish meanwhile are left out.

    One that is damaged, or that the store does not hand out, is reported and blocks nothing; a
    listing that fails is an error.
    """
    found = [e for e in objects.entries(PREFIX) if not e.name.startswith(f"{QUARANTINE}/")]
    for entry in sorted(found, key=lambda e: e.name):
        try:
            if entry.size > INTENT_BYTES_MAX:
                raise ValueError(f"it has {entry.size} bytes")
            content = objects.get(entry.name)
            if content is not None:
                yield _decode(content, entry)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            reason = f"{type(e).__name__}: {e}"
            yield UnreadableIntent(name=entry.name, reason=reason, renewed_us=entry.modified_us)
        except OmnigraphError as e:
            yield UnreadableIntent(
                name=entry.name, reason=e.message, renewed_us=entry.modified_us, withheld=True
            )


def _decode(content: bytes, entry: StoredObject) -> Intent:
    body: dict[str, Any] = json.loads(content)
    if body.get("format", INTENT_FORMAT) != INTENT_FORMAT:
        raise ValueError(f"it has format {body['format']}, of another release of omnigraph")
    operation_id = body["operation_id"]
    if entry.name != intent_name(operation_id):
        raise ValueError(f"it is the intent of {operation_id}")
    path = str(body.get("manifest_path") or MAIN_PATH)
    if path != MAIN_PATH and path != branch_path(path.rpartition("/")[2]):
        raise ValueError(f"no branch is at {path}")
    return Intent(
        name=entry.name,
        operation_id=operation_id,
        kind=str(body["kind"]),
        branch=str(body["branch"]),
        manifest_path=path,
        actor=body.get("actor"),
        message=body.get("message"),
        base_manifest_version=int(body["base_manifest_version"]),
        tables=tuple(str(table["table_key"]) for table in body["tables"]),
        long=bool(body.get("long", False)),
        renewed_us=entry.modified_us,
    )


def published_as(lineage: Lineage, head: Snapshot, intent: Intent) -> GraphCommit | None:
    """The commit of a write, if it was published, also if the branch was set back since."""
    base, state = intent.base_manifest_version, head
    while True:
        for commit in lineage.first_parents(state):
            if commit.id == intent.operation_id:
                return commit
            if commit.path != head.path or commit.manifest_version <= base:
                break
        if state.rewound_at - 1 <= base:
            return None
        before = lineage.if_kept(ManifestPlace(path=head.path, version=state.rewound_at - 1))
        if before is None:
            return None  # What was left behind is gone; the commit with it, if there was one.
        state = before


class Lease:
    """Says of a long write, again and again, that it is running."""

    def __init__(self, objects: Objects, operation_id: str, *, renew_s: float = RENEW_S) -> None:
        self._objects = objects
        self._name = intent_name(operation_id)
        self._renew_s = renew_s
        self._ended = Event()
        self._thread: Thread | None = None
        self._content = b""
        self._lock = Lock()  # What is said later is said last.

    def hold(self, content: bytes) -> None:
        """Write the intent now, and renew it until ``end``."""
        self.renew(self._name, content)
        if self._thread is None:
            self._thread = Thread(target=self._renew, name="omnigraph-lease", daemon=True)
            self._thread.start()

    def renew(self, name: str, content: bytes) -> None:
        """Say more in it, now and from now on."""
        with self._lock:
            self._content = content
            self._objects.put(name, content)

    def end(self) -> None:
        """Renew it no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _renew(self) -> None:
        while not self._ended.wait(self._renew_s):
            # The next try comes long before the lease runs out.
            with self._lock, suppress(OmnigraphError):
                self._objects.put(self._name, self._content)


# -- finish ----------------------------------------------------------------------------------------
# Finishing what a published write has left: the first write of a handle does it for all.
#
#     first write -> acknowledged -> [finish] -> intents of published writes are dropped
#
# Runs off the acknowledgement path, once for each handle that writes: a reader never does it, and
# neither do the writes that follow. It decides nothing. An intent whose write was not published is
# left for ``upkeep/recovery.py``; one that cannot be read is left and reported there.


FINISH_AFTER_S = 60


def finish_published_once(repository: Repository) -> None:
    """Drop what published writes have left, unless this handle did so before."""
    if not repository.background.take_turn("finish"):
        return
    # A failure leaves everything as it was; the next handle, or recovery itself, will see it.
    with suppress(OmnigraphError):
        finish_published(repository)


def finish_published(repository: Repository) -> list[Recovered]:
    """Drop the intents of writes that were published, and write that down."""
    done: list[tuple[Intent, Recovered]] = []
    # A younger one may belong to a write that is about to drop it itself.
    until_us = repository.clock.now_us() - FINISH_AFTER_S * 1_000_000
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
