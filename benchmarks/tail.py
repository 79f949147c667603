"""Single-edge writes in depth, with and without the joining of small files.

    python benchmarks/tail.py [depth] [window]

Two graphs get the same writes in turns, so that the machine's moods meet both. For each the time of
a write near the start and near the end, and of all of them; bytes are those of the table's own
files, from the folder. Throughput counts what follows a write in the background, too. The figures
to look at are the ratios.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import omnigraph
from omnigraph.storage import compact

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
NEVER = 1 << 30


class Arm:
    """A graph that is written to one edge at a time."""

    def __init__(self, root: Path, tail_max: int) -> None:
        self.root = root
        self.tail_max = tail_max
        self.times: list[float] = []
        self.sizes: list[int] = []
        self.settling = 0.0
        self.graph = omnigraph.init(root, SCHEMA)
        self.graph.load([{"type": "Person", "data": {"name": name}} for name in "ab"])

    def write(self) -> None:
        compact.TAIL_MAX = self.tail_max
        started = time.perf_counter()
        self.graph.load([{"edge": "Knows", "from": "a", "to": "b"}])
        acknowledged = time.perf_counter()
        self.times.append(acknowledged - started)
        # What follows in the background must not fall into the time of the other graph.
        self.graph.settle()
        self.settling += time.perf_counter() - acknowledged

    def weigh(self) -> None:
        """Bytes of the newest version's manifest."""
        pin = self.graph._repository.branch("main").head.snapshot.pins["edge:Knows"]
        self.sizes.append(pin.name.manifest_size)


def main(depth: int, window: int) -> None:
    work = Path(tempfile.mkdtemp(prefix="omnigraph-tail-"))
    joined, never = Arm(work / "joined", compact.TAIL_MAX), Arm(work / "never", NEVER)
    for i in range(depth):
        for arm in (joined, never) if i % 2 else (never, joined):
            arm.write()
            arm.weigh()
    for name, arm in (("joined", joined), ("never", never)):
        start = statistics.median(arm.times[5 : 5 + window])
        end = statistics.median(arm.times[-window:])
        mean_end = statistics.fmean(arm.times[-window:])
        mean_start = statistics.fmean(arm.times[5 : 5 + window])
        print(
            f"{name:7} median {start * 1e3:6.2f} -> {end * 1e3:6.2f} ms ({end / start:.2f}x), "
            f"mean {mean_start * 1e3:6.2f} -> {mean_end * 1e3:6.2f} ms "
            f"({mean_end / mean_start:.2f}x), manifest {arm.sizes[0]} -> {max(arm.sizes[-window:])}"
        )
    total = [sum(arm.times) + arm.settling for arm in (joined, never)]
    print(f"throughput of joined / never over {depth} writes: {total[1] / total[0]:.2f}")
    never.graph.close()
    growth(work, joined)


def growth(work: Path, deep: Arm, rounds: int = 192) -> None:
    """The deep graph beside one that is new again and again, write by write."""
    before, fresh, shallow = len(deep.times), list[float](), deep
    for i in range(rounds):
        if i % 48 == 0:
            shallow = Arm(work / f"fresh{i}", deep.tail_max)
            for _ in range(5):
                shallow.write()
            shallow.times.clear()
        for arm in (deep, shallow) if i % 2 else (shallow, deep):
            arm.write()
        fresh.append(shallow.times[-1])
    late = deep.times[before:]
    print(
        f"at depth {before} / at depth 6 to 54: median "
        f"{statistics.median(late) / statistics.median(fresh):.2f}x, "
        f"mean {statistics.fmean(late) / statistics.fmean(fresh):.2f}x"
    )


if __name__ == "__main__":
    main(*(int(a) for a in [*sys.argv[1:], "1000", "128"][:2]))
