"""Reading against other engines: p50 of every question, measured in one interleaved run.

    python benchmarks/queries.py [--size S|M|L] [--rounds N] [--only lookup,hop2] [--json FILE]
    python benchmarks/queries.py --scale quick --engines omnigraph,lance

Every engine is a process of its own. For each argument all engines are asked once, in random order,
so that noise of the machine hits all alike. Ours runs twice: the distance of the two is what the
noise looks like, and a verdict inside it says so. Every single answer is compared with the one that
numpy gives; a wrong one voids the run. Files and the peers' databases stay in ``.bench``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from peers import ENGINES, Unavailable
from social import Files, Reference, Rows, files, same
from workers import EngineError, Worker

OURS, AGAIN = "omnigraph", "omnigraph again"
PEERS = [name for name in ENGINES if name != OURS]
WARM_UP = 10
QUICK_ARGUMENTS = 3
AFTER_COMMIT = "refresh"


@dataclass(frozen=True, slots=True)
class Workload:
    """A question, and what ours divided by a peer's time may be at most."""

    name: str
    title: str
    goals: dict[str, float]


WORKLOADS = [
    Workload("lookup", "lookup by key", {"lance": 1.5, "ladybug": 1.0}),
    Workload("filter", "filter age and city", {"duckdb": 2.0}),
    Workload("group", "group by city", {"duckdb": 2.0}),
    Workload("hop1", "1 hop", {"ladybug": 1.0, "kuzu": 0.25}),
    Workload("hop2", "2 hops", {"ladybug": 1.0, "kuzu": 0.25}),
    Workload("hop3", "3 hops", {"ladybug": 1.0, "kuzu": 0.25}),
    Workload("reach4", "reach in 4 hops", {}),
    Workload("all2", "all 2-hop paths", {"kuzu": 1.0}),
    Workload("first", "open + first hop", {"lance": 1.2}),
]
# A refresh follows the change: the step after a commit costs a small part of the first step.
COMMIT_GOAL = 0.1


class WrongAnswer(Exception):
    """An engine's answer is not the reference answer: no time of this run means anything."""


@dataclass(frozen=True, slots=True)
class Timing:
    p50_ms: float
    p95_ms: float
    calls: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """A ratio of p50s held against its goal."""

    peer: str
    ratio: float
    goal: float
    verdict: str


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table."""

    workload: str
    title: str
    timings: dict[str, Timing]
    ratios: dict[str, float]
    spread: float | None
    """How far apart the two runs of ours are: the larger p50 by the smaller."""
    verdicts: list[Verdict]


def arguments_of(workload: str, reference: Reference) -> list[str]:
    """One round of a question, long enough for a median."""
    repeats = {"group": 10, "all2": 3}
    if workload in repeats:
        return [""] * repeats[workload]
    if workload == "first":
        return reference.seeds[:2]
    return {"lookup": reference.keys, "filter": reference.cities}.get(workload, reference.seeds)


def ask(worker: Worker, question: str, argument: Any, expected: Rows) -> float:
    """Milliseconds of a right answer."""
    elapsed_ms, rows = worker.ask(question, argument)
    if not same(rows, expected):
        raise WrongAnswer(
            f"{worker.name}, {question}({argument!r}): {len(rows)} rows {rows[:3]}, "
            f"expected {len(expected)} rows {expected[:3]}"
        )
    return elapsed_ms


def measure(
    workload: Workload, workers: Sequence[Worker], reference: Reference, rounds: int, quick: bool
) -> Result | None:
    asked = [w for w in workers if w.can(workload.name)]
    if not asked:
        return None
    arguments = arguments_of(workload.name, reference)
    if quick:
        arguments = arguments[:QUICK_ARGUMENTS]
    answer = functools.cache(lambda argument: reference.answer(workload.name, argument))
    times: dict[str, list[float]] = {w.name: [] for w in asked}
    order = random.Random(workload.name)
    for argument in arguments[:WARM_UP]:
        for worker in asked:
            ask(worker, workload.name, argument, answer(argument))
    for _ in range(rounds):
        for argument in arguments:
            for worker in order.sample(asked, len(asked)):
                elapsed_ms = ask(worker, workload.name, argument, answer(argument))
                times[worker.name].append(elapsed_ms)
    return result(workload.name, workload.title, times, workload.goals)


def measure_commits(writer: Worker, reference: Reference, commits: int) -> Result:
    """The step right after a commit of one edge, beside the same step warm and the first of all."""
    seed = reference.seeds[0]
    names = ("commit of one edge", "next hop", "same hop again", "open + first hop")
    times: dict[str, list[float]] = {name: [] for name in names}
    ask(writer, "hop1", seed, reference.answer("hop1", seed))
    for n, stranger in enumerate(reference.strangers(seed, commits + 1)):
        reference.add(seed, stranger)
        expected = reference.answer("hop1", seed)
        spent = [
            ask(writer, "commit", (seed, stranger), []),
            ask(writer, "hop1", seed, expected),
            ask(writer, "hop1", seed, expected),
            ask(writer, "first", seed, expected),
        ]
        for name, elapsed_ms in zip(names, spent, strict=True):
            if n:  # The first commit warms up.
                times[name].append(elapsed_ms)
    goals = {"open + first hop": COMMIT_GOAL}
    return result(AFTER_COMMIT, "hop after a commit", times, goals, ours="next hop")


def result(
    name: str, title: str, times: dict[str, list[float]], goals: dict[str, float], ours: str = OURS
) -> Result:
    timings = {
        who: Timing(
            statistics.median(spent), sorted(spent)[int(0.95 * (len(spent) - 1))], len(spent)
        )
        for who, spent in times.items()
    }
    if ours not in timings:
        return Result(name, title, timings, {}, None, [])
    mine = timings[ours].p50_ms
    spread = None
    if AGAIN in timings:
        both = (mine, timings[AGAIN].p50_ms)
        spread = max(both) / min(both)
    ratios = {who: mine / t.p50_ms for who, t in timings.items() if who not in (ours, AGAIN)}
    verdicts = [
        Verdict(peer, ratios[peer], goal, verdict(ratios[peer], goal, spread or 1.0))
        for peer, goal in goals.items()
        if peer in ratios
    ]
    return Result(name, title, timings, ratios, spread, verdicts)


def verdict(ratio: float, goal: float, spread: float) -> str:
    """A ratio that two runs of the same code could turn over is called open."""
    if goal / spread < ratio <= goal * spread and spread > 1:
        return "met, in noise" if ratio <= goal else "missed, in noise"
    return "met" if ratio <= goal else "missed"


def table(results: Sequence[Result]) -> str:
    """Milliseconds at p50; behind a peer's, ours divided by it."""
    present = [p for p in PEERS if any(p in r.timings for r in results)]
    head = ["workload", "omnigraph", "A/A", *present, "goal", "verdict"]
    lines = [head]
    for r in results:
        if r.workload == AFTER_COMMIT:
            continue
        ours = r.timings.get(OURS)
        cells = [
            r.title,
            figure(ours.p50_ms) if ours else "",
            f"{r.spread:.2f}x" if r.spread else "",
        ]
        for peer in present:
            timing, ratio = r.timings.get(peer), r.ratios.get(peer)
            cells.append(
                (figure(timing.p50_ms) if timing else "")
                + (f" ({figure(ratio)}x)" if ratio is not None else "")
            )
        goals = [f"≤ {v.goal:g}x {v.peer}" for v in r.verdicts]
        lines.append([*cells, ", ".join(goals), ", ".join(v.verdict for v in r.verdicts)])
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def commit_lines(r: Result) -> str:
    judged = "".join(f"   goal ≤ {v.goal:g}x: {v.verdict}" for v in r.verdicts)
    ratios = ", ".join(f"{figure(v)}x {k}" for k, v in r.ratios.items() if "commit" not in k)
    steps = ", ".join(f"{k} {figure(t.p50_ms)}" for k, t in r.timings.items())
    return f"{r.title}, p50 ms: {steps}\n  the next hop is {ratios}{judged}"


def figure(value: float) -> str:
    """Three digits that matter."""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")


@contextlib.contextmanager
def working(
    names: Sequence[str], source: Files, place: Path, required: bool
) -> Iterator[list[Worker]]:
    """A worker for each engine that can run here. They start one by one: builds use every core."""
    workers: list[Worker] = []
    try:
        for name in names:
            for arm in (OURS, AGAIN) if name == OURS else (name,):
                try:
                    workers.append(Worker(arm, name, source, place))
                except Unavailable as e:
                    if required:
                        raise
                    print(f"without {arm}: {e}", file=sys.stderr)
        yield workers
    finally:
        for worker in workers:
            worker.close()


def run(options: argparse.Namespace, source: Files, place: Path) -> list[Result]:
    reference = Reference(source)
    chosen = [w for w in WORKLOADS if not options.only or w.name in options.only]
    results: list[Result] = []
    names = options.engines or list(ENGINES)
    with working(names, source, place, required=bool(options.engines)) as workers:
        for workload in chosen:
            found = measure(workload, workers, reference, options.rounds, options.quick)
            results += [found] if found is not None else []
            print(f"{workload.title} done", file=sys.stderr, flush=True)
        ours = any(w.name == OURS for w in workers)
    if ours and (not options.only or AFTER_COMMIT in options.only):
        commits = QUICK_ARGUMENTS if options.quick else 4 * options.rounds
        # Last, and on a graph of its own: its edges are not those of the files any more.
        own = place / "written"
        own.mkdir()
        writer = Worker("omnigraph, writing", OURS, source, own)
        try:
            results.append(measure_commits(writer, reference, commits))
        finally:
            writer.close()
    return results


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [*(w.name for w in WORKLOADS), AFTER_COMMIT]

    def some_of(known: Sequence[str], text: str) -> list[str]:
        chosen = [part.strip() for part in text.split(",")]
        for part in chosen:
            if part not in known:
                raise argparse.ArgumentTypeError(f"{part!r} is none of {', '.join(known)}")
        return chosen

    parser.add_argument("--size", choices="SML", help="default M")
    parser.add_argument("--rounds", type=int, help="passes over all arguments, default 5")
    parser.add_argument("--only", type=functools.partial(some_of, names), help="workloads")
    parser.add_argument("--engines", type=functools.partial(some_of, list(ENGINES)))
    parser.add_argument(
        "--scale", choices=("full", "quick"), default="full", help="quick: size S, one short round"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).parents[1] / ".bench", help="default .bench"
    )
    options = parser.parse_args(arguments)
    options.quick = options.scale == "quick"
    options.size = options.size or ("S" if options.quick else "M")
    options.rounds = options.rounds or (1 if options.quick else 5)
    return options


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("pylance", "numpy", "ladybug", "kuzu", "duckdb"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def main() -> int:
    options = parse()
    options.data.mkdir(parents=True, exist_ok=True)
    source = files(options.size, options.data)
    place = Path(tempfile.mkdtemp(prefix="run-", dir=options.data))
    try:
        results = run(options, source, place)
    except WrongAnswer as e:
        print(f"\nWRONG ANSWER, the run is void\n  {e}", file=sys.stderr)
        return 1
    except (EngineError, Unavailable) as e:
        print(f"\nthe run is void\n{e}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(place)
    print(
        f"size {options.size}, {os.cpu_count()} cores, p50 ms over {options.rounds} rounds, "
        "(ours / peer), every answer checked"
    )
    print(table(results))
    for found in results:
        if found.workload == AFTER_COMMIT:
            print(commit_lines(found))
    print("A/A: the same engine twice. A ratio closer to its goal than this is noise.")
    if options.json is not None:
        report = {
            "size": options.size,
            "rounds": options.rounds,
            "cores": os.cpu_count(),
            "versions": versions(),
            "results": [asdict(r) for r in results],
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
