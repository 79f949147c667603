"""Do the rows of a state keep the rules of its schema, and does a commit say what it changed?

    state -> every rule that a load is held to -> [row check] <- difference to the parent <- commit

Whatever is published passed the validator. Older releases published some merges that had not, so a
check looks at the rows themselves, and says how to get rid of what it finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from omnigraph.branch.diff import Diff
from omnigraph.errors import CorruptionError, NotFoundError, StorageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, ManifestPlace, Snapshot, TableChange
from omnigraph.schema.catalog import GraphType
from omnigraph.write.conformity import all_rules
from omnigraph.write.schema_view import SchemaView

EXAMPLES_MAX = 3
EXACT_KINDS = ("merge", "revert", "schema_apply", "reset")
"""Commits that count every row whose values they change and no other. Other writes count rows that
they wrote as they were, too."""


def check_rules(repository: Repository, state: Snapshot, graph_type: GraphType) -> Iterator[str]:
    """What a load of the rows of a table would be refused for."""
    catalog = repository.schema(state.schema_hash).catalog
    view = SchemaView(
        repository=repository, snapshot=state, stored=catalog, catalog=catalog, backfills={}
    )
    if not view.row_count(graph_type.table_key):
        return
    shown, total = all_rules(view, graph_type)
    for violation in shown[:EXAMPLES_MAX]:
        subject = f"'{violation.entity_id}': " if violation.entity_id is not None else ""
        yield f"{subject}{violation.message}"
    if total > EXAMPLES_MAX:
        yield f"and {total - EXAMPLES_MAX:,} more that a load would refuse"


def check_counts(repository: Repository, commit: GraphCommit) -> str | None:
    """How a commit's own counts differ from its difference to its parent; None if they do not.

    None, too, where one of the two states is gone or damaged: others look for that.
    """
    lineage = repository.lineage
    nothing = not any(change.total for change in commit.changes.values())
    if commit.parent_id is None or (commit.kind == "schema_apply" and nothing):
        return None  # Older releases did not count what a schema change filled.
    try:
        after = lineage.snapshot(commit.place)
        before = lineage.snapshot(_before(repository, commit))
        found = Diff(repository, before, after).counts
    except (NotFoundError, CorruptionError, StorageError):
        return None
    for key in dict.fromkeys([*commit.changes, *found]):
        counted, real = (c.get(key, TableChange()) for c in (commit.changes, found))
        if not _agree(counted, real, exactly=commit.kind in EXACT_KINDS):
            return f"it counts {_text(counted)} of {key}, and its difference has {_text(real)}"
    return None


def _before(repository: Repository, commit: GraphCommit) -> ManifestPlace:
    """The state that a commit counts its changes from."""
    if commit.kind == "reset":
        # Its parent is the commit that it goes back to; what it changes is what was shown before.
        return replace(commit.place, version=commit.place.version - 1)
    return repository.lineage.parents(commit)[0].place


def _agree(counted: TableChange, real: TableChange, *, exactly: bool) -> bool:
    same = (counted.inserted, counted.deleted) == (real.inserted, real.deleted)
    if exactly:
        return same and counted.updated == real.updated
    return same and counted.updated >= real.updated


def _text(change: TableChange) -> str:
    return f"+{change.inserted:,} ~{change.updated:,} -{change.deleted:,}"
