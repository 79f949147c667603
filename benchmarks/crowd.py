"""Many threads that write single edges through one handle, beside one thread, in one run.

    python benchmarks/crowd.py [--threads 64] [--rounds 3] [--latency-ms 20]

Each row is a store: a local folder, and a real S3 server behind a proxy that delays every request.
One thread and the crowd take turns on the same graph; writes a second and their ratio are medians
over the rounds. The writers run in a process of their own, so that the proxy does not share their
interpreter. Every edge is there in the end, and every commit has a state of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import omnigraph

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
ADD = "query add($a: String, $b: String) { insert Knows { from: $a, to: $b } }"
PEOPLE = 1_000


def write(root: str, threads: int, rounds: int, one_count: int) -> dict[str, float]:
    """Writes a second of one thread and of many, and what the graph has in the end."""
    with omnigraph.init(root, SCHEMA) as graph:
        names = [f"p{i}" for i in range(PEOPLE)]
        graph.load([{"type": "Person", "data": {"name": name}} for name in names])
        graph.load([{"edge": "Knows", "from": "p0", "to": "p1"}])

        def add(number: int) -> None:
            ends = {"a": names[number % PEOPLE], "b": names[(number + 1) % PEOPLE]}
            graph.mutate(ADD, params=ends)

        def rate(count: int, run: Callable[[int], None]) -> float:
            started = time.perf_counter()
            run(count)
            return count / (time.perf_counter() - started)

        def one(count: int) -> None:
            for number in range(count):
                add(number)

        def many(count: int) -> None:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(add, range(count)))

        one(3)
        many(threads)
        alone, crowd, versions = [], [], []
        for _ in range(rounds):
            alone.append(rate(one_count, one))
            before = graph.commits()[0].manifest_version
            crowd.append(rate(threads * 8, many))
            versions.append(graph.commits()[0].manifest_version - before)
        wanted = 1 + 3 + threads + rounds * (one_count + threads * 8)
        found = graph.snapshot().count("Knows")
        if found != wanted:
            raise SystemExit(f"{found} edges, {wanted} were written")
    ratios = [many / one for many, one in zip(crowd, alone, strict=True)]
    return {
        "one": statistics.median(alone),
        "crowd": statistics.median(crowd),
        "ratio": statistics.median(ratios),
        "together": threads * 8 / statistics.median(versions),
    }


def elsewhere(root: str, arguments: argparse.Namespace, one_count: int) -> dict[str, float]:
    """The same in a process of its own."""
    numbers = [str(n) for n in (arguments.threads, arguments.rounds, one_count)]
    done = subprocess.run(
        [sys.executable, __file__, "--write", root, *numbers],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def shown(store: str, found: dict[str, float]) -> None:
    print(
        f"{store:24} {found['one']:9.1f} {found['crowd']:9.1f} {found['ratio']:7.1f}x"
        f" {found['together']:9.1f}",
        flush=True,
    )


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        root, *numbers = sys.argv[2:]
        print(json.dumps(write(root, *(int(n) for n in numbers))))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=20.0)
    parser.add_argument("--store", choices=("local", "s3", "both"), default="both")
    arguments = parser.parse_args()
    print(f"{'store':24} {'one/s':>9} {'crowd/s':>9} {'ratio':>8} {'together':>9}")
    if arguments.store in ("local", "both"):
        with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
            shown("local", elsewhere(str(Path(folder) / "g"), arguments, 100))
    if arguments.store in ("s3", "both"):
        from omnigraph.testing.proxy import CountingProxy
        from omnigraph.testing.s3 import BUCKET, run_s3_server

        with run_s3_server() as server, CountingProxy(server.endpoint) as proxy:
            os.environ.update(server.env(proxy.endpoint))
            proxy.latency_s = arguments.latency_ms / 1e3
            name = f"S3, {arguments.latency_ms:g} ms a request"
            shown(name, elsewhere(f"s3://{BUCKET}/crowd", arguments, 20))


if __name__ == "__main__":
    main()
