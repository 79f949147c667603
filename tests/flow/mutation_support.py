"""The fleet of the language guide, and a way to run mutation texts on it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate import MutationOutcome, run_mutation
from omnigraph.query.params import bind

NOW = datetime(2026, 10, 7, 12, 30, 15, 250_000, tzinfo=UTC)
FLEET = """
interface Named { name: String @index }
node Vessel implements Named {
  imo: I64 @key  flag: enum(dk, no, pa)?  built: Date?  tags: [String]?
  @range(imo, 1..9999999)
}
node Port implements Named { code: String @key  berths: U32 }
edge CallsAt: Vessel -> Port @card(0..3) { on: Date  cargo: String? }
edge Feeds: Port -> Port { @unique(src, dst) }
"""


def vessel(imo: int, name: str, **data: object) -> dict[str, Any]:
    return {"type": "Vessel", "data": {"imo": imo, "name": name, **data}}


def port(code: str, berths: int) -> dict[str, Any]:
    return {"type": "Port", "data": {"code": code, "name": code.lower(), "berths": berths}}


def edge(name: str, source: str, target: str, **data: object) -> dict[str, Any]:
    return {"edge": name, "from": source, "to": target, "data": data}


RECORDS = [
    vessel(100, "Alba", flag="dk"),
    vessel(200, "Brisa", flag="no", tags=["ice"]),
    vessel(300, "Cora"),
    port("AAR", 4),
    port("BGO", 2),
    port("CPH", 6),
    edge("CallsAt", "100", "AAR", on="2026-01-02"),
    edge("CallsAt", "100", "AAR", on="2026-02-02"),
    edge("CallsAt", "100", "CPH", on="2026-02-10"),
    edge("CallsAt", "200", "BGO", on="2026-02-20"),
    edge("Feeds", "AAR", "BGO"),
    edge("Feeds", "BGO", "CPH"),
    edge("Feeds", "CPH", "AAR"),
]


def fleet(path: Path | str) -> omnigraph.Graph:
    graph = omnigraph.init(path, FLEET)
    graph.load(RECORDS)
    return graph


def compiled(graph: omnigraph.Graph, text: str) -> typed.Query:
    (query,) = compile_queries(text, graph.catalog)
    return query


def mutate(
    graph: omnigraph.Graph,
    text: str,
    params: dict[str, Any] | None = None,
    *,
    now: datetime = NOW,
    **options: Any,
) -> MutationOutcome:
    """Run the one query of a text."""
    query = compiled(graph, text)
    assert isinstance(query.body, typed.Mutation)
    values = Values(params=bind(query.params, params), now=now)
    return run_mutation(graph._repository, lambda _: (query, values), branch="main", **options)


def counts(outcome: MutationOutcome) -> tuple[int, int]:
    return outcome.affected_nodes, outcome.affected_edges


def nodes(graph: omnigraph.Graph, type_name: str) -> dict[str, dict[str, Any]]:
    """All entities of a type by id, without the id column."""
    found = graph.snapshot().rows(type_name).to_dicts()
    return {row.pop("id"): row for row in found}


def ends(graph: omnigraph.Graph, type_name: str) -> list[tuple[str, str]]:
    return sorted((e["src"], e["dst"]) for e in graph.snapshot().rows(type_name).to_dicts())
