"""Object-store requests of writes: counted on a real S3 server, with at most 8 in flight.

The budgets are those of docs/dev/cost-budgets.md. Counts are exact, so these tests cannot flicker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph.manifest.branches import LOOK_AGAIN_US
from omnigraph.manifest.sweeps import GRACE_S
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.measure import Measured, measure, serial_hops
from omnigraph.testing.proxy import CountingProxy

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
WRITE_REQUESTS_MAX = 8
WRITE_HOPS_MAX = 3
INIT_REQUESTS_MAX = 12
COLD_OPEN_REQUESTS_MAX = 6
SLEPT_REQUESTS_MAX = 14


def with_types(count: int) -> str:
    """The schema with more node types, so that it has ``count`` types and one edge type."""
    return SCHEMA + "\n".join(
        f"node Extra{i} {{ code: String @key  size: I64?  seen: Date? }}" for i in range(count - 1)
    )


def people(*names: str) -> list[dict]:
    return [{"type": "Person", "data": {"name": name}} for name in names]


def knows(source: str, target: str) -> dict:
    return {"edge": "Knows", "from": source, "to": target}


@pytest.mark.parametrize("types", [1, 200])
def test_init_and_cold_open_cost_the_same_for_any_number_of_types(
    types: int, s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with measure(s3_proxy) as io:
        omnigraph.init(s3_proxied_root, with_types(types)).close()
    assert io.count() == 10 <= INIT_REQUESTS_MAX, io.log()
    with measure(s3_proxy) as io:
        omnigraph.open(s3_proxied_root).close()
    assert io.count() == 4 <= COLD_OPEN_REQUESTS_MAX, io.log()


def test_cold_open_stays_flat_when_all_of_200_types_have_rows(
    tmp_path: Path, copied_to_s3: Callable[[Path], str], s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(tmp_path / "g", with_types(200)) as graph:
        rows = [{"type": f"Extra{i}", "data": {"code": "a"}} for i in range(199)]
        graph.load(people("a", "b") + rows)
    place = copied_to_s3(tmp_path / "g")
    with omnigraph.open(place) as graph:
        graph.load([knows("a", "b")])
        graph.settle()
        with measure(s3_proxy) as io:
            graph.load([knows("a", "b")])
            graph.settle()
        assert io.count() == 7, io.log()
        # One complete snapshot per version must not make every publish heavy.
        assert io.bytes_sent <= 32 << 10, io.log()
    with measure(s3_proxy) as io:
        omnigraph.open(place).close()
    assert io.count() <= COLD_OPEN_REQUESTS_MAX, io.log()


def test_a_write_takes_few_serial_hops_and_a_second_table_takes_none(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load([*people("a", "b"), knows("a", "b")])
        names = (f"n{i}" for i in range(1000))

        def one_table() -> None:
            graph.load([knows("a", "b")])

        def two_tables() -> None:
            name = next(names)
            graph.load([*people(name), knows(name, "a")])

        # A slope is a measurement, and a busy machine can only add to it: the least of a few
        # counts. Half a hop separates "the same" from "one more".
        one, two = math.inf, math.inf
        for _ in range(4):
            one = min(one, serial_hops(s3_proxy, one_table))
            two = min(two, serial_hops(s3_proxy, two_tables))
            graph.settle()
            if one <= WRITE_HOPS_MAX and two <= one + 0.5:
                break
    assert one <= WRITE_HOPS_MAX, one
    assert two <= one + 0.5, (one, two)


def test_a_refused_write_publishes_nothing_and_costs_one_probe(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load([*people("a", "b"), knows("a", "b")])
        graph.settle()
        with measure(s3_proxy) as io, pytest.raises(omnigraph.ConstraintError):
            graph.load([knows("a", "nobody")])
        # Bad news is only believed on the newest snapshot: one HEAD to know that it is.
        assert [r.operation for r in io.requests] == ["HEAD"], io.log()


def test_a_lost_race_on_another_table_restages_nothing(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    from omnigraph.failpoints import FailPoint, armed

    schema = SCHEMA + "node City { name: String @key }"
    with omnigraph.init(s3_proxied_root, schema) as graph, omnigraph.open(s3_proxied_root) as other:
        graph.load([*people("a", "b"), knows("a", "b")])
        other.load([{"type": "City", "data": {"name": "x"}}])
        graph.snapshot()
        graph.settle()
        other.settle()

        def overtake() -> None:
            other.load([{"type": "City", "data": {"name": "y"}}])
            other.settle()
            s3_proxy.reset()

        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, overtake):
            graph.load([knows("a", "b")])
        graph.settle()
        again = [r for r in s3_proxy.requests if "/edges/" in r.path]
        assert not again, again
        assert [c.kind for c in graph.commits()][:2] == ["load", "load"]
        assert graph.snapshot().count("Knows") == 2
        assert graph.snapshot().count("City") == 2


def until_visible(io: Measured) -> int:
    """Requests up to the commit; what settles afterwards begins with the hint."""
    puts = [r.path.endswith("/_head.json") and r.operation == "PUT" for r in io.requests]
    return puts.index(True)


@pytest.mark.parametrize("behind", [12, 40])
def test_a_handle_that_slept_through_a_cleanup_looks_before_it_writes(
    behind: int, s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    schema = SCHEMA + "node City { name: String @key }"
    clock = ManualClock()
    with (
        omnigraph.init(s3_proxied_root, schema) as graph,
        omnigraph.open(s3_proxied_root, clock=clock) as sleeper,
    ):
        sleeper.load([*people("a", "b"), knows("a", "b")])
        sleeper.settle()
        base = sleeper.snapshot().version
        for number in range(behind):
            graph.load([{"type": "City", "data": {"name": f"c{number}"}}])
        graph.settle()
        # What a cleanup leaves of versions that go: their names (ADR 0016).
        repository = graph._repository
        store, newest = repository.branch("main").store, graph.snapshot().version
        for version in range(base + 1, newest):
            repository.objects.put(store.manifest_name(version), b"")
        clock.advance(GRACE_S)
        with measure(s3_proxy) as io:
            sleeper.load([knows("a", "b")])
            sleeper.settle()
        # The same however far behind it is: 8 to find the newest version, its manifest among them,
        # then a plain write. Nothing is staged in vain: one intent.
        assert until_visible(io) == 8 + 5 <= SLEPT_REQUESTS_MAX, io.log()
        assert sum("__recovery" in r.path for r in io.requests if r.operation == "PUT") == 1
        assert clock.sleeps_s == [], "it lost a race"
        assert graph.snapshot().count("Knows") == 2


def test_a_long_pause_costs_one_request_and_a_short_one_none(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    assert LOOK_AGAIN_US < GRACE_S * 1e6, "a cleanup may have emptied the next version meanwhile"
    clock = ManualClock()
    with omnigraph.init(s3_proxied_root, SCHEMA, clock=clock) as graph:
        graph.load([*people("a", "b"), knows("a", "b")])
        graph.load([knows("a", "b")])
        graph.settle()
        for pause_s, requests in ((GRACE_S, 8), (1.0, 7), (GRACE_S, 8)):
            clock.advance(pause_s)
            with measure(s3_proxy) as io:
                graph.load([knows("a", "b")])
                graph.settle()
            assert io.count() == requests <= WRITE_REQUESTS_MAX, io.log()
