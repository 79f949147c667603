"""Work beside writes: threads, what is done after an acknowledgement, and what is done at the end.

Nothing that is published depends on it, so what fails here is tried again later or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar

from omnigraph.errors import OmnigraphError
from omnigraph.logs import logger
from omnigraph.storage.objects import Objects, done

_log = logger("manifest")
T = TypeVar("T")

THREADS = 8
UNDELETED_MAX = 256
"""Objects that a handle remembers because the store did not delete them; cleanup finds the rest."""


class Background:
    """The threads of an open graph, and what they have still to do."""

    def __init__(self, objects: Objects) -> None:
        self.pool = ThreadPoolExecutor(THREADS, thread_name_prefix="omnigraph")
        self._objects = objects
        self._running: list[Future[Any]] = []
        self._at_close: dict[str, Callable[[], None]] = {}
        self._turns: set[str] = set()
        self._undeleted: list[str] = []
        self._lock = Lock()

    def later(self, work: Callable[[], None]) -> None:
        """Do something off the acknowledgement path; not at all when this is being closed."""
        with suppress(RuntimeError):
            task = self.pool.submit(work)
            with self._lock:
                self._running = [t for t in self._running if not t.done()] + [task]

    def request(self, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """A request to the store beside other work. On a disk it is over before a thread begins."""
        if self._objects.location.is_local:
            return done(function, *arguments)
        return self.pool.submit(function, *arguments)

    def wait(self) -> None:
        """Wait for work that runs off the acknowledgement path; its failures are harmless."""
        with self._lock:
            tasks, self._running = self._running, []
        for task in tasks:
            if (failure := task.exception()) is not None:
                _log.warning("housekeeping failed and is left for later: %s", failure)

    def take_turn(self, what: str) -> bool:
        """Whether this is the first time for something that is done once per handle."""
        with self._lock:
            first = what not in self._turns
            self._turns.add(what)
            return first

    def before_close(self, what: str, work: Callable[[], None]) -> None:
        """Do something once, at the end; for what need not be done after every write."""
        with self._lock:
            self._at_close[what] = work

    def discard(self, names: Sequence[str]) -> None:
        """Delete objects that nothing refers to. What fails is tried again with the next ones."""
        with self._lock:
            names, self._undeleted = [*self._undeleted, *names], []
        try:
            self._objects.delete(names)
        except OmnigraphError as e:
            _log.info("objects were not deleted, and are tried again: %s", e.message)
            with self._lock:
                self._undeleted = [*self._undeleted, *names][-UNDELETED_MAX:]

    def close(self) -> None:
        """Do what was left for the end, finish, and stop the threads."""
        with self._lock:
            last, self._at_close = self._at_close, {}
        for work in last.values():
            self.later(work)
        self.wait()
        self.pool.shutdown(wait=True)
