"""The second part of `make demo`: what outgrows one process is read, checked and written by Spark.

It goes on with the graph that demo.py leaves in ./.demo/shipping.
"""

from __future__ import annotations

import shutil
import sys

from demo_stage import DATA, GRAPH, command, console, heading, scene, show, show_counts
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text
from shipping_data import Record, make_shipping, write_jsonl
from shipping_questions import longest_journey

import omnigraph
from omnigraph.input.phases import LoadPhase

BULK_FILES = 16


def main() -> None:
    """One load, one question."""
    try:
        opened = omnigraph.open(GRAPH)
    except omnigraph.NotFoundError:
        sys.exit(f"there is no graph at {GRAPH}: run examples/demo.py first")
    with opened as graph:
        scene("Spark", "the same schema, rules and commits, for what outgrows one process")
        if graph.snapshot().count("Container"):
            sys.exit(f"the cargo is in {GRAPH} already: run examples/demo.py first")
        load_bulk(graph, make_shipping().cargo)
        journey = longest_journey(graph.snapshot())
        heading("The container that travelled farthest, found with Arrow")
        show(f"{journey.container}, {journey.distance_nm:,} nautical miles")
        show(" → ".join(journey.ports))
    console.print()


def load_bulk(graph: omnigraph.Graph, records: list[Record]) -> None:
    """A folder of files, on Spark; without Spark or Java in this process, with the same outcome."""
    folder = DATA / "cargo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    size = -(-len(records) // BULK_FILES)
    for number in range(BULK_FILES):
        part = records[number * size : (number + 1) * size]
        write_jsonl(folder / f"part-{number:02}.jsonl", part)
    actor, message = "cargo-desk", "Containers and where they went"
    command(
        f"load {GRAPH} --data {folder} --mode append --engine spark"
        f" --as {actor} --message '{message}'"
    )
    try:
        with PhaseBars() as bars:
            result = graph.load(
                folder, engine="spark", phases=bars.tell, actor=actor, message=message
            )
    except (omnigraph.UsageError, omnigraph.StorageError) as missing:
        show(Text(missing.message, "yellow"))
        if missing.hint:
            show(Text(f"To see it on Spark: {missing.hint}", "yellow"))
        show(Text("Loading in this process instead.", "yellow"))
        files = sorted(folder.iterdir())
        result = graph.load(files, engine="local", actor=actor, message=message)
    show_counts(result)


class PhaseBars:
    """A bar for each phase of a load, as long as Spark's tasks take."""

    def __init__(self) -> None:
        self._bars = Progress(
            TextColumn("  {task.description:15}"),
            BarColumn(),
            TextColumn("{task.fields[tasks]:>16}"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> PhaseBars:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self._finish()
        else:
            for task in self._bars.task_ids:
                self._bars.update(task, visible=False)
        self._bars.stop()

    def tell(self, said: LoadPhase) -> None:
        """How far the load is."""
        if said.phase not in self._tasks:
            self._finish()
            self._tasks[said.phase] = self._bars.add_task(said.phase, total=None, tasks="")
        if said.total:
            told = f"{said.done} of {said.total} tasks"
            task = self._tasks[said.phase]
            self._bars.update(task, completed=said.done, total=said.total, tasks=told)

    def _finish(self) -> None:
        """What came before is over: a phase without tasks, too, has a full bar then."""
        for task in self._bars.tasks:
            total = task.total or 1
            self._bars.update(task.id, total=total, completed=total)


if __name__ == "__main__":
    main()
