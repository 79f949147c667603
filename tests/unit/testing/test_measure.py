"""Measuring requests, bytes and serial hops of a block of code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import obstore
import pytest
from obstore.store import S3Store

from omnigraph.testing.clock import ManualClock
from omnigraph.testing.measure import measure, serial_hops, shorten


@pytest.fixture
def store(s3_proxied_root):
    store = S3Store.from_url(s3_proxied_root)
    obstore.put(store, "a", b"12345")
    return store


def test_only_the_block_is_measured(store, s3_proxy):
    with measure(s3_proxy) as io:
        obstore.get(store, "a").bytes()
        obstore.put(store, "b", b"123")
    obstore.head(store, "a")
    assert io.count() == len(io.requests) == 2, io.log()
    assert (io.count("PUT"), io.count("GET", "PUT"), io.count("LIST")) == (1, 2, 0)
    assert (io.bytes_sent, io.bytes_received) == (3, 5)
    assert io.wall_s > 0


def test_work_in_the_background_counts(store, s3_proxy):
    s3_proxy.latency_s = 0.05
    with ThreadPoolExecutor(1) as pool, measure(s3_proxy, until=lambda seen: len(seen) == 2) as io:
        pool.submit(lambda: [obstore.head(store, "a") for _ in range(2)])
    assert io.count("HEAD") == 2, io.log()


def test_the_log_is_readable(store, s3_proxy):
    with measure(s3_proxy) as io:
        obstore.put(store, "01K9ZC3V4M8Q2R5T7W9X1Y3Z5A/x.manifest", b"abc", mode="create")
        obstore.get_range(store, "a", start=1, length=2)
    summary, put, get = io.log().splitlines()
    assert summary.startswith("2 requests (GET 1 PUT 1), 3 bytes sent, 2 received")
    assert "PUT    200" in put
    assert put.endswith("/01K9ZC…/x.manifest conditional ↑3")
    assert get.endswith("/a bytes=1-2 ↓2")


def test_nothing_is_measured_of_nothing(s3_proxy):
    with measure(s3_proxy) as io:
        pass
    assert io.log() == "no requests"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/b/_versions/18446744073709551614.manifest", "/b/_versions/184467….manifest"),
        (
            "/b/_transactions/0-4424cbbf-47d2-47bf-897c-fb031ff63c6c.txn",
            "/b/_transactions/0-4424cb….txn",
        ),
        (
            "/b/data/101010001011001111110011028e5940e69d5fdd6ebfe9b7cb.lance",
            "/b/data/101010….lance",
        ),
        ("/b/nodes/Person/_graph", "/b/nodes/Person/_graph"),
        ("prefix=t1%2F__manifest%2F", "prefix=t1/__manifest/"),
    ],
)
def test_random_names_are_cut(path, expected):
    assert shorten(path) == expected


@pytest.mark.parametrize("waits", [0, 1, 3])
def test_serial_hops_counts_waits_in_a_row(s3_proxy, waits):
    """Time that does not depend on the latency does not count, nor does a cold first call."""
    clock = ManualClock()
    work_s = iter([9.0])

    def operation():
        clock.advance(next(work_s, 0.5) + waits * s3_proxy.latency_s)

    s3_proxy.latency_s = 0.001
    assert serial_hops(s3_proxy, operation, clock=clock) == pytest.approx(waits)
    assert s3_proxy.latency_s == 0.001


def test_what_slows_down_with_every_call_has_no_more_hops(s3_proxy):
    clock, calls = ManualClock(), count()

    def operation():
        clock.advance(0.001 * next(calls) + 2 * s3_proxy.latency_s)

    assert serial_hops(s3_proxy, operation, clock=clock) == pytest.approx(2, abs=0.1)


def test_requests_in_a_row_wait_one_after_the_other(store, s3_proxy):
    s3_proxy.latency_s = 0.01
    with measure(s3_proxy) as io:
        for _ in range(3):
            obstore.get(store, "a").bytes()
    assert io.count() == 3
    assert io.wall_s >= 3 * s3_proxy.latency_s
