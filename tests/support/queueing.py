"""Writes of one handle that wait in a known order, so that a test knows what is published together.

The first write is held just before it publishes, until every other one has queued up behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from omnigraph.failpoints import FailPoint, armed
from omnigraph.manifest.turns import Turn

PATIENCE_S = 60.0

Write = Callable[[], Any]
AnyTurn = Turn[Any, Any]


@dataclass(slots=True)
class Ended:
    """How one write ended."""

    result: Any = None
    error: BaseException | None = None

    @property
    def commit(self) -> str | None:
        """The id of its commit, if it has one."""
        return self.result.commit.id if self.result and self.result.commit else None


def queued(first: Write, others: Sequence[Write]) -> tuple[list[Ended], list[int]]:
    """Run ``first``, and the others while it is held back just before it publishes.

    Returns how each of the others ended, and their numbers in the order in which that was settled.
    """
    turns: list[AnyTurn] = []
    settled: list[AnyTurn] = []
    queue, held, go = Queue[AnyTurn](), Event(), Event()

    def hold() -> None:
        held.set()
        assert go.wait(PATIENCE_S)

    def run(write: Write, end: Ended) -> None:
        try:
            end.result = write()
        except BaseException as e:
            end.error = e

    with (
        pytest.MonkeyPatch.context() as patch,
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, hold, times=1),
    ):
        _noting(patch, "wait", queue.put)
        _noting(patch, "succeed", settled.append)
        _noting(patch, "fail", settled.append)
        ends = [Ended() for _ in (first, *others)]
        threads = [
            Thread(target=run, args=pair, daemon=True)
            for pair in zip((first, *others), ends, strict=True)
        ]
        threads[0].start()
        assert held.wait(PATIENCE_S), ends[0].error
        for thread in threads[1:]:
            thread.start()
            turns.append(queue.get(timeout=PATIENCE_S))
        go.set()
        for thread in threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
    if ends[0].error is not None:
        raise ends[0].error
    return ends[1:], [turns.index(turn) for turn in settled if turn in turns]


def _noting(patch: pytest.MonkeyPatch, name: str, note: Callable[[AnyTurn], object]) -> None:
    """Take a note of every turn that a method is called for."""
    method = getattr(Turn, name)

    def noted(turn: AnyTurn, *arguments: Any) -> Any:
        note(turn)
        return method(turn, *arguments)

    patch.setattr(Turn, name, noted)
