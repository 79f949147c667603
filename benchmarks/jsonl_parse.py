"""How fast JSONL is read, beside raw `pyarrow.json` on the same bytes; and export, and tables.

    python benchmarks/jsonl_parse.py [lines]

Raw `pyarrow.json` infers one wide row type for the whole file and checks nothing; ours gives one
typed, strictly checked table per type. Both use two threads on a machine with two cores.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable

import pyarrow as pa
import pyarrow.json as pj

from omnigraph.ids import SystemIds
from omnigraph.input.sources import sort_out
from omnigraph.input.tables import rows_from_table
from omnigraph.input.threads import read_input
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.json_text import write_jsonl

SCHEMA = """
node Person { name: String  born: Date?  score: F64? }
edge Knows: Person -> Person { since: I32? }
"""
CATALOG = compile_schema(SCHEMA)
ROUNDS = 5


def person(i: int) -> str:
    return (
        f'{{"type":"Person","data":{{"id":"p{i}","name":"Person number {i}",'
        f'"born":"{1950 + i % 70}-0{1 + i % 9}-1{i % 10}","score":{i * 0.37:.2f}}}}}\n'
    )


def knows(i: int, people: int) -> str:
    src, dst, year = i * 7 % people, i * 13 % people, 1950 + i % 70
    return (
        f'{{"edge":"Knows","from":"p{src}","to":"p{dst}","data":{{"id":"k{i}","since":{year}}}}}\n'
    )


def best_s(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """The fastest of some rounds: what the code costs, not what the machine did meanwhile."""
    times: list[float] = []
    for _ in range(ROUNDS):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times)


def ours(text: bytes):
    return read_input(sort_out(io.BytesIO(text)), CATALOG, SystemIds())


def compare(label: str, text: bytes) -> None:
    size_mb = len(text) / 1e6
    raw_s = best_s(lambda: pj.read_json(pa.BufferReader(text)))
    ours_s = best_s(lambda: ours(text))
    # CPU seconds of all threads: says the same on a machine that is busy with other things.
    raw_cpu_s = best_s(lambda: pj.read_json(pa.BufferReader(text)), time.process_time)
    ours_cpu_s = best_s(lambda: ours(text), time.process_time)
    print(
        f"{label:<28} {size_mb:6.1f} MB   pyarrow.json {size_mb / raw_s:6.1f} MB/s   "
        f"omnigraph {size_mb / ours_s:6.1f} MB/s   ratio {raw_s / ours_s:5.2f}   "
        f"ratio of CPU {raw_cpu_s / ours_cpu_s:5.2f}"
    )


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    half = lines // 2
    people = [person(i) for i in range(half)]
    edges = [knows(i, half) for i in range(half)]
    compare("nodes, then edges", "".join(people + edges).encode())
    mixed = "".join(a + b for a, b in zip(people, edges, strict=True)).encode()
    compare("nodes and edges in turn", mixed)
    spaced = mixed.replace(b'":', b'": ').replace(b',"', b', "')
    compare("in turn, json.dumps spacing", spaced)
    bare = "".join(e[: e.index(',"data"')] + "}\n" for e in edges).encode()
    compare("edges without data", bare)

    loaded = ours(mixed)
    for rows in loaded.values():
        batches = rows.rows.to_batches()
        seconds = best_s(lambda b=batches, t=rows.type: write_jsonl(t, b, io.BytesIO()))
        print(f"write_jsonl {rows.type.table_key:<16} {rows.rows.num_rows / seconds:12,.0f} rows/s")
        seconds = best_s(lambda r=rows: rows_from_table(r.type, r.rows, SystemIds()))
        print(f"rows_from_table {rows.type.table_key:<12} {1000 * seconds:9.2f} ms")


if __name__ == "__main__":
    main()
