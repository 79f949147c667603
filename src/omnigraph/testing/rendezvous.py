"""The test's side of the fail point action ``pause``: meet a child process at a named place.

The child stops at the point and says so by a file; the test waits for it, does what it wants to do
at that moment, and lets the child go on. No test needs to sleep and hope.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import InternalError
from omnigraph.failpoints import ENV_DIRECTORY, ENV_POINTS, ArmedAction, FailPoint

_POLL_S = 0.005
_WAIT_MAX_S = 60.0


class Rendezvous:
    """A directory in which a test and its children meet."""

    def __init__(self, directory: Path, *, clock: Clock | None = None) -> None:
        self._directory = directory
        self._clock = clock or SystemClock()

    def env(self, *points: FailPoint) -> dict[str, str]:
        """The environment that makes a child pause at these points."""
        return {
            ENV_POINTS: ",".join(f"{point}={ArmedAction.PAUSE}" for point in points),
            ENV_DIRECTORY: str(self._directory),
        }

    def wait_reached(self, point: FailPoint, *, alive: Callable[[], bool]) -> None:
        """Wait until a child is at the point. ``alive`` ends the wait for a child that died."""
        deadline_s = self._clock.monotonic_s() + _WAIT_MAX_S
        reached = self._directory / f"{point}.reached"
        while not reached.exists():
            # Looked at once more after the child's end: it may have come past and then ended.
            if not alive() and not reached.exists():
                raise InternalError(f"the child ended before it reached {point}")
            if self._clock.monotonic_s() > deadline_s:
                raise InternalError(f"the child did not reach {point} in {_WAIT_MAX_S} s")
            self._clock.sleep(_POLL_S)

    def release(self, point: FailPoint) -> None:
        """Let the child go on."""
        (self._directory / f"{point}.go").touch()
