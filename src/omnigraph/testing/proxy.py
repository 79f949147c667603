"""A reverse proxy between the code under test and an object store: counts, delays, limits, breaks.

It sees every request, those of Lance's Rust code included, which no counter in Python does. It runs
on its own thread with its own event loop, so the code under test may block as it likes.

Must not: change a request. Heads are relayed as they came (the ``Host`` header too), so signatures
made for the proxy's address stay valid at the server.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Self
from urllib.parse import urlsplit

from omnigraph.errors import InternalError, StorageError, UsageError
from omnigraph.testing.http1 import (
    HEAD_BYTES_MAX,
    Fault,
    FaultRule,
    HttpHead,
    Operation,
    ProtocolError,
    Request,
    classify,
    read_body,
    read_head,
)

_BODYLESS = frozenset({"204", "304"})
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_WAIT_MAX_S = 60.0


class CountingProxy:
    """``with CountingProxy(endpoint) as proxy:`` then point the client at ``proxy.endpoint``."""

    def __init__(self, endpoint: str, *, concurrency_max: int | None = None) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme != "http" or not parts.hostname or not parts.port:
            raise UsageError(f"the proxy needs http://host:port, not {endpoint!r}")
        self.latency_s = 0.0
        """Added to every request before it is passed on. May be changed at any time."""
        self.in_flight_max = 0
        """The most requests that were being served at one moment since the last reset."""
        self._gate = _Gate(concurrency_max)
        self._changed = threading.Condition()
        self._finished: list[Request] = []
        self._unfinished: dict[int, _Exchange] = {}
        self._sequence = 0
        self._reset_at = 0
        self._rules: list[FaultRule] = []
        self._listener = _Listener((parts.hostname, parts.port), self._serve)

    def __enter__(self) -> Self:
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.stop()

    # -- what a test sets and reads --------------------------------------------------------------

    @property
    def endpoint(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self._listener.port}"

    @property
    def concurrency_max(self) -> int | None:
        """At most this many requests are served at one moment, the others wait; None: no limit."""
        return self._gate.limit

    @concurrency_max.setter
    def concurrency_max(self, limit: int | None) -> None:
        self._gate.limit = limit
        self._listener.loop.call_soon_threadsafe(self._gate.wake)

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request that arrived since the last reset, in the order of arrival.

        Those still in flight are there too, as far as they got: a client has its response a moment
        before the request counts as finished, and must not find it missing here.
        """
        with self._changed:
            seen = [*self._finished, *(e.request for e in self._unfinished.values())]
            seen = [request for request in seen if request.sequence > self._reset_at]
        return tuple(sorted(seen, key=lambda request: request.sequence))

    @property
    def sequence(self) -> int:
        """The number of the request that arrived last: a mark to measure from."""
        with self._changed:
            return self._sequence

    def reset(self) -> None:
        """Forget all requests so far, the peak and the fault rules. Latency and limit stay.

        A request that is in flight is forgotten too, and does not turn up when it finishes.
        """
        with self._changed:
            self._reset_at = self._sequence
            self._finished.clear()
            self._rules.clear()
            self.in_flight_max = 0

    def fail(
        self,
        fault: Fault,
        *,
        operation: Operation | str | None = None,
        path: str | None = None,
        when: Callable[[Request], bool] | None = None,
        status: int = 503,
        skip: int = 0,
        times: int | None = 1,
    ) -> FaultRule:
        """Make requests fail: of an operation, with ``path`` in the path, for which ``when`` holds.

        The first ``skip`` that match pass, then ``times`` fail (``None``: all of them). Clients
        retry, so a request that must fail for its caller needs ``times=None``.
        """

        def matches(request: Request) -> bool:
            return (
                (operation is None or request.operation == operation)
                and (path is None or path in request.path)
                and (when is None or when(request))
            )

        rule = FaultRule(fault=fault, matches=matches, status=status, skip=skip, times=times)
        with self._changed:
            self._rules.append(rule)
        return rule

    def wait_idle(
        self,
        *,
        until: Callable[[tuple[Request, ...]], bool] | None = None,
        timeout_s: float = _WAIT_MAX_S,
    ) -> None:
        """Wait until no request is in flight and ``until`` holds for the finished ones.

        Work that runs off the acknowledgement path and has not sent its request yet looks idle;
        ``until`` names what it has to have done.
        """
        with self._changed:
            quiet = self._changed.wait_for(
                lambda: not self._unfinished and (until is None or until(tuple(self._finished))),
                timeout_s,
            )
            if not quiet:
                raise StorageError(f"proxy not idle: {len(self._unfinished)} in flight")

    # -- serving ---------------------------------------------------------------------------------

    async def _serve(self, head: HttpHead, client: _ProxySide, server: _ProxySide) -> bool:
        """One request and its response; false when the connection ends with it."""
        async with self._counted(head) as exchange, self._gate.slot() as in_flight:
            self.in_flight_max = max(self.in_flight_max, in_flight)
            # Inside the slot: a request that is on its way occupies the store's client too.
            if self.latency_s > 0:
                await asyncio.sleep(self.latency_s)
            match exchange.rule.fault if exchange.rule else None:
                case Fault.DROP_BEFORE:
                    client.abort()
                    return False
                case Fault.STATUS:
                    return await exchange.refuse(client)
                case Fault.DROP_AFTER:
                    await exchange.relay(client, server, deliver=False)
                    client.abort()
                    return False
                case None:
                    return await exchange.relay(client, server, deliver=True)

    @asynccontextmanager
    async def _counted(self, head: HttpHead) -> AsyncGenerator[_Exchange, None]:
        with self._changed:
            self._sequence += 1
            request = _request(head, self._sequence)
            rule = next((rule for rule in self._rules if rule.takes(request)), None)
            exchange = _Exchange(head, replace(request, fault=rule.fault if rule else None), rule)
            self._unfinished[request.sequence] = exchange
        try:
            yield exchange
        finally:
            with self._changed:
                del self._unfinished[request.sequence]
                if request.sequence > self._reset_at:
                    self._finished.append(replace(exchange.request, end_s=time.monotonic()))
                self._changed.notify_all()


class _Listener:
    """A server on a thread and a loop of its own; a connection to the store for each client's."""

    def __init__(
        self,
        upstream: tuple[str, int],
        serve: Callable[[HttpHead, _ProxySide, _ProxySide], Awaitable[bool]],
    ) -> None:
        self.loop = asyncio.new_event_loop()
        self.port = 0
        self._upstream = upstream
        self._serve = serve
        self._bugs: list[BaseException] = []
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._run, name="counting-proxy", daemon=True)

    def start(self) -> None:
        """Listen on some port."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self.loop).result(_WAIT_MAX_S)

    def stop(self) -> None:
        """Close every connection; raise what went wrong in the proxy itself."""
        asyncio.run_coroutine_threadsafe(self._shut(), self.loop).result(_WAIT_MAX_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        if self._bugs:
            # A proxy that hid its own faults would make every measurement doubtful.
            raise InternalError(f"the proxy failed: {self._bugs[0]!r}") from self._bugs[0]

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(
            self._accept, "127.0.0.1", 0, limit=HEAD_BYTES_MAX
        )
        self.port = int(self._server.sockets[0].getsockname()[1])

    async def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
        # A connection accepted a moment ago has a task that never ran: cancelled like that, it
        # would leave its socket open. A few turns of the loop let every task begin.
        await _turns(5)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await _turns(5)  # Closed transports finish on the loop, while there is one.

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = _ProxySide(reader, writer)
        server: _ProxySide | None = None
        try:
            while (head := await read_head(client.reader)) is not None:
                if server is None or server.reader.at_eof():
                    server = await self._reconnect(server)
                if not await self._serve(head, client, server):
                    break
        except (OSError, ProtocolError, asyncio.IncompleteReadError):
            # Either side went away: the client sees a broken connection, as it would without us.
            pass
        except asyncio.CancelledError:
            # Only ``_shut`` cancels, and it waits for this task to end: nothing else to report.
            pass
        except BaseException as bug:
            self._bugs.append(bug)
        finally:
            client.close()
            if server is not None:
                server.close()

    async def _reconnect(self, old: _ProxySide | None) -> _ProxySide:
        """A connection to the server for each connection of a client, opened on its first use."""
        if old is not None:
            old.close()
        return _ProxySide(*await asyncio.open_connection(*self._upstream, limit=HEAD_BYTES_MAX))


class _Gate:
    """At most N at a time, where N may change while some wait. Lives on the loop's thread."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._inside = 0
        self._woken = asyncio.Event()

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[int, None]:
        while self.limit is not None and self._inside >= self.limit:
            self._woken.clear()
            await self._woken.wait()
        self._inside += 1
        try:
            yield self._inside
        finally:
            self._inside -= 1
            self.wake()

    def wake(self) -> None:
        self._woken.set()


class _ProxySide:
    """One connection, to the client or to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self._writer = writer
        # Heads and bodies are written apart: with Nagle's algorithm every request would wait 40 ms.
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def send(self, piece: bytes) -> None:
        self._writer.write(piece)
        await self._writer.drain()

    async def offer(self, piece: bytes) -> bool:
        """Send, or learn that the other side no longer listens; its answer may still be read."""
        try:
            await self.send(piece)
        except OSError:
            return False
        return True

    def abort(self) -> None:
        self._writer.transport.abort()

    def close(self) -> None:
        # Without waiting: a wait could be cancelled, and the other side would stay open.
        self._writer.close()


class _Exchange:
    """One request on its way through, and what is known about it so far."""

    def __init__(self, head: HttpHead, request: Request, rule: FaultRule | None) -> None:
        self._head = head
        self.request = request
        self.rule = rule
        self._uploaded = False

    async def relay(self, client: _ProxySide, server: _ProxySide, *, deliver: bool) -> bool:
        """Pass the request on and the response back (or swallow it); false: do not reuse."""
        await server.send(_without_expect(self._head))
        # Apart from the response: a server may refuse a large body before it has read it.
        upload = asyncio.create_task(self._upload(client, server))
        try:
            reusable = await self._download(client, server, deliver=deliver)
        finally:
            upload.cancel()
            with suppress(
                asyncio.CancelledError, OSError, ProtocolError, asyncio.IncompleteReadError
            ):
                await upload
        # Answered before the body was through: what comes next from the client is no clean head.
        return reusable and self._uploaded and not self._head.closes

    async def _upload(self, client: _ProxySide, server: _ProxySide | None) -> None:
        try:
            if "expect" in self._head.headers:
                await client.send(_CONTINUE)
            sent = 0
            async for piece, payload in read_body(client.reader, self._head, until_end=False):
                sent += payload
                self.request = replace(self.request, bytes_sent=sent)
                if server is not None and not await server.offer(piece):
                    return
            self._uploaded = True
        except (OSError, ProtocolError, asyncio.IncompleteReadError):
            # The client is gone in mid-body: the server must not wait for the rest of it.
            if server is not None:
                server.abort()
            raise

    async def _download(self, client: _ProxySide, server: _ProxySide, *, deliver: bool) -> bool:
        head = await read_head(server.reader)
        while head is not None and head.start[1].startswith("1"):
            head = await read_head(server.reader)
        if head is None:
            raise ProtocolError("the server closed the connection instead of answering")
        status = head.start[1]
        if deliver:
            self.request = replace(self.request, status=int(status))
            await client.send(head.raw)
        if self._head.start[0] == "HEAD" or status in _BODYLESS:
            return not head.closes
        received = 0
        async for piece, payload in read_body(server.reader, head, until_end=True):
            received += payload
            self.request = replace(self.request, bytes_received=received)
            if deliver:
                await client.send(piece)
        return not head.closes and (head.chunked or head.length is not None)

    async def refuse(self, client: _ProxySide) -> bool:
        """Answer in the server's place; reads the body first, so that the connection stays good."""
        await self._upload(client, None)
        status = self.rule.status if self.rule else 503
        body = b"<Error><Code>InjectedFault</Code><Message>injected by the proxy</Message></Error>"
        if self._head.start[0] == "HEAD":
            body = b""
        self.request = replace(self.request, status=status, bytes_received=len(body))
        await client.send(
            f"HTTP/1.1 {status} Injected\r\nContent-Type: application/xml\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        return not self._head.closes


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _request(head: HttpHead, sequence: int) -> Request:
    method, target, _ = head.start
    path, _, query = target.partition("?")
    return Request(
        sequence=sequence,
        operation=classify(method, path, query, head.headers),
        path=path,
        query=query,
        headers=head.headers,
        start_s=time.monotonic(),
    )


def _without_expect(head: HttpHead) -> bytes:
    """The head without ``Expect``, which the proxy has answered itself; signatures leave it out."""
    if "expect" not in head.headers:
        return head.raw
    lines = head.raw.split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(b"expect:"))
