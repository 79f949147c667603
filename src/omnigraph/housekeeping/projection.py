"""The history as a table: ``_graph_commits.lance``, one row for each commit.

    head -> commits that have no row yet -> [projection] -> any program that reads Lance

An ordinary Lance dataset for questions about history in SQL, or from another language. The graph
itself reads its manifests; this can be deleted, and the next time makes it anew. It is brought up
to date with every 32nd commit of a branch (every 32nd version, of commits that are published
together), when a handle that wrote is closed, and before a cleanup gives commits up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa

from omnigraph.manifest.lineage import unless_reclaimed
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot
from omnigraph.storage.records import Records, add_missing

PROJECTION_PATH = "_graph_commits.lance"
COMMITS_PER_TURN = 32
"""Below the number of commits that a snapshot carries: nothing else has to be read."""
_NOTE = "omnigraph.told"
_COLUMNS = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("graph_branch", pa.string(), nullable=False),
        pa.field("graph_manifest", pa.string(), nullable=False),
        pa.field("graph_manifest_version", pa.int64(), nullable=False),
        pa.field("generation", pa.int64(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("actor_id", pa.string()),
        pa.field("message", pa.string()),
        pa.field("created_at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("changes", pa.string(), nullable=False),
    ]
)


def is_due(snapshot: Snapshot) -> bool:
    """Whether the commits that made a snapshot are ones that bring the table up to date.

    In a crowd nearly every version has one commit in 32: there it is every 32nd version.
    """
    made = snapshot.made
    if len(made) > 1:
        return snapshot.version % COMMITS_PER_TURN == 0
    return any(commit.generation % COMMITS_PER_TURN == 0 for commit in made)


def project(repository: Repository, *snapshots: Snapshot) -> int:
    """Write down every commit behind these snapshots that is not there yet; how many those are."""

    def missing(there: Records) -> pa.Table:
        written = _written(there)
        found = sorted(_unwritten(repository, snapshots, written), key=lambda c: c.generation)
        for commit in found:
            written[commit.path] = max(written.get(commit.path, 0), commit.manifest_version)
        notes = {_NOTE: json.dumps(written, separators=(",", ":"), sort_keys=True)}
        rows = [_row(commit) for commit in found]
        return pa.Table.from_pylist(rows, schema=_COLUMNS.with_metadata(notes))

    return add_missing(repository.location, PROJECTION_PATH, missing)


def _written(there: Records) -> dict[str, int]:
    """How far the commits of each manifest were written, by its newest version."""
    return json.loads(there.notes.get(_NOTE, "{}"))


def _unwritten(
    repository: Repository, snapshots: tuple[Snapshot, ...], written: Mapping[str, int]
) -> Iterator[GraphCommit]:
    """Commits behind snapshots, each once; not behind a commit that was written before."""
    lineage, seen = repository.lineage, set[str]()
    waiting = list(snapshots)
    while waiting:
        # An earlier cleanup may have given up what is behind; what was known then is written down.
        with unless_reclaimed():
            for commit in lineage.first_parents(waiting.pop()):
                if commit.id in seen or commit.manifest_version <= written.get(commit.path, 0):
                    break
                seen.add(commit.id)
                yield commit
                place = commit.merged_place
                if place is not None and place.version > written.get(place.path, 0):
                    # Whole versions are noted as written, so whole ones are looked at.
                    waiting.append(lineage.snapshot(place.whole))


def _row(commit: GraphCommit) -> dict[str, object]:
    changes = {key: [c.inserted, c.updated, c.deleted] for key, c in commit.changes.items()}
    return {
        "graph_commit_id": commit.id,
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "graph_branch": commit.branch,
        "graph_manifest": commit.path,
        "graph_manifest_version": commit.manifest_version,
        "generation": commit.generation,
        "kind": commit.kind,
        "actor_id": commit.actor,
        "message": commit.message,
        "created_at": commit.created_at_us,
        "changes": json.dumps(changes, separators=(",", ":")),
    }
