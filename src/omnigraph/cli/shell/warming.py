"""What the first query and the first change need, imported while the prompt waits for them.

shell -> [warming] | prompt
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from threading import Event, Thread

MODULES = (
    "omnigraph.query.engine",
    "omnigraph.query.plan.rules.planning",
    "omnigraph.query.topology.edges",
    "omnigraph.cli.rows",
    "omnigraph.query.mutate",
    "omnigraph.housekeeping.projection",
    "omnigraph.housekeeping.mirror",
)
"""Modules that import the others; a test says if one is missing."""


@contextmanager
def warming() -> Generator[Thread]:
    """Import in another thread as long as the block runs; its end waits for one module at most."""
    ended = Event()

    def run() -> None:
        for name in MODULES:
            if ended.is_set():
                return
            import_module(name)

    thread = Thread(target=run, name="omnigraph-warming")
    thread.start()
    try:
        yield thread
    finally:
        ended.set()
        thread.join()
