"""The async facade: the same engine and the same answers, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph import aio

SCHEMA = "node P { k: String @key  n: I32 }"
QUERY = "match { $p: P } return { $p.k, $p.n } order { $p.k }"


def rows(*pairs: tuple[str, int]) -> list[dict[str, object]]:
    return [{"type": "P", "data": {"k": k, "n": n}} for k, n in pairs]


def test_a_graph_is_made_asked_changed_and_merged(tmp_path: Path) -> None:
    async def work() -> None:
        async with await aio.init(tmp_path / "g", SCHEMA, actor="ann") as graph:
            loaded = await graph.load(rows(("a", 1), ("b", 2)))
            assert loaded.total_entities == 2
            await graph.branches.create("side")
            await graph.mutate('update P set { n: 3 } where k = "a"', branch="side")
            assert [c.id async for c in aio.each((await graph.diff("main", "side")).changes())] == [
                "a"
            ]
            await graph.merge("side")
            view = await graph.snapshot()
            assert isinstance(view, aio.AsyncSnapshot)
            assert (view.version, await view.count("P")) == (graph_version(tmp_path), 2)
            found = await view.query(QUERY)
            assert found.to_dicts() == [{"p.k": "a", "p.n": 3}, {"p.k": "b", "p.n": 2}]
            assert len(await graph.commits()) == 4
            assert (await graph.at("main~1")).commit.kind == "load"
            assert (await graph.upkeep.check()).ok
            assert await graph.branches.list() == ["main", "side"]
            assert graph.uri == str(tmp_path / "g")

    asyncio.run(work())
    with omnigraph.open(tmp_path / "g") as graph:
        assert graph.query(QUERY).to_dicts()[0] == {"p.k": "a", "p.n": 3}


def graph_version(folder: Path) -> int:
    with omnigraph.open(folder / "g") as graph:
        return graph.snapshot().version


def test_many_tasks_use_one_handle(tmp_path: Path) -> None:
    async def work() -> list[omnigraph.QueryResult]:
        async with await aio.init(tmp_path / "g", SCHEMA) as graph:
            await asyncio.gather(*(graph.load(rows((k, 1))) for k in "abcd"))
            return await asyncio.gather(*(graph.query(QUERY) for _ in range(4)))

    for found in asyncio.run(work()):
        assert [row["p.k"] for row in found.to_dicts()] == list("abcd")


def test_the_loop_goes_on_while_a_call_waits(tmp_path: Path) -> None:
    """The load cannot end before the loop has done something else."""
    said = threading.Event()

    def slow():
        assert said.wait(60)
        yield from rows(("a", 1))

    async def work() -> int:
        async with await aio.init(tmp_path / "g", SCHEMA) as graph:
            load = asyncio.create_task(graph.load(slow()))
            await asyncio.to_thread(lambda: None)
            said.set()
            return (await load).total_entities

    assert asyncio.run(work()) == 1


def test_errors_are_those_of_the_engine(tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(omnigraph.NotFoundError):
            await aio.open(tmp_path / "nowhere")
        async with await aio.init(tmp_path / "g", SCHEMA) as graph:
            with pytest.raises(omnigraph.QueryError):
                await graph.query("match { $x: X } return { $x.k }")
            with pytest.raises(AttributeError):
                graph.nothing  # noqa: B018

    asyncio.run(work())


def test_every_public_name_of_a_graph_is_there(tmp_path: Path) -> None:
    async def names() -> set[str]:
        async with await aio.init(tmp_path / "g", SCHEMA) as graph:
            return {n for n in dir(omnigraph.Graph) if not n.startswith("_") and hasattr(graph, n)}

    assert asyncio.run(names()) == {n for n in dir(omnigraph.Graph) if not n.startswith("_")}
