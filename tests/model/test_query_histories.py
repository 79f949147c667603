"""Any query after any history, with every bound of the engine made small.

The other random test asks small graphs that were loaded at once, where most of what makes large
graphs fast never runs. Here graphs come in several commits, are emptied and filled again, and are
updated; the sizes from which the engine takes another way are drawn at random, and so are the caches
in memory and on disk and the columns that claim to be indexed. The past is asked too.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec import (
    aggregate,
    columns,
    expand,
    few,
    frame,
    join,
    lookups,
    order,
    world,
)
from omnigraph.query.params import bind
from omnigraph.query.topology import edge_parts, edges, id_table, overlay, sorting, vertices
from omnigraph.storage import compact, staging, table_memory, tables
from omnigraph.testing.clock import ManualClock
from support.examples import examples
from support.naive import NaiveGraph, evaluate, same
from support.random_graphs import RandomGraph, graphs
from support.random_queries import RandomQuery, cases
from support.random_worlds import NOW, WORLDS, RandomWorld

BOUNDS: tuple[tuple[Any, str, tuple[float, ...]], ...] = (
    (vertices, "FEW", (0, 1, 2, 16)),
    (vertices, "SCANS_PER_TABLE", (0, 1, 8)),
    (vertices, "SCANNED_MAX", (0, 2_000)),
    (vertices, "RECENT_MAX", (0, 2, 16_000)),
    (vertices, "ASKED_MAX", (1, 100_000)),
    (vertices, "GROUP_ROWS", (1, 3, 1 << 20)),
    (id_table, "BLOCK_ROWS", (1, 1 << 17)),
    (id_table, "ROUNDS_MAX", (1, 256)),
    (edge_parts, "SAVED_EDGES_MIN", (0, 0, 4, 100_000)),
    (edges, "PIECEWISE_MIN", (0, 1 << 20)),
    (sorting, "BUCKET_EDGES", (1, 3, 1 << 17)),
    (edges, "SMALL_CHANGE_MIN", (0, 2, 1_000)),
    (edges, "BYTES_MAX", (0, 1_000, 1 << 30)),
    (join, "SHARE_MIN", (1, 2, 32)),
    (columns, "FEW_ROWS", (1, 2, 2_000)),
    (columns, "REPEATS_MIN", (1, 4)),
    (columns, "SMALL_BYTES", (0, 100, 8 << 20)),
    (columns, "FETCH_COST", (0, 16_000)),
    (columns, "FETCHED_ROW_COST", (0, 1, 8)),
    (order, "CUT", (1, 2, 4)),
    (order, "COUNTED_MIN", (0, 1_000)),
    (expand, "DENSE_PART", (0, 1, 4, 1_000)),
    (expand, "EXACT", (0, 1 << 53)),
    (expand, "FEW_ORIGINS", (0, 32)),
    (frame, "FEW", (0, 256)),
    (frame, "EXACT", (0, 1 << 53)),
    (aggregate, "FEW", (0, 256)),
    (aggregate, "DENSE", (0, 1, 4)),
    (aggregate, "DENSE_MIN", (0, 1 << 20)),
    (lookups, "LOOKUP_BATCH", (1, 2, 10_000)),
    (world, "SCANNED_EDGES_MIN", (0, 200_000)),
    (world, "SCAN_COST", (0, 0.2, 0.5)),
    (world, "LOOKUP_COST", (0, 1, 40)),
    (world, "LOOKUP_START_COST", (0, 1, 6_000)),
    (tables, "PIECE_ROWS", (1, 1 << 18)),
    (table_memory, "KNOWN_CHUNKS_MAX", (1, 64)),
    (compact, "TAIL_MAX", (2, 5, 64)),
    (table_memory, "REMOVED_KNOWN_MAX", (0, 1, 16)),
    (overlay, "LAID_OVER_MIN", (0, 1 << 16)),
    (overlay, "OVERLAY_PART", (0, 2, 16)),
    (few, "FEW_RESULTS", (0, 1, 4)),
    (staging, "CACHE_BYTES_MAX", (0, 500, 256 << 20)),
    (table_memory, "SEED_ROWS_MAX", (0, 10_000)),
)
CACHES = ("0", "64", "300", "2000", "1e9")
INDEXED = ((), ("id",), ("src",), ("src", "dst"), ("id", "src", "dst"))
MODES = ("auto", "indexed", "csr")


class History:
    """One graph on its way, with the dice that decide about it."""

    def __init__(self, place: Path, schema: str, patch: pytest.MonkeyPatch, seed: int) -> None:
        self._clock = ManualClock()
        self.graph = omnigraph.init(place, schema, clock=self._clock)
        self.dice = random.Random(seed)
        self._patch = patch

    def close(self) -> None:
        self.graph.close()

    def load(self, rows: RandomGraph, size: int) -> None:
        for part in parts(rows, size):
            self.graph.load(part)

    def touch(self, rows: RandomGraph) -> None:
        """Write some rows again as they are: every one moves to another file."""
        for part in self.dice.sample(list(parts(rows, 3)), 1) if rows.source else ():
            self.graph.load(part, mode="merge")

    def empty(self, rows: RandomGraph) -> None:
        """All edges, one by one or together, then all nodes."""
        one_by_one = self.dice.random() < 0.2
        for edge in self.graph.catalog.edges.values():
            if not one_by_one:
                self.graph.mutate(f"delete {edge.name} where id is not null")
                continue
            for row in rows.rows[edge.table_key]:
                text = f"query q($id: String) {{ delete {edge.name} where id = $id }}"
                self.graph.mutate(text, {"id": row["id"]})
        for node in self.graph.catalog.nodes.values():
            self.graph.mutate(f"delete {node.name} where id is not null")

    def check(
        self, queries: list[RandomQuery], expected: NaiveGraph, commit: str | None = None
    ) -> None:
        if self.dice.random() < 0.3:
            # Like another process: it knows nothing but what is on disk.
            self.graph.close()
            self.graph = omnigraph.open(self.graph.uri, clock=self._clock)
        for query in queries:
            note(f"{query.text}\nparams = {query.params}")
            (compiled,) = compile_queries(query.text, self.graph.catalog)
            assert isinstance(compiled.body, typed.Read)
            params = bind(compiled.params, query.params)
            answer = evaluate(compiled.body, expected, self.graph.catalog, params, NOW)
            for mode in self.dice.sample(MODES, 2):
                self._patch.setenv("OMNIGRAPH_TRAVERSAL_MODE", mode)
                table = self.graph.query(query.text, query.params, commit=commit).to_arrow()
                difference = same(table.to_pylist(), answer)
                assert difference is None, f"{mode}: {difference}"


def parts(rows: RandomGraph, size: int) -> Iterator[dict[str, list[dict[str, Any]]]]:
    for name, own in rows.source.items():
        for start in range(0, len(own), size):
            yield {name: own[start : start + size]}


@pytest.mark.parametrize("world_", WORLDS, ids=lambda w: w.name)
@settings(max_examples=examples(4))
@given(data=st.data())
def test_any_history_with_any_bounds(world_: RandomWorld, data: st.DataObject) -> None:
    case, other = data.draw(cases(world_)), data.draw(graphs(world_))
    queries = list(case.queries)
    seed = data.draw(st.integers(0, 2**32))
    dice = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        for module, name, values in BOUNDS:
            patch.setattr(module, name, dice.choice(values))
        patch.setenv(columns.CACHE_VARIABLE, dice.choice(CACHES))
        if indexed := dice.choice(INDEXED):
            patch.setattr(tables.Table, "indexed_columns", frozenset(indexed))
        patch.setenv("OMNIGRAPH_CACHE_DIR", dice.choice((folder, "off")))
        history = History(Path(folder) / "g", world_.schema, patch, seed)
        with contextlib.closing(history):
            before = None
            if other.source:
                history.load(other, dice.choice((4, 100)))
                history.check(queries, other.naive)
                before = history.graph.commits(limit=1)[0].id
                history.empty(other)
            history.load(case.graph, dice.choice((3, 100)))
            history.check(queries, case.graph.naive)
            history.touch(case.graph)
            history.check(queries, case.graph.naive)
            if before is not None:
                history.check(queries, other.naive, before)
