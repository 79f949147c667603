"""Ctrl-C in this process: it interrupts until the answer is given, and then it is too late.

A result that was printed stays a success, whatever arrives while threads end and the interpreter
shuts down. Commands that run inside another program (tests) leave its handler alone.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Generator
from contextlib import contextmanager
from threading import current_thread, main_thread

_owned = False
_conversing = False


def own() -> None:
    """This process is the command line's: its handler may be changed."""
    global _owned
    _owned = current_thread() is main_thread()


def answered() -> None:
    """The command did what it was asked for and said so: from now on Ctrl-C is ignored."""
    if _owned and not _conversing:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def conversation() -> Generator[None]:
    """Many answers are given, and none of them is the last: Ctrl-C goes on interrupting."""
    global _conversing
    _conversing = True
    try:
        yield
    finally:
        _conversing = False


def silence_libraries() -> None:
    """Let no library write to stderr by itself: py4j reports an interrupt with a traceback, by a
    logger that prints if there is no handler."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.NullHandler())
