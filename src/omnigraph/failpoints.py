"""Named places where a test can make a running write die, stop or be overtaken.

The write path calls ``hit(FailPoint.X)`` at every boundary of its crash windows. With nothing armed
that is one look at an empty dictionary. A test arms a point in its own process with ``armed``; a
child process is armed by its environment, read once, when this module is imported:

    OMNIGRAPH_FAILPOINTS="publish.before_commit=kill;skip=1,stage.after_commit=exit"

Must not: change what the write path does when nothing is armed, know anything about graphs, or be
caught by the handlers of our own errors (``FailPointError`` is no ``OmnigraphError`` on purpose).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import UsageError

ENV_POINTS = "OMNIGRAPH_FAILPOINTS"
ENV_DIRECTORY = "OMNIGRAPH_FAILPOINTS_DIR"
EXIT_CODE = 41
"""What a process that died of ``exit`` returns: no code that Python or the CLI uses."""

_PAUSE_POLL_S = 0.005
_PAUSE_MAX_S = 120.0


class FailPoint(StrEnum):
    """Every place that can fail on demand, by what passes it."""

    INIT_BEFORE_MANIFEST = "init.before_manifest"
    INIT_AFTER_MANIFEST = "init.after_manifest"
    SCHEMA_AFTER_OBJECTS = "schema.after_objects"
    MIGRATE_BEFORE_STEP = "migrate.before_step"
    MIGRATE_AFTER_STEP = "migrate.after_step"
    WRITE_INTENT_WRITTEN = "write.intent_written"
    STAGE_AFTER_FILES = "stage.after_files"
    STAGE_AFTER_COMMIT = "stage.after_commit"
    STAGE_AFTER_PIN = "stage.after_pin"
    WRITE_ALL_STAGED = "write.all_staged"
    PUBLISH_BEFORE_COMMIT = "publish.before_commit"
    PUBLISH_AFTER_COMMIT = "publish.after_commit"
    SETTLE_BEFORE_HINT = "settle.before_hint"
    SETTLE_BEFORE_MIRROR = "settle.before_mirror"
    SETTLE_BEFORE_INTENT_DROP = "settle.before_intent_drop"
    BRANCH_BEFORE_REF = "branch.before_ref"
    BRANCH_BEFORE_RENAME = "branch.before_rename"
    BRANCH_BEFORE_DEATH = "branch.before_death"
    RECOVERY_AFTER_REVOCATION = "recovery.after_revocation"
    RECOVERY_BEFORE_DROP = "recovery.before_drop"
    CLEANUP_AFTER_RECORD = "cleanup.after_record"
    CLEANUP_AFTER_ANNOUNCEMENT = "cleanup.after_announcement"
    CLEANUP_BETWEEN_FILES = "cleanup.between_files"


class ArmedAction(StrEnum):
    """What an armed point does. ``CALL`` is for use in process: an environment has no callables."""

    RAISE = "raise"
    EXIT = "exit"
    KILL = "kill"
    PAUSE = "pause"
    CALL = "call"


class FailPointError(Exception):
    """Raised by an armed point. Stands for a failure that was not foreseen."""


class Arm:
    """One armed point. ``hits`` counts how often it was reached, ``fired`` how often it acted."""

    def __init__(
        self,
        point: FailPoint,
        action: ArmedAction,
        *,
        skip: int,
        times: int | None,
        call: Callable[[], object] | None = None,
        directory: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        if (action is ArmedAction.CALL) != (call is not None):
            raise UsageError(f"fail point {point}: the action 'call' needs a callable in process")
        if action is ArmedAction.PAUSE and directory is None:
            raise UsageError(f"fail point {point}: 'pause' needs a directory ({ENV_DIRECTORY})")
        if skip < 0 or (times is not None and times < 1):
            raise UsageError(f"fail point {point}: skip must be >= 0 and times >= 1")
        self.point = point
        self.action = action
        self.hits = 0
        self.fired = 0
        self._skip = skip
        self._times = times
        self._call = call
        self._directory = directory
        self._clock = clock or SystemClock()

    def reach(self) -> bool:
        """Count one hit; true when it is this hit that acts. The caller holds the lock."""
        self.hits += 1
        due = self.hits > self._skip and (self._times is None or self.fired < self._times)
        self.fired += due
        return due

    def act(self) -> None:
        """Do it. Never under the lock: a pause is long, and a call may hit points itself."""
        match self.action:
            case ArmedAction.RAISE:
                raise FailPointError(f"fail point {self.point}")
            case ArmedAction.EXIT:
                os._exit(EXIT_CODE)
            case ArmedAction.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case ArmedAction.PAUSE:
                self._pause()
            case ArmedAction.CALL:
                if self._call is not None:
                    self._call()

    def _pause(self) -> None:
        if self._directory is None:
            return
        (self._directory / f"{self.point}.reached").touch()
        go = self._directory / f"{self.point}.go"
        deadline_s = self._clock.monotonic_s() + _PAUSE_MAX_S
        while not go.exists():
            # Bounded, so that a test that died leaves no child behind that waits for ever.
            if self._clock.monotonic_s() > deadline_s:
                raise FailPointError(f"fail point {self.point}: {go} was not created")
            self._clock.sleep(_PAUSE_POLL_S)


_POINTS = frozenset(point.value for point in FailPoint)
_ACTIONS = frozenset(action.value for action in ArmedAction)
_lock = threading.Lock()
_arms: dict[FailPoint, tuple[Arm, ...]] = {}


def hit(point: FailPoint) -> None:
    """Pass a named place. Does nothing unless a test armed it."""
    if _arms:
        _reach(point)


def _reach(point: FailPoint) -> None:
    with _lock:
        due = [arm for arm in _arms.get(point, ()) if arm.reach()]
    for arm in due:
        arm.act()


@contextmanager
def armed(
    point: FailPoint,
    action: ArmedAction | str | Callable[[], object],
    *,
    skip: int = 0,
    times: int | None = 1,
    directory: Path | None = None,
    clock: Clock | None = None,
) -> Generator[Arm, None, None]:
    """Arm a point of this process for the length of the block, for all its threads.

    ``skip`` ignores the first hits; then the point acts ``times`` times (``None``: always). Once is
    the default, so that a callable which itself writes to a graph does not call itself for ever.
    ``directory`` belongs to ``pause``. The arm that is yielded counts how often it was reached.
    """
    if isinstance(action, str):
        kind, call = _action(point, action), None
    else:
        kind, call = ArmedAction.CALL, action
    arm = Arm(point, kind, skip=skip, times=times, call=call, directory=directory, clock=clock)
    _add(arm)
    try:
        yield arm
    finally:
        _remove(arm)


def arm_from_environment(environment: Mapping[str, str]) -> tuple[Arm, ...]:
    """Arm what ``OMNIGRAPH_FAILPOINTS`` names, for the rest of this process.

    Raises ``UsageError`` on anything it does not understand: a crash test whose point was misspelt
    would otherwise pass without having crashed anything.
    """
    directory = environment.get(ENV_DIRECTORY)
    arms = tuple(
        _parse(entry, Path(directory) if directory else None)
        for entry in environment.get(ENV_POINTS, "").split(",")
        if entry.strip()
    )
    for arm in arms:
        _add(arm)
    return arms


def disarm(arms: tuple[Arm, ...]) -> None:
    """Take back what ``arm_from_environment`` armed."""
    for arm in arms:
        _remove(arm)


def _parse(entry: str, directory: Path | None) -> Arm:
    """One ``name=action[;skip=n][;times=n]``."""
    head, *options = (part.strip() for part in entry.split(";"))
    name, separator, action = head.partition("=")
    if not separator or name not in _POINTS:
        known = ", ".join(FailPoint)
        raise UsageError(f"{ENV_POINTS}: no fail point {name!r}", hint=f"known points: {known}")
    numbers = {"skip": 0, "times": 1}
    for option in options:
        key, _, value = option.partition("=")
        if key not in numbers or not value.isdecimal():
            raise UsageError(f"{ENV_POINTS}: bad option {option!r} of {name}")
        numbers[key] = int(value)
    point = FailPoint(name)
    return Arm(
        point,
        _action(point, action),
        skip=numbers["skip"],
        times=numbers["times"],
        directory=directory,
    )


def _action(point: FailPoint, name: str) -> ArmedAction:
    if name not in _ACTIONS:
        raise UsageError(f"fail point {point}: no action {name!r}", hint=", ".join(ArmedAction))
    return ArmedAction(name)


def _add(arm: Arm) -> None:
    with _lock:
        _arms[arm.point] = (*_arms.get(arm.point, ()), arm)


def _remove(arm: Arm) -> None:
    with _lock:
        left = tuple(other for other in _arms.get(arm.point, ()) if other is not arm)
        if left:
            _arms[arm.point] = left
        else:
            _arms.pop(arm.point, None)


arm_from_environment(os.environ)
