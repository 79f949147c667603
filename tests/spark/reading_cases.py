"""A graph with everything that can make reading hard, the same on every run.

All types with nulls, many small fragments, rows updated and deleted, a type that was never written
to, old commits; and how a DataFrame is compared with what the local engine reads.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.manifest.pinned import PinnedGraph
from omnigraph.schema.arrow import table_schema
from omnigraph.spark.arrow import from_spark

SCHEMA = """
node Thing {
  name: String @key
  flag: Bool?  small: I32?  big: I64?  count: U32?  huge: U64?  ratio: F32?  weight: F64?
  born: Date?  seen: DateTime?  image: Blob?  place: Vector(3)?  colour: enum(red, green)?
  names: [String]?  sizes: [I64]?  flags: [Bool]?  days: [Date]?  times: [DateTime]?
}
node Meter { code: String @key  level: U64?  readings: [U32]?  limits: [U64]?  unit: String? }
node Note { text: String }
node Never { x: I32 }
edge Linked: Thing -> Thing { since: I32?  share: F64? }
edge Watches: Meter -> Thing
edge NeverLinked: Note -> Note
"""
TYPES = ("Thing", "Meter", "Note", "Never", "Linked", "Watches", "NeverLinked")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(rng: random.Random) -> datetime:
    edges = [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)]
    usual = _EPOCH + timedelta(milliseconds=rng.randrange(-(10**13), 10**13))
    return rng.choice([*edges, usual, usual, usual])


def day(rng: random.Random) -> date:
    return rng.choice([date(1, 1, 1), date(9999, 12, 31), date(2026, rng.randrange(1, 13), 5)])


def thing(rng: random.Random, name: str) -> dict[str, Any]:
    def some(make: Any) -> Any:
        return None if rng.random() < 0.25 else make()

    def listed(make: Any) -> Any:
        return [make() for _ in range(rng.randrange(4))]

    text = ["", "é", "a\nb", "日本", '"quoted"', "x" * 300]
    return {
        "name": name,
        "flag": some(lambda: rng.random() < 0.5),
        "small": some(lambda: rng.choice([-(2**31), 2**31 - 1, rng.randrange(-5, 50)])),
        "big": some(lambda: rng.choice([-(2**63), 2**63 - 1, rng.randrange(10**12)])),
        "count": some(lambda: rng.choice([0, 2**32 - 1, rng.randrange(100)])),
        "huge": some(lambda: rng.choice([0, 2**64 - 1, 2**63, rng.randrange(100)])),
        "ratio": some(lambda: rng.choice([0.0, -0.0, 0.5, 1.5, 3.25, float(2**100)])),
        "weight": some(lambda: rng.choice([0.0, -0.0, 1e308, 5e-324, rng.random()])),
        "born": some(lambda: day(rng)),
        "seen": some(lambda: instant(rng)),
        "image": some(lambda: rng.randbytes(rng.choice([0, 3, 5000]))),
        "place": some(lambda: [rng.choice([0.25, -2.0, 7.5]) for _ in range(3)]),
        "colour": some(lambda: rng.choice(["red", "green"])),
        "names": some(lambda: listed(lambda: rng.choice(text))),
        "sizes": some(lambda: listed(lambda: rng.randrange(-(2**63), 2**63))),
        "flags": some(lambda: listed(lambda: rng.random() < 0.5)),
        "days": some(lambda: listed(lambda: day(rng))),
        "times": some(lambda: listed(lambda: instant(rng))),
    }


def meter(rng: random.Random, code: str) -> dict[str, Any]:
    return {
        "code": code,
        "level": rng.choice([None, 0, 2**64 - 1, rng.randrange(1000)]),
        "readings": rng.choice([None, [], [0, 2**32 - 1]]),
        "limits": rng.choice([None, [], [2**64 - 1, 7]]),
        "unit": rng.choice([None, "bar", "K"]),
    }


def build(root: str | Path, seed: int = 5) -> omnigraph.Graph:
    """Many commits: appends make fragments, merges and deletions leave holes in them."""
    rng = random.Random(seed)
    graph = omnigraph.init(root, SCHEMA)
    things = [f"t{i}" for i in range(240)]
    for start in range(0, 240, 30):
        graph.load([thing(rng, n) for n in things[start : start + 30]], type="Thing")
    graph.load([meter(rng, f"m{i}") for i in range(40)], type="Meter")
    graph.load([{"text": f"note {i}"} for i in range(10)], type="Note")
    for number in range(3):
        graph.load(
            [
                {
                    "src": rng.choice(things),
                    "dst": rng.choice(things),
                    "since": rng.choice([None, rng.randrange(1990, 2026)]),
                    "share": rng.choice([None, rng.random()]),
                }
                for _ in range(50 + number)
            ],
            type="Linked",
        )
    watching = [{"src": f"m{i % 40}", "dst": things[i]} for i in range(60)]
    graph.load(watching, type="Watches")
    graph.load([thing(rng, n) for n in things[10:50:3]], type="Thing", mode="merge")
    graph.mutate('delete Meter where unit = "K"')
    graph.mutate("delete Thing where small > 40")
    graph.load([thing(rng, f"u{i}") for i in range(5)], type="Thing", mode="merge")
    return graph


def pinned_of(graph: omnigraph.Graph, view: omnigraph.SnapshotView | None = None) -> PinnedGraph:
    """What the public API will do one day."""
    chosen = view or graph.snapshot()
    return PinnedGraph.of(graph._repository, chosen._snapshot)


def rows_of(frame: Any, graph_type: Any) -> pa.Table:
    """A DataFrame in the types of the graph."""
    arrow: pa.Table = frame.toArrow()
    stored = table_schema(graph_type)
    schema = pa.schema([stored.field(name) for name in arrow.schema.names])
    return pa.Table.from_batches([from_spark(b, schema) for b in arrow.to_batches()], schema)


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    """Equal rows, in any order."""
    assert found.schema == expected.schema
    by_id = [("id", "ascending")]
    assert found.sort_by(by_id).equals(expected.sort_by(by_id))
