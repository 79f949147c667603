"""What recovery did, for later questions: ``_graph_commit_recoveries.lance``.

One row for each operation, however often recovery was interrupted or done at the same
moment: a row is only written if there is none of its operation, and that is decided by the commit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.errors import ConflictError, ErrorKind
from omnigraph.manifest.repository import Repository
from omnigraph.storage.records import Records, add_missing, read_records

AUDIT_PATH = "_graph_commit_recoveries.lance"
_COLUMNS = pa.schema(
    [
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("operation_kind", pa.string()),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("branch", pa.string()),
        pa.field("graph_commit_id", pa.string()),
        pa.field("at", pa.int64(), nullable=False),
        pa.field("outcome", pa.string()),
    ]
)


class RecoveryKind(StrEnum):
    """What became of an intent."""

    ROLLED_FORWARD = "rolled_forward"
    """The write had been published: what was left to do was done."""
    ROLLED_BACK = "rolled_back"
    """The write had not been published: it may not do so any more."""
    QUARANTINED = "quarantined"
    """The intent could not be read: it was put aside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """One row of the audit."""

    operation_id: str
    recovery_kind: RecoveryKind
    operation_kind: str | None = None
    recovery_for_actor: str | None = None
    branch: str | None = None
    graph_commit_id: str | None = None
    """The commit that was found, or the one that revoked the operation."""
    at: int
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """As ``recovery run --json`` shows it."""
        return asdict(self) | {"recovery_kind": str(self.recovery_kind)}


def record_recoveries(repository: Repository, recovered: Iterable[Recovered]) -> None:
    """Write down what was done, once; what was written down before stays as it is."""
    rows = list(recovered)
    if not rows:
        return
    left = 0

    def missing(there: Records) -> pa.Table:
        nonlocal left
        known = there.values("operation_id")
        fresh = [row.to_dict() for row in rows if row.operation_id not in known]
        left = len(fresh)
        return pa.Table.from_pylist(fresh, schema=_COLUMNS)

    if add_missing(repository.location, AUDIT_PATH, missing) < left:
        raise ConflictError(
            f"others wrote to {AUDIT_PATH} all the time",
            kind=ErrorKind.CONTENTION,
            hint="run recovery again",
        )


def recoveries(repository: Repository) -> list[Recovered]:
    """Everything that was recovered so far, oldest first."""
    table = read_records(repository.location, AUDIT_PATH)
    rows: list[dict[str, Any]] = table.to_pylist() if table is not None else []
    found = [_recovered(row) for row in rows]
    return sorted(found, key=lambda row: row.at)


def _recovered(row: dict[str, Any]) -> Recovered:
    kind: Any = RecoveryKind(row["recovery_kind"])
    return Recovered(**(row | {"recovery_kind": kind}))
