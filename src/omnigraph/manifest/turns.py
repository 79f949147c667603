"""Writes of one handle take turns; one that waits may be carried out by the one whose turn it is.

    write -> [queue up] -> lead, or wait until another one that leads has done it

The first in the queue leads: it does its own work, and whatever it can do of the others beside it.
Then the next one that is left leads. So a write waits for those before it, never for a timer.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import BoundedSemaphore, Event, Lock, RLock, get_ident
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

AHEAD_MAX = 2
"""Writes that are prepared at a time while another one is published: each thread that computes
takes its share of the interpreter, and the one that publishes has to wait for it many times."""


class Turn(Generic[T, R]):
    """One write in the queue, and what became of it."""

    def __init__(self, work: T) -> None:
        self.work = work
        self.leads = False
        self.taken = False
        """Another one is doing it now."""
        self._result: R | None = None
        self._error: BaseException | None = None
        self._settled = False
        self._called = Event()

    @property
    def settled(self) -> bool:
        """Whether it has an outcome."""
        return self._settled

    def succeed(self, result: R) -> None:
        self._result, self._settled = result, True
        self._called.set()

    def fail(self, error: BaseException) -> None:
        self._error, self._settled = error, True
        self._called.set()

    def call(self) -> None:
        """It is its turn to lead."""
        self.leads = True
        self._called.set()

    def wait(self) -> None:
        """Until it leads or is settled."""
        self._called.wait()

    @property
    def result(self) -> R:
        """The outcome, or its error."""
        if self._error is not None:
            raise self._error
        return self._result  # pyright: ignore[reportReturnType]


class Turns(Generic[T, R]):
    """The queue of one handle."""

    def __init__(self) -> None:
        self._waiting: list[Turn[T, R]] = []
        self.held = RLock()
        """By the one that leads, and by whatever else may not run beside a write."""
        self.ahead = BoundedSemaphore(AHEAD_MAX)
        """Held while a write that waits is prepared."""
        self._leader: int | None = None
        """The thread that leads."""
        self._lock = Lock()

    @property
    def is_led(self) -> bool:
        """Whether a write is being carried out."""
        return self._leader is not None

    @property
    def is_led_here(self) -> bool:
        """Whether this thread leads: what it asks for on the way cannot wait for itself."""
        return self._leader == get_ident()

    def take(self, work: T, lead: Callable[[Turn[T, R]], None]) -> R:
        """Queue up, and return the outcome. ``lead`` settles at least the turn it is given."""
        turn = Turn[T, R](work)
        with self._lock:
            self._waiting.append(turn)
            if self._leader is None:
                self._leader = get_ident()
                turn.leads = True
        try:
            self._await(turn)
            if not turn.settled:
                self._leader = get_ident()
                lead(turn)
        except BaseException as e:
            if not turn.settled:
                turn.fail(e)
            raise
        finally:
            self._leave(turn)
        return turn.result

    def waiting(self, fits: Callable[[T], bool]) -> list[Turn[T, R]]:
        """Take the turns that fit, in their order; the caller leads."""
        with self._lock:
            found = [t for t in self._waiting if not t.leads and fits(t.work)]
            for turn in found:
                turn.taken = True
            return found

    def put_back(self, turns: list[Turn[T, R]]) -> None:
        """Leave turns that have no outcome to whichever leads next."""
        with self._lock:
            for turn in turns:
                turn.taken = False

    def _await(self, turn: Turn[T, R]) -> None:
        if turn.leads:
            return
        try:
            turn.wait()
        except BaseException:
            # An interrupt. What is being published is published: only then it is known what to say.
            with self._lock:
                if not turn.taken:
                    self._waiting = [t for t in self._waiting if t is not turn]
            if turn.taken:
                turn.wait()
            raise

    def _leave(self, turn: Turn[T, R]) -> None:
        with self._lock:
            self._waiting = [t for t in self._waiting if t is not turn and not t.settled]
            if turn.leads:
                following = next(iter(self._waiting), None)
                self._leader = None if following is None else 0
                if following is not None:
                    following.call()
