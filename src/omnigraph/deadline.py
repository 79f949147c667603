"""Places inside long work where the limits of its caller are looked at.

    query -> [deadline] -> topology, storage

Work on whole tables goes through them piece by piece and looks at the clock in between. It does not
know whose clock: the caller says what is to be asked, for as long as its own call lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

_asked: ContextVar[Callable[[str], None] | None] = ContextVar("asked", default=None)


@contextmanager
def asking(check: Callable[[str], None]) -> Generator[None]:
    """Within this block long work calls ``check`` with what it is doing; it raises to end it."""
    token = _asked.set(check)
    try:
        yield
    finally:
        _asked.reset(token)


def look(where: str) -> None:
    """End here if the caller's time is up."""
    check = _asked.get()
    if check is not None:
        check(where)
