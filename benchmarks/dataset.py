"""The benchmark graph, the same on every run: people, documents, who knows and mentions whom.

Size M is 200k nodes and 1M edges. Keys are strings; `Knows` has power-law degrees, and no pair of
people twice, so that paths and pairs are counted alike by every engine.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SIZES = {"S": (10_000, 50_000), "M": (200_000, 1_000_000), "L": (1_000_000, 5_000_000)}
SCHEMA = """
node Person { id: String @key  name: String  age: I32  city: String  @range(age, 0..150) }
node Document { id: String @key  title: String  body: String  embedding: Vector(128) }
edge Knows: Person -> Person { since: I32 }
edge Mentions: Document -> Person
"""


def strings(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pa.array([f"{prefix}{n}" for n in numbers.tolist()], pa.string())


def acquaintances(
    rng: np.random.Generator, people: int, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Who knows whom: power-law degrees on both sides, no pair twice, nobody themselves."""
    out_weight = np.cumsum(np.minimum(rng.pareto(1.6, people) + 0.3, 1000))
    in_weight = np.cumsum(np.minimum(rng.pareto(1.6, people) + 0.3, 1000))
    pairs = np.empty(0, np.int64)
    while len(pairs) < count:
        draws = int((count - len(pairs)) * 1.15) + 100
        src = np.searchsorted(out_weight, rng.random(draws) * out_weight[-1])
        dst = np.searchsorted(in_weight, rng.random(draws) * in_weight[-1])
        pairs = np.unique(np.concatenate([pairs, (src * people + dst)[src != dst]]))
    pairs = rng.permutation(pairs)[:count]
    return pairs // people, pairs % people


def tables(size: str, seed: int = 7) -> dict[str, pa.Table]:
    """Arrow tables by type, in the column order and types of the graph's own tables."""
    nodes, edges = SIZES[size]
    rng = np.random.default_rng(seed)
    people, documents = int(nodes * 0.8), int(nodes * 0.2)
    knows, mentions = int(edges * 0.8), int(edges * 0.2)
    src, dst = acquaintances(rng, people, knows)
    words = np.array([f"word{i}" for i in range(5000)])
    zipf = 1 / np.arange(1, 5001) ** 1.05
    picks = rng.choice(5000, size=(documents, 60), p=zipf / zipf.sum())
    embedding = rng.normal(size=documents * 128).astype(np.float32)
    required = {"nullable": False}
    text, number = pa.string(), pa.int32()
    return {
        "Person": pa.table(
            [
                strings("p", np.arange(people)),
                pa.array([f"Name{i % 9973} Family{i % 7919}" for i in range(people)]),
                pa.array(rng.integers(16, 90, people), number),
                strings("city", rng.integers(0, 200, people)),
            ],
            schema=pa.schema(
                [
                    pa.field(n, t, **required)
                    for n, t in [("id", text), ("name", text), ("age", number), ("city", text)]
                ]
            ),
        ),
        "Document": pa.table(
            [
                strings("d", np.arange(documents)),
                pa.array([f"Title {words[p[0]]} {i}" for i, p in enumerate(picks)]),
                pa.array([" ".join(words[p]) for p in picks]),
                pa.FixedSizeListArray.from_arrays(pa.array(embedding), 128),
            ],
            schema=pa.schema(
                [
                    pa.field("id", text, **required),
                    pa.field("title", text, **required),
                    pa.field("body", text, **required),
                    pa.field("embedding", pa.list_(pa.float32(), 128), **required),
                ]
            ),
        ),
        "Knows": pa.table(
            [
                strings("k", np.arange(knows)),
                strings("p", src),
                strings("p", dst),
                pa.array(rng.integers(1990, 2026, knows), number),
            ],
            schema=pa.schema(
                [
                    pa.field(n, t, **required)
                    for n, t in [("id", text), ("src", text), ("dst", text), ("since", number)]
                ]
            ),
        ),
        "Mentions": pa.table(
            [
                strings("m", np.arange(mentions)),
                strings("d", rng.integers(0, documents, mentions)),
                strings("p", (people * rng.random(mentions) ** 2).astype(np.int64)),
            ],
            schema=pa.schema([pa.field(n, text, **required) for n in ("id", "src", "dst")]),
        ),
    }
