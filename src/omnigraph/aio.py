"""Omnigraph for programs with an event loop: the same engine, called in threads.

    async with await aio.open("./fleet") as graph:
        result = await graph.query("match { $v: Vessel } return { $v.name }")

Every method of a graph, of its ``branches``, ``tags``, ``changes`` and ``upkeep``, and of a
snapshot is here as a coroutine of the same name and parameters; what they return is the same.
Values that need no store (``uri``, ``version``, ``commit``) stay attributes. Threads carry the
work, so that the loop goes on; a handle may be used by many tasks at once, as one of
``omnigraph.Graph`` by many threads.

A coroutine that is cancelled stops waiting. The call that it waited for runs to its end: a write is
then published completely or not at all, as after a lost connection, and the commits tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.api import opening
from omnigraph.api.graph import Graph
from omnigraph.api.view import SnapshotView

if TYPE_CHECKING:
    from omnigraph.branch.diff import Diff
    from omnigraph.branch.merge.conflicts import MergeResult
    from omnigraph.manifest.snapshot import GraphCommit
    from omnigraph.results import Commits, LoadResult, MutationResult, QueryResult

_END = object()


async def init(uri: opening.Uri, schema: Any, **options: Any) -> AsyncGraph:
    """``omnigraph.init`` for a loop."""
    return AsyncGraph(await asyncio.to_thread(opening.init, uri, schema, **options))


async def open(uri: opening.Uri, **options: Any) -> AsyncGraph:
    """``omnigraph.open`` for a loop."""
    return AsyncGraph(await asyncio.to_thread(opening.open, uri, **options))


class _Threaded:
    """Methods of an object as coroutines."""

    def __init__(self, within: Any) -> None:
        self._within = within

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(type(self._within), name, None)
        if found is None or isinstance(found, property):
            return getattr(self._within, name)
        return _threaded(getattr(self._within, name))

    def __dir__(self) -> list[str]:
        return sorted(n for n in dir(self._within) if not n.startswith("_"))

    def __repr__(self) -> str:
        return f"async {self._within!r}"


def _threaded(method: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        found = await asyncio.to_thread(method, *args, **kwargs)
        return AsyncSnapshot(found) if isinstance(found, SnapshotView) else found

    call.__name__ = method.__name__
    call.__doc__ = method.__doc__
    return call


class AsyncSnapshot(_Threaded):
    """A state of a graph: ``omnigraph.SnapshotView`` with coroutines."""

    if TYPE_CHECKING:

        async def query(self, text: str, params: Any = None, **options: Any) -> QueryResult: ...

        async def count(self, type_name: str) -> int: ...


class AsyncGraph(_Threaded):
    """An open graph: ``omnigraph.Graph`` with coroutines."""

    if TYPE_CHECKING:
        # What programs call most, for editors and checkers; the rest has the types of ``Any``.
        async def load(self, source: Any, **options: Any) -> LoadResult: ...

        async def query(self, text: str, params: Any = None, **options: Any) -> QueryResult: ...

        async def mutate(self, text: str, params: Any = None, **options: Any) -> MutationResult: ...

        async def snapshot(self, branch: str | None = None, **options: Any) -> AsyncSnapshot: ...

        async def at(self, target: str) -> AsyncSnapshot: ...

        async def commits(self, **options: Any) -> Commits: ...

        async def commit(self, commit_id: str, **options: Any) -> GraphCommit: ...

        async def diff(self, before: str, after: str = "main") -> Diff: ...

        async def merge(self, source: str, **options: Any) -> MergeResult: ...

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.branches: Any = _Threaded(graph.branches)
        self.tags: Any = _Threaded(graph.tags)
        self.changes: Any = _Threaded(graph.changes)
        self.upkeep: Any = _Threaded(graph.upkeep)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish the housekeeping and close."""
        await asyncio.to_thread(self._within.close)


async def each(values: Iterator[Any] | Any) -> AsyncIterator[Any]:
    """What a plain iterator gives, each value awaited in a thread: rows, changes, a feed."""
    rest = iter(values)
    while (value := await asyncio.to_thread(next, rest, _END)) is not _END:
        yield value
