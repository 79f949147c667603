"""Being an older release for a while.

    with release_of_format(1):
        graph.load(…)  # as that release would: it writes stamp 1 and refuses stamp 2

Stands for a program that knows only the formats up to one of them: what it writes, what it refuses
and which steps it takes all follow from that number. For the whole process, so whatever another
release does meanwhile has to be finished (close its graph) before the block goes on.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from omnigraph.manifest import format as graph_format


@contextmanager
def release_of_format(number: int, *, oldest: int | None = None) -> Generator[None, None, None]:
    """Read formats up to ``number``, from ``oldest`` if that is given, and write ``number``."""
    before = graph_format.FORMAT, graph_format.OLDEST
    graph_format.FORMAT = number
    if oldest is not None:
        graph_format.OLDEST = oldest
    try:
        yield
    finally:
        graph_format.FORMAT, graph_format.OLDEST = before
