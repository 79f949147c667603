"""Lost races: how often a write tries, and how long it waits in between."""

from __future__ import annotations

from omnigraph.errors import ConflictError, ErrorKind
from omnigraph.manifest.repository import Repository

ATTEMPTS_MAX = 64
BACKOFF_MIN_S = 0.01
BACKOFF_MAX_S = 1.0


def back_off(repository: Repository, attempt: int, attempt_s: float = BACKOFF_MIN_S) -> None:
    """Wait a random part of a window that grows with every loss, so that racers spread out."""
    window_s = max(BACKOFF_MIN_S, attempt_s / 2) * 2 ** min(attempt - 1, 6)
    repository.clock.sleep(min(window_s, BACKOFF_MAX_S) * repository.ids.jitter())


def contention(branch: str) -> ConflictError:
    """Too many races were lost."""
    return ConflictError(
        f"gave up after {ATTEMPTS_MAX} lost races on branch '{branch}'",
        kind=ErrorKind.CONTENTION,
        hint="many writers publish on this branch: repeat the command, or batch the writes",
        details={"attempts": ATTEMPTS_MAX},
    )
