"""A mutation from its statements to a published commit.

    typed mutation, parameters -> delta against a pinned snapshot -> [publish] -> outcome

The whole mutation is one function of the snapshot it is given. After a lost race the write machine
calls it again on the newer snapshot, where its statements mean the same (ADR 0007); ids that it
draws and the moment of ``now()`` are drawn once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from omnigraph.errors import ConflictError, ErrorKind, InternalError
from omnigraph.manifest.repository import Repository
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate.base import Base
from omnigraph.query.mutate.deletes import delete, type_of
from omnigraph.query.mutate.writes import Numbered, write_type
from omnigraph.schema.catalog import Catalog
from omnigraph.write.delta import GraphDelta, TableDelta
from omnigraph.write.publish import Receipt, WriteRequest, publish
from omnigraph.write.txn import WriteTxn


@dataclass(frozen=True, slots=True, kw_only=True)
class Affected:
    """How many entities the statements met: each insert one, each update the rows that matched,
    all deletes together the distinct entities that go."""

    nodes: int = 0
    edges: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MutationOutcome:
    """What a mutation did."""

    receipt: Receipt
    """Its ``commit`` is None when every row is what it was; its ``changes`` count per table."""
    affected_nodes: int
    affected_edges: int


def run_mutation(
    repository: Repository,
    mutation: typed.Mutation,
    values: Values,
    *,
    branch: str,
    actor: str | None = None,
    message: str | None = None,
    expected_commit: str | None = None,
    query_kind: str = "mutation",
    schema_hash: str | None = None,
) -> MutationOutcome:
    """Carry a mutation out as one commit, or none when nothing changes.

    ``schema_hash`` names the schema that the mutation was checked on, the newest known one if it is
    left out; if the branch has another one by now, that is a conflict.
    """
    known = schema_hash or repository.branch(branch).head.snapshot.schema_hash
    work = _Mutation(repository, mutation, values, known)
    receipt = publish(
        repository,
        WriteRequest(
            kind=query_kind,
            branch=branch,
            prepare=work.prepare,
            actor=actor,
            message=message,
            expected_commit=expected_commit,
            decides_anew=True,
        ),
    )
    return MutationOutcome(
        receipt=receipt, affected_nodes=work.affected.nodes, affected_edges=work.affected.edges
    )


class _Mutation:
    """A mutation with what it draws once, and the counts of its last run."""

    def __init__(
        self, repository: Repository, mutation: typed.Mutation, values: Values, schema_hash: str
    ) -> None:
        self._mutation = mutation
        self._values = values
        self._schema_hash = schema_hash
        self._fresh: list[str] = repository.ids.ulids(len(mutation.statements)).to_pylist()
        self.affected = Affected()

    def prepare(self, txn: WriteTxn) -> GraphDelta:
        """The mutation on one snapshot."""
        if txn.schema.hash != self._schema_hash:
            raise ConflictError(
                "the schema changed since the mutation was checked",
                kind=ErrorKind.READ_SET_CONFLICT,
                hint="run it again: it is then checked on the new schema",
            )
        delta, self.affected = apply(
            self._mutation, txn.schema.catalog, txn, self._values, self._fresh
        )
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
