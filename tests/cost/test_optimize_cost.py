"""Object-store requests of upkeep: linear in the types that changed, whatever else there is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import omnigraph
from omnigraph.housekeeping.projection import COMMITS_PER_TURN
from omnigraph.testing.measure import Measured, measure
from omnigraph.testing.proxy import CountingProxy

TYPES = 200
OPTIMIZE_REQUESTS_PER_TYPE_MAX = 40
OPTIMIZE_REQUESTS_MAX = 20
WRITE_REQUESTS_MAX = 12
COLD_OPEN_REQUESTS_MAX = 6
TURN_REQUESTS_MAX = 32
"""Of every 32nd commit, beside those of the write."""


def schema() -> str:
    return "\n".join(
        f"node Kind{i} {{ code: String @key  size: I64? @index  note: String? }}"
        for i in range(TYPES)
    )


def row(kind: int, code: str) -> dict:
    return {"type": f"Kind{kind}", "data": {"code": code, "size": 1}}


def test_optimize_costs_requests_for_changed_types_only(
    tmp_path: Path, copied_to_s3: Callable[[Path], str], s3_proxy: CountingProxy
) -> None:
    counts: dict[int, int] = {}
    with omnigraph.init(tmp_path / "g", schema()) as graph:
        graph.load([row(i, "a") for i in range(TYPES)])
        graph.optimize()
    place = copied_to_s3(tmp_path / "g")
    with omnigraph.open(place) as graph:
        assert graph.optimize().commit is None
        for changed in (0, 1, 4):
            for code in ("b", "c"):
                if changed:
                    graph.load([row(i, f"{code}{changed}") for i in range(changed)])
            graph.settle()
            with measure(s3_proxy) as io:
                done = graph.optimize()
                graph.settle()
            assert sum(t.committed for t in done.tables) == changed
            counts[changed] = io.count()
        with measure(s3_proxy) as io:
            assert graph.optimize().commit is None
        assert io.count() == 1, io.log()
    assert counts[0] == 1, "a look whether somebody published"
    assert counts[1] <= OPTIMIZE_REQUESTS_MAX + OPTIMIZE_REQUESTS_PER_TYPE_MAX
    assert counts[4] <= OPTIMIZE_REQUESTS_MAX + 4 * OPTIMIZE_REQUESTS_PER_TYPE_MAX, counts
    with omnigraph.open(place) as cold:
        with measure(s3_proxy) as io:
            assert cold.optimize().commit is None
        assert io.count() <= 3, io.log()


def test_rows_of_small_commits_are_rewritten_once_and_the_rest_is_left_alone(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    """Optimize after N one-row commits writes at most twice the bytes of those rows."""
    with omnigraph.init(s3_proxied_root, "node P { name: String @key  text: String? }") as graph:
        graph.load(
            [{"type": "P", "data": {"name": f"n{i}", "text": "x" * 50}} for i in range(5000)]
        )
        graph.optimize()
        graph.settle()
        small = 0
        for i in range(30):
            with measure(s3_proxy) as io:
                graph.load([{"type": "P", "data": {"name": f"m{i}", "text": "y" * 50}}])
                graph.settle()
            small += sum(r.bytes_sent for r in io.requests if "/data/" in r.path)
        with measure(s3_proxy) as io:
            assert graph.optimize().commit is not None
            graph.settle()
        written = sum(
            r.bytes_sent for r in io.requests if "/data/" in r.path or "/_indices/" in r.path
        )
    assert written <= 2 * small, (written, small)


EDGES = "node P { name: String @key }\nedge E: P -> P"
DEPTH = 1000
WINDOW = 64
"""Longer than the distance of two writes that join files."""


def test_single_edge_writes_stay_small_and_flat_in_depth(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    """With what joins small files inside of writes: bytes and requests at depth 1, 100 and 1000."""
    with omnigraph.init(s3_proxied_root, EDGES) as graph:
        graph.load([{"type": "P", "data": {"name": name}} for name in "ab"])
        edge = [{"edge": "E", "from": "a", "to": "b"}]
        graph.load(edge)
        graph.settle()
        at_depth: dict[int, Measured] = {}
        for depth in (1, 100, DEPTH - WINDOW):
            while graph.snapshot().count("E") < depth:
                graph.load(edge)
            graph.settle()
            with measure(s3_proxy) as io:
                graph.load(edge, mode="append")
                graph.settle()
            at_depth[depth] = io
            assert io.count() <= WRITE_REQUESTS_MAX, io.log()
        assert len({io.count() for io in at_depth.values()}) == 1, at_depth
        shallow = at_depth[1]
        deep: list[tuple[int, int]] = []
        turns = ordinary = 0
        for _ in range(WINDOW):
            with measure(s3_proxy) as io:
                graph.load(edge)
                graph.settle()
            deep.append((io.count(), io.bytes_sent))
            if graph.snapshot().commit.generation % COMMITS_PER_TURN == 0:
                # Other programs are told of the last commits, and shown main's tables.
                assert io.count() <= shallow.count() + TURN_REQUESTS_MAX, io.log()
                turns += 1
            else:
                assert io.count() <= shallow.count() + 4, "what joins files reads nothing back"
                ordinary += io.count()
    assert turns == WINDOW // COMMITS_PER_TURN
    requests, sizes = zip(*deep, strict=True)
    assert sorted(requests)[WINDOW // 2] == shallow.count()
    assert ordinary <= (WINDOW - turns) * 7.2
    assert sum(requests) <= WINDOW * 8, "all of them together, as a write alone may cost"
    assert sum(sizes) <= 3 * WINDOW * shallow.bytes_sent, (sum(sizes), shallow.bytes_sent)
    with measure(s3_proxy) as io:
        omnigraph.open(s3_proxied_root).close()
    assert io.count() == 4 <= COLD_OPEN_REQUESTS_MAX, io.log()
    assert io.bytes_received <= 64 << 10, io.log()
