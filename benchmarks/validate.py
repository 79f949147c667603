"""Seconds the validator needs for a bulk load of a million edges into an empty graph.

    PYTHONPATH=src python benchmarks/validate.py [repeats] [--memory]

160,000 + 40,000 keyed nodes and 800,000 + 200,000 edges with supplied ids: repeats of every id,
both ends of every edge, required values. Prints the best of some repeats, for other work shares the
machine; ``--memory`` adds the peak of what Arrow and NumPy allocate on top of the input.
"""

from __future__ import annotations

import sys
import time
import tracemalloc

import numpy as np
import pyarrow as pa

from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Property, PropertyType, Scalar
from omnigraph.testing.committed import MemoryState
from omnigraph.write.txn import GraphDelta
from omnigraph.write.validate import validate

PEOPLE, COMPANIES, KNOWS, WORKS_AT = 160_000, 40_000, 800_000, 200_000


def catalog() -> Catalog:
    text, number = PropertyType(scalar=Scalar.STRING), PropertyType(scalar=Scalar.I64)

    def node(first: int, name: str) -> NodeType:
        properties = (
            Property(id=first + 1, name="code", type=text),
            Property(id=first + 2, name="size", type=number),
        )
        return NodeType(id=first, incarnation=1, name=name, properties=properties, key=("code",))

    def edge(first: int, name: str, target: str) -> EdgeType:
        since = (Property(id=first + 1, name="since", type=number),)
        return EdgeType(
            id=first, incarnation=1, name=name, properties=since, source="Person", target=target
        )

    nodes, edges = (
        (node(1, "Person"), node(11, "Company")),
        (
            edge(21, "Knows", "Person"),
            edge(31, "WorksAt", "Company"),
        ),
    )
    return Catalog(
        interfaces={},
        nodes={n.name: n for n in nodes},
        edges={e.name: e for e in edges},
        next_id=100,
    )


def delta(schema: Catalog, mode: WriteMode) -> GraphDelta:
    random = np.random.default_rng(7)
    people = pa.array([f"person-{i}" for i in random.permutation(PEOPLE)])
    companies = pa.array([f"company-{i}" for i in random.permutation(COMPANIES)])

    def nodes(ids: pa.Array) -> pa.Table:
        size = pa.array(random.integers(0, 1000, len(ids)))
        return pa.table({"id": ids, "code": ids, "size": size})

    def edges(prefix: str, count: int, targets: pa.Array) -> pa.Table:
        return pa.table(
            {
                "id": pa.array([f"{prefix}{i:08d}" for i in random.permutation(count)]),
                "src": people.take(pa.array(random.integers(0, PEOPLE, count))),
                "dst": targets.take(pa.array(random.integers(0, len(targets), count))),
                "since": pa.array(random.integers(0, 1000, count)),
            }
        )

    tables = {
        "node:Person": nodes(people),
        "node:Company": nodes(companies),
        "edge:Knows": edges("k", KNOWS, people),
        "edge:WorksAt": edges("w", WORKS_AT, companies),
    }
    return GraphDelta(
        tables={k: TableDelta(type=schema.table(k), mode=mode, rows=t) for k, t in tables.items()}
    )


def print_single_edge(schema: Catalog) -> None:
    """The fixed cost: one fresh edge between committed nodes."""
    people = pa.array([f"p{i}" for i in range(100)])
    size = pa.array([0] * 100)
    state = MemoryState({"node:Person": pa.table({"id": people, "code": people, "size": size})})
    row = pa.table({"id": ["e"], "src": ["p1"], "dst": ["p2"], "since": [1]})
    table = TableDelta(
        type=schema.table("edge:Knows"), mode=WriteMode.APPEND, rows=row, ids_fresh=True
    )
    change, rounds = GraphDelta(tables={"edge:Knows": table}), 2000
    started = time.perf_counter()
    for _ in range(rounds):
        validate(schema, change, state)
    print(f"single edge  {(time.perf_counter() - started) / rounds * 1e6:.0f} µs")


def main() -> None:
    arguments = sys.argv[1:]
    repeats = int(next((a for a in arguments if a.isdigit()), "9"))
    schema = catalog()
    total = PEOPLE + COMPANIES + KNOWS + WORKS_AT
    for mode in (WriteMode.APPEND, WriteMode.MERGE, WriteMode.OVERWRITE):
        change = delta(schema, mode)
        seconds: list[float] = []
        for _ in range(repeats):
            started = time.perf_counter()
            validate(schema, change, MemoryState())
            seconds.append(time.perf_counter() - started)
        best, median = min(seconds), sorted(seconds)[len(seconds) // 2]
        print(f"{mode:<12} best {best:.3f} s  median {median:.3f} s  {total / best:,.0f} rows/s")
    print_single_edge(schema)
    if "--memory" in arguments:
        involved = sum(
            t.rows.column(c).nbytes for t in change.tables.values() for c in t.type.system_columns
        )
        arrow = pa.proxy_memory_pool(pa.default_memory_pool())
        pa.set_memory_pool(arrow)
        tracemalloc.start()
        validate(schema, change, MemoryState())
        numpy_peak, arrow_peak = tracemalloc.get_traced_memory()[1], arrow.max_memory()
        print(
            f"id, src and dst {involved / 1e6:.0f} MB; "
            f"peak on top: NumPy {numpy_peak / 1e6:.0f} MB, Arrow {arrow_peak / 1e6:.0f} MB"
        )


if __name__ == "__main__":
    main()
