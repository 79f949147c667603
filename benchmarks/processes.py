"""Memory of processes as the kernel counts it. Linux only."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_LOOK_S = 0.1


def high_water(pid: int) -> int:
    """The most that a process ever had resident, in bytes."""
    return _status(pid, "VmHWM:")


def _status(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


class Tree:
    """A process and all below it: the most that they had resident together."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peak = 0

    def watch(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        while not stop.wait(_LOOK_S):
            parents = _parents()
            members = [pid for pid in parents if self._root in _line(pid, parents)]
            self.peak = max(self.peak, sum(map(_resident, members)))


class Peaks:
    """The executors of a cluster: the most that each had resident, its Python workers included.

    A look adds up what the processes below an executor's JVM have at that moment. Pages that they
    share are counted for each of them, so the sum is rather too large than too small.
    """

    def __init__(self, daemons: list[int]) -> None:
        self._daemons = frozenset(daemons)
        self._peaks: dict[int, int] = {}

    def watch(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        while not stop.wait(_LOOK_S):
            for executor, size in self._look().items():
                self._peaks[executor] = max(size, self._peaks.get(executor, 0))

    def executors(self) -> list[int]:
        """The peaks, the largest first."""
        return sorted(self._peaks.values(), reverse=True)

    def _look(self) -> dict[int, int]:
        parents = _parents()
        sizes: dict[int, int] = {}
        for pid in parents:
            line = _line(pid, parents)
            daemon = next((i for i, p in enumerate(line) if p in self._daemons), 0)
            if daemon:
                executor = line[daemon - 1]  # What the daemon of a worker has started.
                sizes[executor] = sizes.get(executor, 0) + _resident(pid)
        return sizes


def _line(pid: int, parents: dict[int, int]) -> list[int]:
    """A process, its parent, and so on."""
    line = [pid]
    while line[-1] in parents:
        line.append(parents[line[-1]])
    return line


def _resident(pid: int) -> int:
    try:
        return _status(pid, "VmRSS:")
    except OSError:
        return 0  # It has ended.


def _parents() -> dict[int, int]:
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            found[int(name)] = int(fields[1])
    return found
