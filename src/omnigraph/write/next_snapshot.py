"""The snapshot that a write makes of the one it replaces.

    prepared change, staged tables -> [next snapshot] -> the one commit

Values in, a value out: nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.manifest import format as graph_format
from omnigraph.manifest.codec import commits_carried
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
from omnigraph.write.stage import Staged, changes_of, pins_of

REVOKED_MAX = 64
"""Revocations that a snapshot carries. An older one is not needed for safety: whatever a cleanup
deletes, the cleanup itself announces it to the write (``write/fence.py``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWrite:
    """A write as far as the snapshot to come shows it."""

    request: WriteRequest
    operation_id: str
    prepared: PreparedWrite
    pins: Mapping[str, TablePin]
    """The tables that it changes, as they will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedWrite:
    """A write whose tables are staged; one, or several that are published together."""

    step: ShownWrite
    staged: Mapping[str, Staged]

    @staticmethod
    def of(
        request: WriteRequest,
        operation_id: str,
        prepared: PreparedWrite,
        staged: Mapping[str, Staged],
    ) -> StagedWrite:
        """The write with the tables as they were staged."""
        pins = pins_of(prepared.work, staged)
        step = ShownWrite(request=request, operation_id=operation_id, prepared=prepared, pins=pins)
        return StagedWrite(step=step, staged=staged)

    @property
    def prepared(self) -> PreparedWrite:
        return self.step.prepared


def next_snapshot(steps: Sequence[ShownWrite], now_us: int) -> Snapshot:
    """What the graph shows once the writes are published, each on what the ones before it show."""
    states = [steps[0].prepared.txn.snapshot]
    version = states[0].version + 1
    for number, step in enumerate(steps, start=1):
        place = ManifestPlace(path=states[0].path, version=version, back=len(steps) - number)
        states.append(_after(states[-1], step, place, now_us))
    *before, newest = states[1:]
    return replace(
        newest,
        commits=newest.commits[: commits_carried(len(steps))],
        steps=tuple(_other_pins(state, newest) for state in reversed(before)),
    )


def _other_pins(state: Snapshot, newest: Snapshot) -> dict[str, TablePin]:
    return {key: pin for key, pin in state.pins.items() if newest.pins.get(key) != pin}


def _after(base: Snapshot, step: ShownWrite, place: ManifestPlace, now_us: int) -> Snapshot:
    prepared, request = step.prepared, step.request
    adopted, schema = prepared.adoption, prepared.schema
    shown = base if adopted is None else adopted.snapshot
    line = adopted.snapshot if adopted is not None and adopted.rewinds else base
    commit = _commit(step, base, line, place, now_us)
    pins = shown.pins if schema is None else under(schema, shown.pins)
    return replace(
        base,
        version=place.version,
        format=graph_format.FORMAT,
        schema_hash=schema.hash if schema is not None else shown.schema_hash,
        pins={**pins, **step.pins},
        commits=(commit, *line.commits),
        facts=replace(
            base.facts,
            rewound_at=place.version if line is not base else base.rewound_at,
            revoked=(*base.revoked, *request.revokes)[-REVOKED_MAX:],
        ),
        steps=(),
    )


def _commit(
    step: ShownWrite, base: Snapshot, line: Snapshot, place: ManifestPlace, now_us: int
) -> GraphCommit:
    request, merged = step.request, step.request.merged
    return GraphCommit(
        id=step.operation_id,
        parent_id=line.head.id,
        merged_parent_id=merged.id if merged is not None else None,
        branch=base.branch,
        place=place,
        kind=request.kind,
        actor=request.actor,
        message=request.message,
        # Lineage time never runs backwards, whatever the clocks of many machines say.
        created_at_us=max(
            now_us,
            base.head.created_at_us,
            merged.created_at_us if merged is not None else 0,
        ),
        changes=_changes(step.prepared),
        generation=1 + max(line.head.generation, merged.generation if merged else 0),
        merged_place=merged.place if merged is not None else None,
    )


def _changes(prepared: PreparedWrite) -> Mapping[str, TableChange]:
    """How the snapshot to come differs from the one that it replaces."""
    if prepared.adoption is not None:
        return prepared.adoption.changes
    return changes_of(prepared.work, prepared.txn.snapshot, prepared.schema)


def under(schema: AcceptedSchema, pins: Mapping[str, TablePin]) -> dict[str, TablePin]:
    """Tables as another schema calls them; those that it does not have are left out."""
    names = {t.stable_id: t.table_key for t in schema.catalog.types()}
    return {
        key: replace(pin, table_key=key)
        for pin in pins.values()
        if (key := names.get(pin.stable_id)) is not None
    }
