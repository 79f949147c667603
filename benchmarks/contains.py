"""`contains` on a handle just opened: by the index of parts, or by the whole column.

    python benchmarks/contains.py [rows] [rounds]

Texts of about 200 bytes of made-up words. Both arms are the same graph after `index build` and the
same query; the second one never asks the index. They take turns, each on a handle of its own, and
every answer is compared with that of plain Python. *Again* is the same question once more on the
same handle: there the column is in memory, or the index is.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import dataclass, field

import pyarrow as pa

import omnigraph
from omnigraph.query.exec import world
from timing import table

SCHEMA = "node Doc { name: String @key  body: String @index }"
QUERY = "query q($part: String) { match { $d: Doc  $d.body contains $part } return { $d.name } }"
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
WEIGHTS = [120, 91, 81, 77, 73, 70, 63, 60, 60, 43, 40, 29, 27, 26, 23, 22, 20, 18, 11, 15, 20, 7]
BYTES = 200
FINDS_PARTS = world.NodeTable.finds_parts
world.PARTS_ROWS_MIN = 1


@dataclass
class Arm:
    """One way to ask for one part."""

    name: str
    asks_index: bool
    part: str
    first: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)


def words(draw: random.Random) -> list[str]:
    weights = WEIGHTS + [2] * (len(LETTERS) - len(WEIGHTS))
    return ["".join(draw.choices(LETTERS, weights, k=draw.randint(2, 11))) for _ in range(20_000)]


def texts(rows: int, draw: random.Random) -> list[str]:
    known = words(draw)
    return [" ".join(draw.choices(known, k=BYTES // 7)) for _ in range(rows)]


def main(rows: int, rounds: int) -> None:
    draw = random.Random(1)
    bodies = texts(rows, draw)
    bodies[rows // 2] += " Zanzibar"
    longest = max(bodies[7].split(), key=len)
    parts = {
        "one row": "Zanzibar",
        "a word": longest,
        "three letters": longest[:3],
        "no letters": " e",
    }
    with tempfile.TemporaryDirectory() as root:
        with omnigraph.init(root, SCHEMA) as graph:
            names = [f"d{i}" for i in range(rows)]
            graph.load({"Doc": pa.table({"name": names, "body": bodies})})
            started, busy = time.perf_counter(), time.process_time()
            graph.build_indexes()
            spent = time.perf_counter() - started, time.process_time() - busy
            sizes = {
                str(s.kind): s.byte_count for s in graph.indexes() if s.property_name == "body"
            }
        print(f"{rows:,} rows, {sum(map(len, bodies)) / 1e6:.0f} MB of text, {rounds} rounds")
        print(
            f"index build {spent[0]:.1f} s, {spent[1]:.1f} s of processor; bytes of indexes {sizes}"
        )
        lines: list[list[str]] = []
        for what, part in parts.items():
            expected = {n for n, body in zip(names, bodies, strict=True) if part in body}
            arms = [Arm("index", True, part), Arm("column", False, part)]
            for _ in range(rounds):
                for arm in draw.sample(arms, len(arms)):
                    ask(root, arm, expected)
            lines += [[what, f"{len(expected):,}", *shown(arm)] for arm in arms]
        table(["part", "rows found", "arm", "first ms", "again ms"], lines)


def ask(root: str, arm: Arm, expected: set[str]) -> None:
    world.NodeTable.finds_parts = FINDS_PARTS if arm.asks_index else lambda *_: False
    with omnigraph.open(root) as graph:
        graph.snapshot()
        for times in (arm.first, arm.again):
            started = time.perf_counter()
            found = graph.query(QUERY, {"part": arm.part})
            names = found.to_arrow().column(0).to_pylist()
            times.append(time.perf_counter() - started)
            assert set(names) == expected and len(names) == len(expected)


def shown(arm: Arm) -> list[str]:
    """The least of the rounds: other work on the machine can only add to it."""
    return [arm.name, f"{min(arm.first) * 1e3:.1f}", f"{min(arm.again) * 1e3:.1f}"]


if __name__ == "__main__":
    numbers = [int(a) for a in sys.argv[1:]]
    main(*(numbers + [200_000, 5][len(numbers) :]))
