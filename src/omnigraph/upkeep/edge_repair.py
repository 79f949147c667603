"""Edges that lead nowhere, found on every branch, and deleted if that is forced.

    heads of branches -> edges without a node at an end -> preview | deleted (PUBLISH)

No write of this release leaves such an edge. Some merges of older releases did. The graph does not
say whether the edge is wrong or the node is missing, so nothing is deleted unless it is forced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import strings, union
from omnigraph.errors import OmnigraphError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot
from omnigraph.rules.table_delta import NO_IDS, TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import EdgeType
from omnigraph.upkeep.indexes import known_types
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.txn import GraphDelta, WriteTxn

DELETER = "omnigraph:repair:force"
EXAMPLES_MAX = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRepair:
    """Edges of one type on one branch that lead nowhere, and what was done about them."""

    branch: str
    type_key: str
    count: int
    examples: tuple[str, ...]
    """Some of their ids."""
    action: str
    """``preview``, ``refused`` (it needs force) or ``deleted``."""
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As ``repair --json`` shows it."""
        return asdict(self) | {"examples": list(self.examples)}


def repair_edges(
    repository: Repository,
    heads: Mapping[str, Snapshot],
    *,
    types: Sequence[str] = (),
    confirm: bool,
    force: bool,
    message: str | None,
) -> tuple[list[EdgeRepair], list[GraphCommit]]:
    """Find edges that lead nowhere; with ``confirm`` and ``force`` delete them.

    One commit of each branch that has any.
    """
    done: list[EdgeRepair] = []
    commits: list[GraphCommit] = []
    for branch, head in heads.items():
        found = dict(_dangling(repository, head, types))
        if not found:
            continue
        action, reason = "preview", None
        if confirm:
            action, reason = "refused", "the nodes may be what is missing: load them, or --force"
        if confirm and force:
            try:
                commits += _delete(repository, branch, types, message)
                action, reason = "deleted", None
            except OmnigraphError as e:
                reason = e.message
        done += [
            EdgeRepair(
                branch=branch,
                type_key=key,
                count=len(ids),
                examples=tuple(ids.slice(0, EXAMPLES_MAX).to_pylist()),
                action=action,
                reason=reason,
            )
            for key, ids in found.items()
        ]
    return done, commits


def _delete(
    repository: Repository, branch: str, types: Sequence[str], message: str | None
) -> list[GraphCommit]:
    def prepare(txn: WriteTxn) -> GraphDelta:
        catalog = txn.schema.catalog
        # The nodes are looked at: one that comes back meanwhile keeps its edges.
        txn.consulted.update(t.table_key for t in catalog.types())
        tables = {
            key: TableDelta(
                type=catalog.table(key),
                mode=WriteMode.MERGE,
                rows=table_schema(catalog.table(key)).empty_table(),
                removed=ids,
            )
            for key, ids in _dangling(repository, txn.snapshot, types)
        }
        return GraphDelta(tables=tables)

    request = WriteRequest(
        kind="repair",
        branch=branch,
        prepare=prepare,
        actor=DELETER,
        message=message,
        requires=Requires.NEWEST_HEAD | Requires.OWN_DECISION,
    )
    commit = publish(repository, request).commit
    return [commit] if commit is not None else []


def _dangling(
    repository: Repository, state: Snapshot, types: Sequence[str]
) -> Iterator[tuple[str, pa.StringArray]]:
    """Table keys and ids of edges of a state that lack a node at an end."""
    catalog = repository.schema(state.schema_hash).catalog
    nodes: dict[str, pa.Array] = {}
    for edge in known_types(catalog, types):
        pin = state.pins.get(edge.table_key)
        if not isinstance(edge, EdgeType) or pin is None:
            continue
        lost: list[pa.Array] = []
        for batch in repository.table(pin).batches(("id", "src", "dst")):
            for column, node in (("src", edge.source), ("dst", edge.target)):
                if node not in nodes:
                    nodes[node] = _ids(repository, state, f"node:{node}")
                there = pc.is_in(batch.column(column), value_set=nodes[node])
                lost.append(batch.column("id").filter(pc.invert(there)))
        ids = union(lost) if lost else NO_IDS
        if len(ids):
            yield edge.table_key, ids.take(pc.sort_indices(ids))


def _ids(repository: Repository, state: Snapshot, table_key: str) -> pa.Array:
    pin = state.pins.get(table_key)
    if pin is None:
        return NO_IDS
    return strings(repository.table(pin).columns(("id",)).column(0))
