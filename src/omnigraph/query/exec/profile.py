"""What each step of a plan did: rows, time, requests. For ``explain --analyze``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.clock import Clock
from omnigraph.query.exec.world import World
from omnigraph.query.plan.nodes import Plan


@dataclass(slots=True, kw_only=True, frozen=True)
class StepNotes:
    """One step over the whole run; a block's step may run several times."""

    rows: int
    seconds: float
    """Without the steps below it."""
    requests: int
    calls: int


class Profile:
    """Notes of all steps, by the step's identity in the plan."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notes: dict[int, StepNotes] = {}
        self._inside: list[tuple[float, int]] = [(0.0, 0)]

    def of(self, plan: Plan) -> StepNotes | None:
        """What a step did, if it ran."""
        return self._notes.get(id(plan))

    @contextmanager
    def step(self, plan: Plan, world: World) -> Generator[Callable[[int], None]]:
        """Measure one step; the steps below it measure themselves."""
        started, requests = self._clock.monotonic_s(), world.requests()
        self._inside.append((0.0, 0))
        seen = [0]
        yield lambda rows: seen.__setitem__(0, rows)
        total = self._clock.monotonic_s() - started
        asked = world.requests() - requests
        below_s, below_requests = self._inside.pop()
        outer_s, outer_requests = self._inside[-1]
        self._inside[-1] = (outer_s + total, outer_requests + asked)
        old = self._notes.get(id(plan)) or StepNotes(rows=0, seconds=0.0, requests=0, calls=0)
        self._notes[id(plan)] = StepNotes(
            rows=old.rows + seen[0],
            seconds=old.seconds + total - below_s,
            requests=old.requests + asked - below_requests,
            calls=old.calls + 1,
        )
