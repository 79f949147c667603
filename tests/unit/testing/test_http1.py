"""Heads and bodies of HTTP/1.1, from bytes in memory."""

from __future__ import annotations

import asyncio

import pytest

from omnigraph.testing.http1 import ProtocolError, read_body, read_head


def parse(raw, *, until_end=False):
    """The head, the bytes passed on, the payload bytes counted, and what is left unread."""

    async def run():
        reader = asyncio.StreamReader()
        reader.feed_data(raw)
        reader.feed_eof()
        head = await read_head(reader)
        if head is None:
            return None
        pieces = [piece async for piece in read_body(reader, head, until_end=until_end)]
        passed = b"".join(piece for piece, _ in pieces)
        return head, passed, sum(payload for _, payload in pieces), await reader.read()

    return asyncio.run(run())


def test_a_length_bounds_the_body():
    head, passed, payload, rest = parse(
        b"PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcNEXT"
    )
    assert head.start == ("PUT", "/b/k", "HTTP/1.1")
    assert head.headers["host"] == "h"
    assert (passed, payload, rest) == (b"abc", 3, b"NEXT")


def test_chunks_are_passed_on_as_they_are_and_only_payload_counts():
    body = b"5;x=y\r\nhello\r\n2\r\n!!\r\n0\r\nTrailer: 1\r\n\r\n"
    _, passed, payload, rest = parse(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"NEXT"
    )
    assert (passed, payload, rest) == (body, 7, b"NEXT")


def test_without_a_length_a_request_has_no_body_and_a_response_lasts_to_the_end():
    assert parse(b"GET / HTTP/1.1\r\n\r\nNEXT")[1:] == (b"", 0, b"NEXT")
    assert parse(b"HTTP/1.1 200 OK\r\n\r\nall of it", until_end=True)[1:] == (b"all of it", 9, b"")


def test_a_response_without_a_reason_is_read():
    assert parse(b"HTTP/1.1 200\r\n\r\n")[0].start == ("HTTP/1.1", "200", "")


@pytest.mark.parametrize(
    ("raw", "closes"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\n\r\n", True),
    ],
)
def test_who_closes_says_so(raw, closes):
    assert parse(raw)[0].closes is closes


def test_an_end_between_messages_is_no_error():
    assert parse(b"") is None


@pytest.mark.parametrize(
    "raw", [b"GET / HT", b"nonsense\r\n\r\n", b"PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort"]
)
def test_an_end_within_a_message_is_an_error(raw):
    with pytest.raises(ProtocolError):
        parse(raw)
