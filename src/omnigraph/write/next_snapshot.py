"""The snapshot that a write makes of the one it replaces.

    prepared change, staged tables -> [next snapshot] -> the one commit

Values in, a value out: nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from omnigraph.manifest import format as graph_format
from omnigraph.manifest.codec import COMMITS_MAX
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import (
    GraphCommit,
    ManifestPlace,
    Snapshot,
    TableChange,
    TablePin,
)
from omnigraph.write.preparation import PreparedWrite
from omnigraph.write.request import WriteRequest
from omnigraph.write.stage import Staged, Work, changes_of

REVOKED_MAX = 64
"""Revocations that a snapshot carries. An older one is not needed for safety: whatever a cleanup
deletes, the cleanup itself announces it to the write (``write/fence.py``)."""


def next_snapshot(
    request: WriteRequest,
    operation_id: str,
    prepared: PreparedWrite,
    staged: Mapping[str, Staged],
    now_us: int,
) -> Snapshot:
    """What the graph shows once the write is published."""
    base, adopted, schema = prepared.txn.snapshot, prepared.adoption, prepared.schema
    shown = base if adopted is None else adopted.snapshot
    line = adopted.snapshot if adopted is not None and adopted.rewinds else base
    commit = _commit(request, operation_id, prepared, line, now_us)
    pins = shown.pins if schema is None else under(schema, shown.pins)
    made = {key: _pin(key, prepared.work[key], item) for key, item in staged.items()}
    return replace(
        base,
        version=base.version + 1,
        format=graph_format.FORMAT,
        schema_hash=schema.hash if schema is not None else shown.schema_hash,
        pins={**pins, **made},
        commits=(commit, *line.commits)[:COMMITS_MAX],
        rewound_at=base.version + 1 if line is not base else base.rewound_at,
        revoked=(*base.revoked, *request.revokes)[-REVOKED_MAX:],
    )


def _commit(
    request: WriteRequest, operation_id: str, prepared: PreparedWrite, line: Snapshot, now_us: int
) -> GraphCommit:
    base, merged = prepared.txn.snapshot, request.merged
    return GraphCommit(
        id=operation_id,
        parent_id=line.head.id,
        merged_parent_id=merged.id if merged is not None else None,
        branch=base.branch,
        place=ManifestPlace(path=base.path, version=base.version + 1),
        kind=request.kind,
        actor=request.actor,
        message=request.message,
        # Lineage time never runs backwards, whatever the clocks of many machines say.
        created_at_us=max(
            now_us,
            base.head.created_at_us,
            merged.created_at_us if merged is not None else 0,
        ),
        changes=_changes(prepared),
        generation=1 + max(line.head.generation, merged.generation if merged else 0),
        merged_place=merged.place if merged is not None else None,
    )


def _changes(prepared: PreparedWrite) -> Mapping[str, TableChange]:
    """How the snapshot to come differs from the one that it replaces."""
    if prepared.adoption is not None:
        return prepared.adoption.changes
    return changes_of(prepared.work, prepared.txn.snapshot, prepared.schema)


def _pin(table_key: str, work: Work, staged: Staged) -> TablePin:
    return TablePin(
        table_key=table_key,
        type_id=work.type.id,
        incarnation=work.type.incarnation,
        name=staged.table.name,
        row_count=staged.table.row_count,
    )


def under(schema: AcceptedSchema, pins: Mapping[str, TablePin]) -> dict[str, TablePin]:
    """Tables as another schema calls them; those that it does not have are left out."""
    names = {t.stable_id: t.table_key for t in schema.catalog.types()}
    return {
        key: replace(pin, table_key=key)
        for pin in pins.values()
        if (key := names.get(pin.stable_id)) is not None
    }
