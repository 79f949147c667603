"""Two reads at once: the sides of a difference do not wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


def both(first: Callable[[], First], second: Callable[[], Second]) -> tuple[First, Second]:
    """Both results; the first is made in another thread meanwhile."""
    with ThreadPoolExecutor(1, thread_name_prefix="omnigraph-branch") as pool:
        ahead = pool.submit(first)
        later = second()
        return ahead.result(), later
