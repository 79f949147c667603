"""What recovery did, for whoever asks later: ``_graph_commit_recoveries.lance``.

One row for each operation, however often recovery was interrupted: a row is only written if there
is none of the same operation and outcome.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from omnigraph.manifest.repository import Repository
from omnigraph.storage.records import append_records, read_records

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
    operation_kind: str | None
    recovery_for_actor: str | None
    branch: str | None
    graph_commit_id: str | None
    """The commit that was found, or the one that revoked the operation."""
    at: int
    outcome: str

    def to_dict(self) -> dict[str, Any]:
        """As ``recovery run --json`` shows it."""
        return asdict(self) | {"recovery_kind": str(self.recovery_kind)}


def record_recoveries(repository: Repository, recovered: Iterable[Recovered]) -> None:
    """Write down what was done, once."""
    known = {(row.operation_id, row.recovery_kind) for row in recoveries(repository)}
    fresh = [r for r in recovered if (r.operation_id, r.recovery_kind) not in known]
    if fresh:
        rows = pa.Table.from_pylist([row.to_dict() for row in fresh], schema=_COLUMNS)
        append_records(repository.location, AUDIT_PATH, rows)


def recoveries(repository: Repository) -> list[Recovered]:
    """Everything that was recovered so far, oldest first."""
    table = read_records(repository.location, AUDIT_PATH)
    rows: list[dict[str, Any]] = table.to_pylist() if table is not None else []
    found = [_recovered(row) for row in rows]
    return sorted(found, key=lambda row: row.at)


def _recovered(row: dict[str, Any]) -> Recovered:
    kind: Any = RecoveryKind(row["recovery_kind"])
    return Recovered(**(row | {"recovery_kind": kind}))
