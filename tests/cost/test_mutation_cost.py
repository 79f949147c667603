"""Object-store requests of mutations, counted on a real S3 server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate import MutationOutcome, run_mutation
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA = """
node Person { name: String @key  age: I32?  note: String? }
edge Knows: Person -> Person { since: I32? }
"""
VALUES = Values(params={}, now=datetime(2026, 1, 1, tzinfo=UTC))


def mutate(graph: omnigraph.Graph, text: str) -> MutationOutcome:
    (query,) = compile_queries(text, graph.catalog)
    assert isinstance(query.body, typed.Mutation)
    return run_mutation(graph._repository, lambda _: (query, VALUES), branch="main")


@pytest.fixture
def graph(s3_proxied_root: str) -> omnigraph.Graph:
    graph = omnigraph.init(s3_proxied_root, SCHEMA)
    people = [{"type": "Person", "data": {"name": f"p{i}", "age": i}} for i in range(50)]
    edges = [{"edge": "Knows", "from": f"p{i}", "to": f"p{i + 1}"} for i in range(49)]
    graph.load(people + edges)
    graph.settle()
    return graph


def cost(graph: omnigraph.Graph, proxy: CountingProxy, text: str, requests_max: int) -> None:
    with measure(proxy) as io:
        mutate(graph, text)
        graph.settle()
    assert io.count() <= requests_max, f"{text}\n{io.log()}"


def test_an_insert_costs_what_a_load_costs(graph: omnigraph.Graph, s3_proxy: CountingProxy) -> None:
    for i in range(3):
        cost(graph, s3_proxy, f'insert Knows {{ from: "p{i}", to: "p2" }}', 11)
        cost(graph, s3_proxy, f'insert Person {{ name: "new{i}", age: 1 }}', 11)


def test_an_update_reads_the_row_and_what_the_store_needs_to_replace_it(
    graph: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    for age in (99, 100, 101):
        cost(graph, s3_proxy, f'update Person set {{ age: {age} }} where name = "p7"', 16)
    cost(graph, s3_proxy, "update Person set { age: 200 } where age = 101", 16)


def test_a_delete_costs_little_more_than_an_insert(
    graph: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    for i in (20, 21, 22):
        cost(graph, s3_proxy, f'delete Knows where from = "p{i}"', 13)
    for i in (30, 33, 36):
        cost(graph, s3_proxy, f'delete Person where name = "p{i}"', 20)


def test_what_changes_nothing_costs_a_look_at_the_head(
    graph: omnigraph.Graph, s3_proxy: CountingProxy
) -> None:
    cost(graph, s3_proxy, 'delete Person where name = "nobody"', 1)
    cost(graph, s3_proxy, 'update Person set { age: 7 } where name = "p7"', 3)
