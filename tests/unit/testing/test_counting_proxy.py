"""The proxy relays what a real client and a real S3 server say, and counts, delays, limits, breaks."""

from __future__ import annotations

import http.client
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import obstore
import pytest
from obstore.exceptions import AlreadyExistsError, GenericError, PermissionDeniedError
from obstore.store import S3Store

from omnigraph.errors import StorageError, UsageError
from omnigraph.testing.http1 import Fault, Operation, classify
from omnigraph.testing.proxy import CountingProxy

BIG = 20_000_000


@pytest.fixture
def store(s3_proxied_root):
    return S3Store.from_url(s3_proxied_root)


def operations(proxy):
    return [str(request.operation) for request in proxy.requests]


def test_every_operation_is_relayed_and_named(store, s3_proxy):
    obstore.put(store, "a", b"0123456789")
    obstore.copy(store, "a", "b")
    assert obstore.get(store, "b").bytes() == b"0123456789"
    assert obstore.get_range(store, "b", start=2, length=3) == b"234"
    assert obstore.head(store, "b")["size"] == 10
    assert [entry["path"] for batch in obstore.list(store) for entry in batch] == ["a", "b"]
    # obstore deletes even one object by the bulk request.
    obstore.delete(store, "a")
    with pytest.raises(FileNotFoundError):
        obstore.get(store, "a")
    assert operations(s3_proxy) == ["PUT", "COPY", "GET", "GET", "HEAD", "LIST", "POST", "GET"]
    put, _, get, ranged, head, *_, missing = s3_proxy.requests
    assert (put.bytes_sent, put.bytes_received, put.status) == (10, 0, 200)
    assert (get.bytes_sent, get.bytes_received) == (0, 10)
    assert (ranged.range, ranged.status, ranged.bytes_received) == ("bytes=2-4", 206, 3)
    assert head.bytes_received == 0
    assert missing.status == 404


def test_big_bodies_arrive_whole(store, s3_proxy):
    body = bytes(range(256)) * (BIG // 256)
    obstore.put(store, "big", body, use_multipart=False)
    assert obstore.get(store, "big").bytes() == body
    put, get = s3_proxy.requests
    assert put.bytes_sent == get.bytes_received == len(body)


def test_a_multipart_upload_is_relayed(store, s3_proxy):
    obstore.put(store, "parts", bytes(BIG), chunk_size=6_000_000, use_multipart=True)
    assert obstore.head(store, "parts")["size"] == BIG
    assert sorted(operations(s3_proxy)) == ["HEAD", "POST", "POST", "PUT", "PUT", "PUT", "PUT"]


def test_a_conditional_put_is_marked(store, s3_proxy):
    obstore.put(store, "once", b"", mode="create")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "once", b"", mode="create")
    assert [(r.conditional, r.status) for r in s3_proxy.requests] == [(True, 200), (True, 412)]


def test_connections_are_kept_alive(s3_proxy):
    connection = http.client.HTTPConnection(s3_proxy.endpoint.removeprefix("http://"))
    connection.connect()
    first = connection.sock
    for method in ("GET", "HEAD", "PUT", "GET"):
        connection.request(method, "/none/of/your/business", body=b"x" if method == "PUT" else None)
        response = connection.getresponse()
        assert response.status == 403
        response.read()
        assert connection.sock is first
    connection.close()


def test_expect_100_continue_is_answered(s3_proxy):
    host, port = s3_proxy.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(
            b"PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ok")
        assert client.recv(1000).startswith(b"HTTP/1.1 403")
    s3_proxy.wait_idle()


def test_a_client_that_leaves_in_mid_body_leaves_nothing_behind(s3_proxy):
    host, port = s3_proxy.endpoint.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(b"PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\nonly this")
    s3_proxy.wait_idle(until=bool)


def test_the_limit_of_requests_in_flight_holds(store, s3_proxy):
    obstore.put(store, "a", b"1")
    s3_proxy.latency_s = 0.02
    for limit in (3, 1):
        s3_proxy.reset()
        s3_proxy.concurrency_max = limit
        with ThreadPoolExecutor(12) as pool:
            list(pool.map(lambda _: obstore.get(store, "a").bytes(), range(12)))
        assert s3_proxy.in_flight_max == limit
        assert len(s3_proxy.requests) == 12


def test_without_a_limit_requests_run_together(store, s3_proxy):
    obstore.put(store, "a", b"1")
    s3_proxy.concurrency_max = None
    s3_proxy.reset()
    s3_proxy.latency_s = 0.3
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: obstore.get(store, "a").bytes(), range(12)))
    assert s3_proxy.in_flight_max > 8


def test_raising_the_limit_lets_waiting_requests_go(store, s3_proxy):
    obstore.put(store, "a", b"1")
    s3_proxy.wait_idle()
    s3_proxy.concurrency_max = 0
    result = []
    reader = threading.Thread(target=lambda: result.append(obstore.get(store, "a").bytes()))
    mark = s3_proxy.sequence
    reader.start()
    with pytest.raises(StorageError, match="1 in flight"):
        s3_proxy.wait_idle(until=lambda _: s3_proxy.sequence > mark, timeout_s=0.5)
    assert result == []
    s3_proxy.concurrency_max = 1
    reader.join(timeout=30)
    assert result == [b"1"]


def test_an_injected_status_is_retried_by_the_client(store, s3_proxy):
    rule = s3_proxy.fail(Fault.STATUS, operation="PUT", path="/wanted", status=500, skip=1)
    for name in ("wanted", "other", "wanted"):
        obstore.put(store, name, b"x")
    assert [(r.status, r.fault) for r in s3_proxy.requests] == [
        (200, None), (200, None), (500, Fault.STATUS), (200, None),
    ]  # fmt: skip
    assert rule.fired == 1


def test_an_injected_refusal_reaches_the_caller(store, s3_proxy):
    obstore.put(store, "a", b"1")
    s3_proxy.fail(Fault.STATUS, operation=Operation.HEAD, status=403)
    with pytest.raises(PermissionDeniedError):
        obstore.head(store, "a")
    obstore.head(store, "a")


def test_a_request_dropped_before_the_server_has_no_effect(s3_proxied_root, s3_proxy):
    store = S3Store.from_url(s3_proxied_root, retry_config={"max_retries": 0})
    s3_proxy.fail(Fault.DROP_BEFORE, when=lambda request: request.conditional)
    with pytest.raises(GenericError):
        obstore.put(store, "x", b"1", mode="create")
    with pytest.raises(FileNotFoundError):
        obstore.head(store, "x")
    assert (s3_proxy.requests[0].status, s3_proxy.requests[0].fault) == (None, Fault.DROP_BEFORE)


def test_a_lost_acknowledgement_means_done_but_not_told(s3_proxied_root, s3_proxy):
    store = S3Store.from_url(s3_proxied_root, retry_config={"max_retries": 0})
    s3_proxy.fail(Fault.DROP_AFTER, operation="PUT")
    with pytest.raises(GenericError):
        obstore.put(store, "x", b"1", mode="create")
    assert obstore.get(store, "x").bytes() == b"1"
    assert (s3_proxy.requests[0].status, s3_proxy.requests[0].fault) == (None, Fault.DROP_AFTER)


def test_a_client_that_retries_loses_against_its_own_lost_acknowledgement(store, s3_proxy):
    s3_proxy.fail(Fault.DROP_AFTER, operation="PUT")
    with pytest.raises(AlreadyExistsError):
        obstore.put(store, "x", b"mine", mode="create")
    assert obstore.get(store, "x").bytes() == b"mine"
    assert operations(s3_proxy) == ["PUT", "PUT", "GET"]


def test_reset_forgets_log_and_rules(store, s3_proxy):
    obstore.put(store, "x", b"1")
    s3_proxy.fail(Fault.STATUS, status=403, times=None)
    s3_proxy.reset()
    assert (s3_proxy.requests, s3_proxy.in_flight_max) == ((), 0)
    obstore.head(store, "x")


def test_a_dead_server_is_a_broken_connection(s3_server):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with CountingProxy(f"http://127.0.0.1:{port}") as proxy:
            connection = http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"))
            with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
                connection.request("GET", "/")
                connection.getresponse()
            connection.close()


def test_only_plain_http_can_be_watched():
    with pytest.raises(UsageError):
        CountingProxy("https://s3.amazonaws.com")


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "expected"),
    [
        ("GET", "/bucket/key", "", {}, "GET"),
        ("GET", "/bucket", "list-type=2&prefix=a%2F", {}, "LIST"),
        ("GET", "/bucket/", "", {}, "LIST"),
        ("PUT", "/bucket/key", "", {"x-amz-copy-source": "/bucket/a"}, "COPY"),
        ("PUT", "/bucket/key", "partNumber=1&uploadId=x", {}, "PUT"),
        ("DELETE", "/bucket/key", "", {}, "DELETE"),
        ("POST", "/bucket", "delete", {}, "POST"),
        ("OPTIONS", "/bucket", "", {}, "OTHER"),
    ],
)
def test_operations_are_told_apart(method, path, query, headers, expected):
    assert classify(method, path, query, headers) == expected
