"""The publish plan: a write's complete intent as one printable, serialisable value.

    delta -> validate -> [plan] -> stage -> publish

Every kind of write lowers to a plan, and the machine in ``publish`` is the only one that carries
plans out. The plan is also the intent object of phase A.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from omnigraph.errors import ConflictError, ErrorKind, UsageError
from omnigraph.housekeeping.intents import INTENT_FORMAT
from omnigraph.manifest.snapshot import Snapshot, TablePin

ACTOR_LENGTH_MAX = 256
MESSAGE_LENGTH_MAX = 4096


def check_lineage_text(actor: object, message: object) -> None:
    """Refuse an actor or message that could not be stored and read back in the lineage."""
    for what, text, length_max in (
        ("actor", actor, ACTOR_LENGTH_MAX),
        ("message", message, MESSAGE_LENGTH_MAX),
    ):
        if text is None:
            continue
        if not isinstance(text, str) or not text.strip():
            raise UsageError(f"the {what} is not a text: {text!r}", hint="leave it out, or name it")
        if len(text) > length_max:
            raise UsageError(
                f"the {what} has {len(text)} characters", hint=f"at most {length_max} are kept"
            )
        if any("\ud800" <= c <= "\udfff" for c in text):
            raise UsageError(f"the {what} is not valid Unicode: {text!r}")


class Action(StrEnum):
    """What happens to one table."""

    CREATE = "create"
    APPEND = "append"
    UPSERT = "upsert"
    REPLACE = "replace"
    DELETE = "delete"
    ADOPT = "adopt"
    REWORK = "rework"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAction:
    """The planned change of one table."""

    table_key: str
    path: str
    actions: tuple[Action, ...]
    base_version: int | None
    """Version the change is staged on; None creates the table."""
    rows: int
    """Row images written."""
    removed: int
    """Ids deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableUnchanged:
    """Expect a table to be exactly what it was when the plan was made."""

    table_key: str
    pin: TablePin | None

    def check(self, snapshot: Snapshot) -> None:
        """Raise if another writer changed the table."""
        found = snapshot.pins.get(self.table_key)
        if found != self.pin:
            expected = self.pin.name.version if self.pin is not None else None
            actual = found.name.version if found is not None else None
            raise ConflictError(
                f"{self.table_key} was changed by another writer: "
                f"expected version {expected}, found {actual}",
                kind=ErrorKind.VERSION_MISMATCH,
                hint="look at the new content, then repeat the command",
                details={"table_key": self.table_key, "expected": expected, "actual": actual},
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadIs:
    """Expect the branch to be at one commit (compare-and-swap by the caller)."""

    commit_id: str

    def check(self, snapshot: Snapshot) -> None:
        """Raise if the branch has moved."""
        if snapshot.head.id != self.commit_id:
            raise ConflictError(
                f"branch '{snapshot.branch}' is at commit {snapshot.head.id}, "
                f"not at {self.commit_id}",
                kind=ErrorKind.PRECONDITION_FAILED,
                hint="read the branch again and decide anew",
                details={"expected": self.commit_id, "actual": snapshot.head.id},
            )


Expectation = TableUnchanged | HeadIs


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPlan:
    """Everything a write is about to do, as its first attempt sees it.

    A later attempt stands on a newer base; the operation's id and its tables stay the same.
    """

    operation_id: str
    """Also the id of the commit to come, so that a landed write is recognised after any failure."""
    kind: str
    branch: str
    actor: str | None
    message: str | None
    base_commit: str
    base_manifest_version: int
    schema_hash: str
    tables: tuple[TableAction, ...]
    expectations: tuple[Expectation, ...]
    manifest_path: str
    """The life of the branch that it is meant for, whatever that is called later."""
    long: bool = False
    """It is renewed while it runs; its tables are not known from the beginning."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the intent object holds it."""
        # One by one: ``asdict`` copies everything below, and this is done with every write.
        body: dict[str, Any] = {"format": INTENT_FORMAT}
        body |= {f.name: getattr(self, f.name) for f in fields(self)}
        body["tables"] = [{f.name: getattr(t, f.name) for f in fields(t)} for t in self.tables]
        body["expectations"] = [{"kind": type(e).__name__, **asdict(e)} for e in self.expectations]
        return body

    def encode(self) -> bytes:
        """The intent object's bytes."""
        return json.dumps(self.to_dict(), separators=(",", ":"), ensure_ascii=False).encode()
