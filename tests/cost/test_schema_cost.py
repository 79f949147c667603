"""Object-store requests of a schema change: they follow the types that change, and nothing else."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA_TEXT_REQUESTS_MAX = 12
"""A change of no table: two schema objects and a publish."""
SCHEMA_COLUMN_REQUESTS_MAX = 20
SCHEMA_FILL_REQUESTS_MAX = 32
"""The file of a column is written for every fragment."""


def schema(types: int, first: str = "") -> str:
    return "".join(
        f"node T{i} {{ name: String @key  size: I64? {first if i == 0 else ''} }}\n"
        for i in range(types)
    )


@pytest.mark.parametrize(("types", "rows", "depth"), [(2, 1, 1), (200, 1, 1), (2, 5_000, 30)])
def test_a_schema_change_costs_what_it_changes(
    types: int, rows: int, depth: int, s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, schema(types)) as graph:
        graph.load(
            {f"T{t}": [{"name": f"n{i}"} for i in range(rows)] for t in range(min(types, 8))}
        )
        for i in range(depth):
            graph.load([{"type": "T1", "data": {"name": f"d{i}"}}])
        costs: dict[str, int] = {}
        for what, text in {
            "texts": "// a comment\n" + schema(types),
            "add": schema(types, "n: I32?"),
            "rename": schema(types, 'm: I32? @rename_from("n")'),
            "fill": schema(types, "m: I32?  f: I32 @backfill(1)"),
        }.items():
            graph.settle()
            with measure(s3_proxy) as io:
                graph.schema_apply(text)
                graph.settle()
            costs[what] = io.count()
        assert costs["texts"] <= SCHEMA_TEXT_REQUESTS_MAX, costs
        assert costs["add"] <= SCHEMA_COLUMN_REQUESTS_MAX, costs
        assert costs["rename"] <= SCHEMA_COLUMN_REQUESTS_MAX, costs
        assert costs["fill"] <= SCHEMA_FILL_REQUESTS_MAX, costs
        assert {r["f"] for r in graph.snapshot().rows("T0")} == {1}
