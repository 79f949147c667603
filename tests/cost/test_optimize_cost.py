"""Object-store requests of maintenance: linear in the types that changed, whatever else there is."""

from __future__ import annotations

import omnigraph
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

TYPES = 200
REQUESTS_PER_TYPE_MAX = 40
REQUESTS_MAX = 20


def schema() -> str:
    return "\n".join(
        f"node Kind{i} {{ code: String @key  size: I64? @index  note: String? }}"
        for i in range(TYPES)
    )


def row(kind: int, code: str) -> dict:
    return {"type": f"Kind{kind}", "data": {"code": code, "size": 1}}


def test_optimize_costs_requests_for_changed_types_only(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    counts: dict[int, int] = {}
    with omnigraph.init(s3_proxied_root, schema()) as graph:
        graph.load([row(i, "a") for i in range(TYPES)])
        graph.optimize()
        graph.settle()
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
    assert counts[1] <= REQUESTS_MAX + REQUESTS_PER_TYPE_MAX
    assert counts[4] <= REQUESTS_MAX + 4 * REQUESTS_PER_TYPE_MAX, counts
    with omnigraph.open(s3_proxied_root) as cold:
        with measure(s3_proxy) as io:
            assert cold.optimize().commit is None
        assert io.count() <= 3, io.log()
    print(counts)


def test_rows_of_small_commits_are_rewritten_once_and_the_rest_is_left_alone(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    """Optimize after N one-row commits writes at most twice the bytes of those rows."""
    with omnigraph.init(s3_proxied_root, "node P { name: String @key  text: String? }") as graph:
        graph.load([{"type": "P", "data": {"name": f"n{i}", "text": "x" * 50}} for i in range(5000)])
        graph.optimize()
        graph.settle()
        tables = graph._repository
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
    assert tables is not None
    print(small, written)
    assert written <= 2 * small, (written, small)
