"""A diff over fifty commits against raw pylance: median milliseconds of interleaved arms, one run.

    python benchmarks/diff.py [nodes] [edges] [rounds] [rows]

A round is two commits: one merges so many new and so many touched nodes, one deletes an edge.

Both arms open the same two versions of the same tables with nothing in memory, find the changed
rows and read their images before and after. The floor is the fastest plain way that Lance has: it
keeps in which version a row was made and last written, so a filter finds what is new, and row ids
that only the older version has were deleted. It does not compare images (a rewrite counts as a
change), does not sort, and works in one lineage only. The floor is run twice: the distance of the
two is the machine's noise.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import omnigraph
from omnigraph.branch.diff import Diff
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.location import locate

SCHEMA = """
node Person { name: String @key  age: I32?  city: String?  score: F64?  bio: String? }
edge Knows: Person -> Person { since: I32?  note: String? }
"""
RUNS = 15
WARM_RUNS = 2


def people(numbers: range | list[int], age: int) -> pa.Table:
    return pa.table(
        {
            "name": [f"person-{i}" for i in numbers],
            "age": pa.array([(i + age) % 90 for i in numbers], "int32"),
            "city": [f"city-{i % 500}" for i in numbers],
            "score": [i / 7 for i in numbers],
            "bio": [f"likes the number {i} and nothing else" for i in numbers],
        }
    )


def build(root: Path, nodes: int, edges: int, rounds: int, rows: int) -> None:
    """A large first load, then commits that insert, rewrite, update and delete."""
    order = random.Random(1)
    with omnigraph.init(root, SCHEMA) as graph:
        sources = [f"person-{order.randrange(nodes)}" for _ in range(edges)]
        targets = [f"person-{order.randrange(nodes)}" for _ in range(edges)]
        knows = pa.table(
            {
                "id": [f"edge-{i}" for i in range(edges)],
                "src": sources,
                "dst": targets,
                "since": pa.array([i % 30 for i in range(edges)], "int32"),
                "note": [f"note {i}" for i in range(edges)],
            }
        )
        graph.load({"Person": people(range(nodes), 0), "Knows": knows})
        for i in range(rounds):
            fresh = range(nodes + i * rows, nodes + (i + 1) * rows)
            touched = order.sample(range(nodes), rows)
            graph.load({"Person": people([*fresh, *touched], i + 1)}, mode="merge")
            graph.mutate(f'query m() {{ delete Knows where note = "note {i * 17}" }}')


def raw(repository: Repository, before: Snapshot, after: Snapshot) -> dict[str, tuple[int, int]]:
    """Rows changed and gone per table; all their images are read."""
    found: dict[str, tuple[int, int]] = {}
    for key, pin in after.pins.items():
        old = before.pins[key]
        if old.name == pin.name:
            continue
        then = repository.tables.open(old.name).dataset
        now = repository.tables.open(pin.name).dataset
        columns = [*now.schema.names, "_row_created_at_version"]
        new = now.to_table(
            columns=columns,
            filter=f"_row_last_updated_at_version > {old.name.version}",
            with_row_id=True,
        )
        updated = new["_row_created_at_version"].to_numpy() <= old.name.version
        ids_then, ids_now = (row_ids(version) for version in (then, now))
        gone = np.setdiff1d(ids_then, ids_now, assume_unique=True)
        wanted = np.concatenate([new["_rowid"].to_numpy()[updated], gone])
        images = then._take_rows(wanted.tolist(), columns=then.schema.names)
        assert images.num_rows == len(wanted)
        found[key] = new.num_rows, len(gone)
    return found


def row_ids(version: lance.LanceDataset) -> np.ndarray:
    return version.to_table(columns=[], with_row_id=True)["_rowid"].to_numpy()


def ours(repository: Repository, before: Snapshot, after: Snapshot) -> dict[str, tuple[int, int]]:
    """The same by the diff, whose pieces hold the images."""
    diff = Diff(repository, before, after)
    read = sum(len(piece.ids) for piece in diff.pieces())
    counts = diff.counts
    assert read == sum(c.total for c in counts.values())
    return {key: (c.inserted + c.updated, c.deleted) for key, c in counts.items()}


def counts(repository: Repository, before: Snapshot, after: Snapshot) -> dict[str, tuple[int, int]]:
    """Only how many."""
    found = Diff(repository, before, after).counts
    return {key: (c.inserted + c.updated, c.deleted) for key, c in found.items()}


def lines(repository: Repository, before: Snapshot, after: Snapshot) -> dict[str, tuple[int, int]]:
    """Everything as JSON lines."""
    diff = Diff(repository, before, after)
    for _ in diff.lines():
        pass
    return {key: (c.inserted + c.updated, c.deleted) for key, c in diff.counts.items()}


def main(nodes: int, edges: int, rounds: int, rows: int) -> None:
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as work:
        root = Path(work) / "graph"
        build(root, nodes, edges, rounds, rows)
        arms: dict[str, Callable] = {
            "raw": raw,
            "raw again": raw,
            "diff": ours,
            "diff, counts": counts,
            "diff, JSON": lines,
        }
        times: dict[str, list[float]] = {name: [] for name in arms}
        answers: dict[str, dict] = {}
        order = random.Random(1)
        for _ in range(RUNS + WARM_RUNS):
            for name in order.sample(list(arms), len(arms)):
                # Opened anew each time: no arm finds anything in memory.
                repository = Repository(locate(str(root)))
                head = repository.branch("main").head.snapshot
                before = repository.branch("main").store.at(2).snapshot
                repository.schema(head.schema_hash)
                started = time.perf_counter()
                answers[name] = arms[name](repository, before, head)
                times[name].append((time.perf_counter() - started) * 1e3)
                repository.close()
        print(f"{nodes:,} nodes, {edges:,} edges, {2 * rounds} commits, local disk, median ms")
        medians = {name: statistics.median(values[WARM_RUNS:]) for name, values in times.items()}
        for name, value in medians.items():
            print(f"  {name:14} {value:8.1f}")
        print(f"  A/A spread     {medians['raw again'] / medians['raw']:8.2f}x")
        print(f"  diff / raw     {medians['diff'] / medians['raw']:8.2f}x")
        print(f"  changed, gone  {answers['diff']}")
        for key, (changed, gone) in answers["diff"].items():
            assert answers["raw"][key][0] >= changed and answers["raw"][key][1] == gone


if __name__ == "__main__":
    main(*(int(a) for a in [*sys.argv[1:], *["200000", "400000", "25", "20"][len(sys.argv) - 1 :]]))
