"""Time that work takes, without that in which modules are imported for it.

    clock -> [work clock] -> what a command or a step of a query says it took

Modules are imported when they are first needed, which may be in the middle of a query. That belongs
to the start of the program: measured with the query, it would look as if the database were slow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from threading import get_ident
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

from omnigraph.clock import Clock, SystemClock

if TYPE_CHECKING:
    from importlib.abc import MetaPathFinder
else:  # It is empty here, and importing it takes time.
    MetaPathFinder = object


class WorkClock:
    """A clock that stands still while this thread imports a module; runs within its block."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._finder = _TimingFinder(self._clock)

    def __enter__(self) -> Self:
        sys.meta_path.insert(0, self._finder)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self._finder)

    def now_us(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        return self._clock.now_us()

    def monotonic_s(self) -> float:
        """Seconds of work."""
        return self._clock.monotonic_s() - self._finder.spent_s

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self._clock.sleep(seconds)


class _TimingFinder(MetaPathFinder):
    """Finds what the other finders find, and measures how long it takes to load."""

    def __init__(self, clock: Clock) -> None:
        self.spent_s = 0.0
        self._clock = clock
        self._thread = get_ident()
        self._importing = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if get_ident() != self._thread:
            return None
        with self._counted():
            spec = self._found(fullname, path, target)
        # Loaders of built-in modules are classes; such modules take no time.
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, type):
            for name in ("create_module", "exec_module"):
                self._measure(spec.loader, name)
        return spec

    def _found(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        for finder in tuple(sys.meta_path):
            if not isinstance(finder, _TimingFinder):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None

    def _measure(self, loader: Any, name: str) -> None:
        original: Callable[[Any], Any] | None = getattr(loader, name, None)
        if original is None:
            return

        def measured(argument: Any) -> Any:
            # Once; afterwards the loader is as it was.
            loader.__dict__.pop(name, None)
            with self._counted():
                return original(argument)

        try:
            loader.__dict__[name] = measured
        except AttributeError:  # It has slots: then its time counts as work.
            return

    @contextmanager
    def _counted(self) -> Generator[None]:
        if self._importing:  # What a module imports is part of its own time.
            yield
            return
        self._importing = True
        started_s = self._clock.monotonic_s()
        try:
            yield
        finally:
            self.spent_s += self._clock.monotonic_s() - started_s
            self._importing = False
