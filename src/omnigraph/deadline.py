"""Places inside long work where the limits of its caller are looked at.

    query -> [deadline] -> topology, storage

Work on whole tables goes through them piece by piece and looks at the clock in between. It does not
know whose clock: the caller says what is to be asked, for as long as its own call lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

_asked: ContextVar[Callable[[str], None] | None] = ContextVar("asked", default=None)


class Asking:
    """Within this block long work calls ``check`` with what it is doing; it raises to end it."""

    __slots__ = ("_check", "_token")

    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check

    def __enter__(self) -> None:
        self._token = _asked.set(self._check)

    def __exit__(self, *raised: object) -> None:
        _asked.reset(self._token)


def look(where: str) -> None:
    """End here if the caller's time is up."""
    check = _asked.get()
    if check is not None:
        check(where)
