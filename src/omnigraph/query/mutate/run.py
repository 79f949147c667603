"""A mutation from its statements to a published commit.

    text, parameters -> typed mutation -> delta against a pinned snapshot -> [publish] -> outcome

The whole mutation is one function of the snapshot it is given: it is checked on the schema of that
snapshot, too. After a lost race the write machine calls it again on the newer snapshot, where its
statements mean the same (ADR 0007); ids that it draws and the moment of ``now()`` are drawn once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from omnigraph.errors import InternalError, UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate.find import Base
from omnigraph.query.mutate.writes import Numbered, delete, type_of, write_type
from omnigraph.rules.table_delta import TableDelta
from omnigraph.schema.catalog import Catalog
from omnigraph.write.publish import publish
from omnigraph.write.request import Receipt, Requires, WriteRequest
from omnigraph.write.txn import GraphDelta, WriteTxn


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """How many entities the statements met: each insert one, each update the rows that matched,
    all deletes together the distinct entities that go."""

    nodes: int = 0
    edges: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationOutcome:
    """What a mutation did."""

    query: typed.Query
    """As it was checked on the schema that it was published on."""

    receipt: Receipt
    """Its ``commit`` is None when every row is what it was; its ``changes`` count per table."""
    affected_nodes: int
    affected_edges: int


Check = Callable[[AcceptedSchema], tuple[typed.Query, Values]]
"""A mutation on a schema, and what it is run with."""


def run_mutation(
    repository: Repository,
    check: Check,
    *,
    branch: str,
    actor: str | None = None,
    message: str | None = None,
    expected_commit: str | None = None,
    query_kind: str = "mutation",
) -> MutationOutcome:
    """Carry a mutation out as one commit, or none when nothing changes.

    ``check`` is called with the schema of every snapshot that the mutation is tried on; what it
    finds wrong counts if that schema is the newest.
    """
    work = _Mutation(repository, check)
    receipt = publish(
        repository,
        WriteRequest(
            kind=query_kind,
            branch=branch,
            prepare=work.prepare,
            actor=actor,
            message=message,
            expected_commit=expected_commit,
            requires=Requires.OWN_DECISION,
            joins=True,
        ),
    )
    return MutationOutcome(
        query=work.query,
        receipt=receipt,
        affected_nodes=work.affected.nodes,
        affected_edges=work.affected.edges,
    )


class _Mutation:
    """A mutation with what it draws once, and what its last run was."""

    query: typed.Query
    affected: Affected

    def __init__(self, repository: Repository, check: Check) -> None:
        self._ids = repository.ids
        self._check = check
        self._fresh: list[str] = []

    def prepare(self, txn: WriteTxn) -> GraphDelta:
        """The mutation on one snapshot."""
        self.query, values = self._check(txn.schema)
        mutation = self.query.body
        if not isinstance(mutation, typed.Mutation):
            raise UsageError(
                "this query only reads", hint="run it with query: 'omnigraph query', graph.query(…)"
            )
        # One text has as many statements on every schema.
        self._fresh = self._fresh or self._ids.ulids(len(mutation.statements)).to_pylist()
        delta, self.affected = apply(mutation, txn.schema.catalog, txn, values, self._fresh)
        return delta


def apply(
    mutation: typed.Mutation,
    catalog: Catalog,
    base: Base,
    values: Values,
    fresh_ids: Sequence[str],
) -> tuple[GraphDelta, Affected]:
    """The delta of all statements in order; ``fresh_ids`` has one id for each of them."""
    statements = mutation.statements
    deletes = [s for s in statements if isinstance(s, typed.Delete)]
    if deletes:
        if len(deletes) < len(statements):
            raise InternalError("deletes stand among other statements")
        removals = delete(catalog, deletes, base, values)
        return GraphDelta(tables=removals), _removed(removals)
    by_type: dict[str, list[Numbered]] = {}
    for statement, fresh_id in zip(statements, fresh_ids, strict=True):
        key = type_of(catalog, statement.kind, statement.type_name).table_key
        written = cast("typed.Insert | typed.Update", statement)
        by_type.setdefault(key, []).append(Numbered(statement=written, fresh_id=fresh_id))
    tables: dict[str, TableDelta] = {}
    counts = {"node": 0, "edge": 0}
    for key, numbered in by_type.items():
        graph_type = catalog.table(key)
        table, count = write_type(graph_type, numbered, base, values)
        counts[graph_type.kind] += count
        if table is not None:
            tables[key] = table
    return GraphDelta(tables=tables), Affected(nodes=counts["node"], edges=counts["edge"])


def _removed(removals: dict[str, TableDelta]) -> Affected:
    counts = {"node": 0, "edge": 0}
    for table in removals.values():
        counts[table.type.kind] += len(table.removed)
    return Affected(nodes=counts["node"], edges=counts["edge"])
