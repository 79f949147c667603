"""The benchmark graph, the same on every run: people, documents, who knows and mentions whom.

Size M is 200k nodes and 1M edges. Keys are strings; `Knows` has power-law degrees, and no pair of
people twice, so that paths and pairs are counted alike by every engine. XL is too large to be made
at once: ``batches`` gives it in parts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SIZES = {
    "S": (10_000, 50_000),
    "M": (200_000, 1_000_000),
    "L": (1_000_000, 10_000_000),
    "XL": (10_000_000, 100_000_000),
}
BATCH_NODES, BATCH_EDGES = 1_000_000, 10_000_000
SCHEMA = """
node Person { id: String @key  name: String  age: I32  city: String  @range(age, 0..150) }
node Document { id: String @key  title: String  body: String  embedding: Vector(128) }
edge Knows: Person -> Person { since: I32 }
edge Mentions: Document -> Person
"""


def strings(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(pa.string()), "")


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
    written = document_table(rng, np.arange(documents))
    return {
        "Person": person_table(rng, np.arange(people)),
        "Document": written,
        "Knows": knows_table(rng, np.arange(knows), src, dst),
        "Mentions": mentions_table(rng, np.arange(mentions), documents, people),
    }


def batches(size: str, seed: int = 7) -> Iterator[dict[str, pa.Table]]:
    """The same in parts: first all nodes, then edges. Pairs may occur again in another part."""
    nodes, edges = SIZES[size]
    rng = np.random.default_rng(seed)
    people, documents = int(nodes * 0.8), int(nodes * 0.2)
    for start in range(0, nodes, BATCH_NODES):
        count = min(BATCH_NODES, nodes - start)
        p, d = (np.arange(int(start * part), int((start + count) * part)) for part in (0.8, 0.2))
        yield {"Person": person_table(rng, p), "Document": document_table(rng, d)}
    for start in range(0, edges, BATCH_EDGES):
        count = min(BATCH_EDGES, edges - start)
        k, m = (np.arange(int(start * part), int((start + count) * part)) for part in (0.8, 0.2))
        src, dst = acquaintances(rng, people, len(k))
        yield {
            "Knows": knows_table(rng, k, src, dst),
            "Mentions": mentions_table(rng, m, documents, people),
        }


def person_table(rng: np.random.Generator, numbers: np.ndarray) -> pa.Table:
    names = (strings("Name", numbers % 9973), strings("Family", numbers % 7919))
    columns = {
        "id": strings("p", numbers),
        "name": pc.binary_join_element_wise(*names, " "),
        "age": pa.array(rng.integers(16, 90, len(numbers)), pa.int32()),
        "city": strings("city", rng.integers(0, 200, len(numbers))),
    }
    return required(columns)


def document_table(rng: np.random.Generator, numbers: np.ndarray) -> pa.Table:
    words = np.array([f"word{i}" for i in range(5000)])
    zipf = 1 / np.arange(1, 5001) ** 1.05
    picks = rng.choice(5000, size=(len(numbers), 60), p=zipf / zipf.sum())
    embedding = rng.normal(size=len(numbers) * 128).astype(np.float32)
    columns = {
        "id": strings("d", numbers),
        "title": pa.array(
            [f"Title {words[p[0]]} {i}" for i, p in zip(numbers.tolist(), picks, strict=True)]
        ),
        "body": pa.array([" ".join(words[p]) for p in picks]),
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(embedding), 128),
    }
    return required(columns)


def knows_table(
    rng: np.random.Generator, numbers: np.ndarray, src: np.ndarray, dst: np.ndarray
) -> pa.Table:
    since = pa.array(rng.integers(1990, 2026, len(numbers)), pa.int32())
    ends = {"src": strings("p", src), "dst": strings("p", dst)}
    return required({"id": strings("k", numbers), **ends, "since": since})


def mentions_table(
    rng: np.random.Generator, numbers: np.ndarray, documents: int, people: int
) -> pa.Table:
    columns = {
        "id": strings("m", numbers),
        "src": strings("d", rng.integers(0, documents, len(numbers))),
        "dst": strings("p", (people * rng.random(len(numbers)) ** 2).astype(np.int64)),
    }
    return required(columns)


def required(columns: dict[str, pa.Array]) -> pa.Table:
    fields = [pa.field(name, column.type, nullable=False) for name, column in columns.items()]
    return pa.Table.from_arrays(list(columns.values()), schema=pa.schema(fields))
