"""Snapshots as rows of ``__manifest`` and back. docs/format.md describes the bytes.

One row is one object, named by ``object_id``; a snapshot is the set of its rows. Only this module
knows the columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.errors import CorruptionError
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.snapshot import (
    MAIN,
    MAIN_PATH,
    BranchFacts,
    GraphCommit,
    ManifestPlace,
    Snapshot,
    TableChange,
    TablePin,
)
from omnigraph.storage.names import TableVersion

COMMITS_MAX = 50
"""Commits a snapshot carries; older ones are read from the manifest versions they made."""


def commits_carried(made: int) -> int:
    """Commits that a version carries which makes so many: each of its states shows fifty."""
    return COMMITS_MAX + made - 1


_COLUMNS = pa.schema(
    [
        pa.field("object_id", pa.string(), nullable=False),
        pa.field("object_type", pa.string(), nullable=False),
        pa.field("location", pa.string()),
        pa.field("metadata", pa.string()),
        pa.field("base_objects", pa.list_(pa.string())),
        pa.field("table_key", pa.string()),
        pa.field("table_version", pa.int64()),
        pa.field("table_branch", pa.string()),
        pa.field("row_count", pa.int64()),
        pa.field("stable_table_id", pa.int64()),
        pa.field("table_incarnation_id", pa.int64()),
        pa.field("manifest_path", pa.string()),
        pa.field("manifest_size", pa.int64()),
        pa.field("schema_hash", pa.string()),
    ]
)
_STAMP = "omnigraph.format"
_GRAPH_ID = "omnigraph.graph_id"
_BRANCH = "omnigraph.branch"

Row = dict[str, Any]


def check_format(metadata: Mapping[str, str], where: str) -> None:
    """Refuse what a release wrote that this one does not know."""
    graph_format.read_stamp(metadata.get(_STAMP), where)


def to_table(snapshot: Snapshot, replaced: tuple[Snapshot, pa.Table] | None = None) -> pa.Table:
    """A snapshot as rows. Of the one that it replaces and its rows, those of commits are taken."""
    commits = snapshot.commits[: commits_carried(len(snapshot.steps) + 1)]
    known = _rows_known(snapshot, commits, *replaced) if replaced is not None else None
    if known is not None:
        commits = commits[: len(commits) - known.num_rows]
    rows: list[Row] = [
        {
            "object_id": "schema",
            "object_type": "schema",
            "location": f"_schema/{snapshot.schema_hash}.json",
            "schema_hash": snapshot.schema_hash,
        },
        {
            "object_id": f"graph_head:{snapshot.branch}",
            "object_type": "graph_head",
            "metadata": _head_facts(snapshot),
            "base_objects": [f"graph_commit:{snapshot.head.id}"],
            "table_version": snapshot.version,
        },
        *(_pin_row(pin, snapshot.branch) for pin in snapshot.pins.values()),
        *_step_rows(snapshot),
        *map(_commit_row, commits),
    ]
    schema = _COLUMNS.with_metadata(
        {_STAMP: str(snapshot.format), _GRAPH_ID: snapshot.graph_id, _BRANCH: snapshot.branch}
    )
    # Column by column: a snapshot is written with every commit, and this is four times as fast as
    # handing the rows over.
    columns = [pa.array([row.get(f.name) for row in rows], f.type) for f in schema]
    table = pa.Table.from_arrays(columns, schema=schema)
    if known is None:
        return table
    return pa.concat_tables([table, known.cast(schema)]).combine_chunks()


def _rows_known(
    snapshot: Snapshot, commits: Sequence[GraphCommit], before: Snapshot, rows: pa.Table
) -> pa.Table | None:
    """The rows of the older commits as they stand in the version before: a commit never changes."""
    if snapshot.format != before.format or rows.schema.names != _COLUMNS.names:
        return None
    new = next((i for i, c in enumerate(commits) if c.id == before.head.id), None)
    if new is None or tuple(commits[new:]) != before.commits[: len(commits) - new]:
        return None
    found = rows.slice(rows.num_rows - len(before.commits), len(commits) - new)
    ids = pa.chunked_array([[f"graph_commit:{c.id}" for c in commits[new:]]], pa.string())
    return found if found["object_id"].equals(ids) else None


def from_table(
    table: pa.Table, *, path: str, version: int, metadata: Mapping[str, str]
) -> Snapshot:
    """The snapshot that rows of a manifest dataset describe."""
    try:
        branch = metadata[_BRANCH]
        by_type: dict[str, list[Row]] = {}
        for row in table.to_pylist():
            by_type.setdefault(row["object_type"], []).append(row)
        (head,) = by_type["graph_head"]
        commits = {c.id: c for c in map(_commit, by_type["graph_commit"])}
        pins = [_pin(row) for row in by_type.get("table_version", ())]
        facts = json.loads(head["metadata"] or "{}")
        return Snapshot(
            graph_id=metadata[_GRAPH_ID],
            branch=branch,
            version=version,
            schema_hash=by_type["schema"][0]["schema_hash"],
            pins={p.table_key: p for p in pins},
            commits=_lineage(commits, head["base_objects"][0].removeprefix("graph_commit:")),
            path=path,
            facts=BranchFacts(
                rewound_at=facts.get("rewound_at", 0),
                deleted=facts.get("deleted", False),
                revoked=tuple(facts.get("revoked", ())),
                swept=facts.get("swept", 0),
            ),
            format=int(metadata[_STAMP]),
            steps=_steps(by_type.get("step_version", ())),
        )
    except (KeyError, ValueError, TypeError, IndexError) as e:
        raise CorruptionError(
            f"manifest version {version} cannot be understood: {type(e).__name__} {e}",
            hint="restore __manifest from a copy of the graph",
        ) from e


def _lineage(commits: Mapping[str, GraphCommit], head_id: str) -> tuple[GraphCommit, ...]:
    """The commits along first parents, from the head as far as they are here."""
    lineage = [commits[head_id]]
    while (parent := commits.get(lineage[-1].parent_id or "")) is not None:
        lineage.append(parent)
    return tuple(lineage)


def _head_facts(snapshot: Snapshot) -> str | None:
    facts: dict[str, Any] = {}
    if snapshot.rewound_at:
        facts["rewound_at"] = snapshot.rewound_at
    if snapshot.deleted:
        facts["deleted"] = True
    if snapshot.revoked:
        facts["revoked"] = snapshot.revoked
    if snapshot.swept:
        facts["swept"] = snapshot.swept
    return json.dumps(facts, separators=(",", ":")) if facts else None


def _pin_row(pin: TablePin, branch: str) -> Row:
    return {
        "object_id": f"table_version:{pin.type_id:x}-{pin.incarnation:x}",
        "object_type": "table_version",
        "location": pin.name.path,
        "table_key": pin.table_key,
        "table_version": pin.name.version,
        "table_branch": None if branch == MAIN else branch,
        "row_count": pin.row_count,
        "stable_table_id": pin.type_id,
        "table_incarnation_id": pin.incarnation,
        "manifest_path": pin.name.manifest.removeprefix(pin.name.path + "/"),
        "manifest_size": pin.name.manifest_size,
    }


def _step_rows(snapshot: Snapshot) -> Iterator[Row]:
    """The tables of states that led to a snapshot, as far as it shows others."""
    for back, pins in enumerate(snapshot.steps, start=1):
        for pin in pins.values():
            row = _pin_row(pin, snapshot.branch)
            yield row | {
                "object_id": f"{row['object_id']}~{back}",
                "object_type": "step_version",
                "base_objects": [f"graph_commit:{snapshot.commits[back].id}"],
                "metadata": json.dumps({"back": back}, separators=(",", ":")),
            }


def _steps(rows: Sequence[Row]) -> tuple[Mapping[str, TablePin], ...]:
    found: dict[int, dict[str, TablePin]] = {}
    for row in rows:
        pin = _pin(row)
        found.setdefault(json.loads(row["metadata"])["back"], {})[pin.table_key] = pin
    # A state differs from the newest one in what the writes after it changed: none is without rows.
    return tuple(found[back] for back in range(1, len(found) + 1))


def _pin(row: Row) -> TablePin:
    path = row["location"]
    return TablePin(
        table_key=row["table_key"],
        type_id=row["stable_table_id"],
        incarnation=row["table_incarnation_id"],
        name=TableVersion(
            path=path,
            version=row["table_version"],
            manifest=f"{path}/{row['manifest_path']}",
            manifest_size=row["manifest_size"],
        ),
        row_count=row["row_count"],
    )


def _commit_row(commit: GraphCommit) -> Row:
    facts: dict[str, Any] = {
        "kind": commit.kind,
        "at": commit.created_at_us,
        "generation": commit.generation,
    }
    if commit.merged_place is not None:
        facts["merged"] = commit.merged_place.fields
    if commit.place.back:
        facts["back"] = commit.place.back
    if commit.actor is not None:
        facts["actor"] = commit.actor
    if commit.message is not None:
        facts["message"] = commit.message
    if commit.changes:
        facts["changes"] = {
            key: [c.inserted, c.updated, c.deleted] for key, c in commit.changes.items()
        }
    parents = [f"graph_commit:{p}" for p in (commit.parent_id, commit.merged_parent_id) if p]
    return {
        "object_id": f"graph_commit:{commit.id}",
        "object_type": "graph_commit",
        "location": None if commit.path == MAIN_PATH else commit.path,
        "metadata": json.dumps(facts, separators=(",", ":"), ensure_ascii=False),
        "table_version": commit.manifest_version,
        "base_objects": parents,
        "table_branch": None if commit.branch == MAIN else commit.branch,
    }


def _commit(row: Row) -> GraphCommit:
    facts = json.loads(row["metadata"])
    parents = [p.removeprefix("graph_commit:") for p in row["base_objects"] or ()]
    merged = facts.get("merged")
    return GraphCommit(
        id=row["object_id"].removeprefix("graph_commit:"),
        parent_id=parents[0] if parents else None,
        merged_parent_id=parents[1] if len(parents) > 1 else None,
        branch=row["table_branch"] or MAIN,
        place=ManifestPlace(
            path=row["location"] or MAIN_PATH,
            version=row["table_version"],
            back=facts.get("back", 0),
        ),
        kind=facts["kind"],
        actor=facts.get("actor"),
        message=facts.get("message"),
        created_at_us=facts["at"],
        changes={
            key: TableChange(inserted=c[0], updated=c[1], deleted=c[2])
            for key, c in facts.get("changes", {}).items()
        },
        generation=facts["generation"],
        merged_place=ManifestPlace.of(merged) if merged else None,
    )
