"""`make demo`: build a shipping graph, look at it, and try to break it.

Leaves the graph in ./.demo/shipping and its input in ./.demo/data, replaced on every run.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from shipping_data import Record, Shipping, edge, make_shipping, node, write_jsonl
from shipping_questions import busiest_ports, hops, longest_journey, ports_alike, shortest_route

import omnigraph
from omnigraph.input.phases import LoadPhase
from omnigraph.schema.catalog import Cardinality, EdgeType, GraphType, NodeType

SCHEMA = Path(__file__).with_name("shipping.pg")
DEMO = Path(".demo")
GRAPH = DEMO / "shipping"
DATA = DEMO / "data"
BULK_FILES = 16
WIDTH_PIPED = 100

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_PIPED)


def main() -> None:
    """The show, in seven scenes."""
    for place in (GRAPH, DATA):
        shutil.rmtree(place, ignore_errors=True)
    DATA.mkdir(parents=True)
    with create() as graph:
        load_all(graph, make_shipping())
        show_snapshot(graph)
        show_answers(graph.snapshot())
        show_guard_rails(graph)
    show_next_steps()


def create() -> omnigraph.Graph:
    """Scene 1: a schema becomes a graph."""
    scene("A schema", "types, keys and rules are declared once and hold for every write")
    command(f"init {GRAPH} --schema {shown(SCHEMA)} --as harbour-office")
    graph = omnigraph.init(GRAPH, SCHEMA, actor="harbour-office")
    table = plain_table("type", "key", "rules")
    for graph_type in graph.catalog.types():
        rules = Text("\n").join(Text(r) for r in rules_of(graph_type))
        table.add_row(title_of(graph_type), ", ".join(key_of(graph_type)), rules)
    show(table)
    return graph


def load_all(graph: omnigraph.Graph, shipping: Shipping) -> None:
    """Scene 2: a few commits by different people."""
    scene("Loading", "each file is checked as a whole and becomes one commit, or nothing does")
    load(graph, "reference", shipping.reference, "harbour-office", "Carriers, ports and lanes")
    load(graph, "fleet", shipping.fleet, "fleet-desk", "Vessels and who operates them")
    load(graph, "voyages", shipping.voyages, "planning", "Schedule for eight months")
    scene("Bulk loading", "what outgrows one process is read, checked and written by Spark")
    load_bulk(graph, shipping.cargo)
    load(graph, "arrivals", shipping.arrivals, "operations", "Voyage status as of 1 June", "merge")


def load(
    graph: omnigraph.Graph,
    name: str,
    records: list[Record],
    actor: str,
    message: str,
    mode: str = "append",
) -> None:
    """One file, in this process."""
    path = DATA / f"{name}.jsonl"
    write_jsonl(path, records)
    command(f"load {GRAPH} --data {path} --mode {mode} --as {actor} --message '{message}'")
    show_counts(graph.load(path, mode=mode, actor=actor, message=message))


def load_bulk(graph: omnigraph.Graph, records: list[Record]) -> None:
    """A folder of files, on Spark; without Spark or Java in this process, with the same outcome."""
    folder = DATA / "cargo"
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


def show_counts(result: omnigraph.LoadResult) -> None:
    """What a load brought."""
    counts = ", ".join(f"{t.entities_loaded:,} {t.name}" for t in (*result.nodes, *result.edges))
    show(Text.assemble((f"{result.total_entities:,} entities", "green"), f": {counts}"))


def show_snapshot(graph: omnigraph.Graph) -> None:
    """Scene 3: what is there now, and how it came to be."""
    view = graph.snapshot()
    total = sum(d.entity_count for d in view.datasets)
    scene("The graph", f"{total:,} entities in {len(view.datasets)} types, version {view.version}")
    command(f"snapshot {GRAPH}")
    table = plain_table("type", "kind", "entities")
    table.columns[2].justify = "right"
    for d in view.datasets:
        table.add_row(d.type_name, d.entity_kind, f"{d.entity_count:,}")
    show(table)
    command(f"commit list {GRAPH}")
    log = plain_table("commit", "actor", "kind", "changes", "message")
    log.columns[0].no_wrap = True
    for commit in graph.commits():
        inserted = sum(c.inserted for c in commit.changes.values())
        updated = sum(c.updated for c in commit.changes.values())
        changes = " ".join([f"+{inserted:,}"] * (inserted > 0) + [f"~{updated:,}"] * (updated > 0))
        log.add_row(commit.id, commit.actor, commit.kind, changes, commit.message)
    show(log)


def show_answers(view: omnigraph.SnapshotView) -> None:
    """Scene 4: questions, answered with Arrow on one snapshot."""
    scene("Answers", "every type of a snapshot is an Arrow table (examples/shipping_questions.py)")
    ports = plain_table("busiest ports", "calls", "carriers", "capacity called")
    for column in ports.columns[1:]:
        column.justify = "right"
    for port in busiest_ports(view, 6):
        ports.add_row(port.name, f"{port.calls:,}", str(port.carriers), f"{port.teu:,} TEU")
    show(ports)
    journey = longest_journey(view)
    heading("The container that travelled farthest")
    show(f"{journey.container}, {journey.distance_nm:,} nautical miles")
    show(" → ".join(journey.ports))
    heading("The shortest way from Reykjavík to Auckland by liner")
    route = shortest_route(view, "ISREY", "NZAKL")
    show("\n".join([*hops(route), f"{len(route) - 1} lanes, {route[-1][1]:,} nm"]))
    heading("Ports that trade what Rotterdam trades (nearest vectors)")
    alike = ports_alike(view, "NLRTM", 4)
    show(", ".join(f"{name} {likeness:.3f}" for name, likeness in alike))


def show_guard_rails(graph: omnigraph.Graph) -> None:
    """Scene 5: bad input changes nothing and says why."""
    scene("Guard rails", "what breaks a rule is refused as a whole, with the file and the line")
    before = graph.snapshot()
    for name, title, records in bad_inputs(graph):
        path = DATA / f"{name}.jsonl"
        write_jsonl(path, records)
        heading(title)
        command(f"load {GRAPH} --data {path} --mode append")
        try:
            graph.load(path, mode="append")
        except omnigraph.OmnigraphError as error:
            show(Text(error.message, "red"))
        else:
            sys.exit(f"{path} was accepted, and it should not have been")
    after = graph.snapshot()
    if (after.commit, after.to_dict()) != (before.commit, before.to_dict()):
        sys.exit("a refused load has changed the graph")
    heading("And the graph?")
    show(Text(f"Still version {after.version} at commit {after.commit.id}: unchanged.", "green"))


def bad_inputs(graph: omnigraph.Graph) -> Iterator[tuple[str, str, list[Record]]]:
    """Files that must be refused: name, what is wrong, content."""
    times = {"arrival": "2026-07-01T06:00:00Z", "departure": "2026-07-02T18:00:00Z"}
    first = graph.snapshot().rows("Vessel", columns=["imo", "name", "call_sign"]).to_dicts()[0]
    vessel = first | {"capacity_teu": 2_800, "built": "2012-05-15"}
    yield (
        "bad-voyage",
        "A voyage to a port that does not exist, by a ghost ship",
        [
            node("Voyage", number="KELP-99-001", service="KELP special", status="planned"),
            edge("SailedBy", "KELP-99-001", 9_999_999),
            edge("CallsAt", "KELP-99-001", "NLRTM", leg=1, **times),
            edge("CallsAt", "KELP-99-001", "XXXXX", leg=2, **times),
        ],
    )
    yield (
        "bad-vessel",
        "Values out of range, an unknown word, a malformed code",
        [
            node("Vessel", **vessel | {"imo": 42, "call_sign": "KE9001", "capacity_teu": 90_000}),
            node("Voyage", number="KELP-99-002", service="KELP special", status="sunk"),
            node("Container", number="BOX-1", size="20ft", tare_kg=2_200, refrigerated=False),
        ],
    )
    yield "bad-key", "A vessel that exists already", [node("Vessel", **vessel)]
    yield (
        "bad-operator",
        "A second operator for a vessel that may have one",
        [edge("OperatedBy", first["imo"], "OSPR")],
    )


def show_next_steps() -> None:
    """Scene 6: go on by yourself."""
    scene("Your turn", f"the graph stays in {GRAPH}, its input in {DATA}")
    program = Path(sys.executable).with_name("omnigraph")
    name = shown(program) if program.exists() else "omnigraph"
    for line in (
        f"snapshot {GRAPH}",
        f"commit list {GRAPH} --filter actor=cargo-desk",
        f"export {GRAPH} --type Port --type Lane --output lanes.jsonl",
        f"load {GRAPH} --data {DATA}/bad-vessel.jsonl --mode append",
    ):
        show(f"{name} {line}")
    console.print()


def title_of(graph_type: GraphType) -> str:
    """A type with its ends or interfaces."""
    match graph_type:
        case EdgeType():
            return f"{graph_type.name}: {graph_type.source} → {graph_type.target}"
        case NodeType(implements=interfaces) if interfaces:
            return f"{graph_type.name} ({', '.join(interfaces)})"
        case _:
            return graph_type.name


def key_of(graph_type: GraphType) -> tuple[str, ...]:
    """What the id is made of."""
    if isinstance(graph_type, EdgeType) and graph_type.keyed:
        return ("src", "dst", *graph_type.key)
    return graph_type.key


def rules_of(graph_type: GraphType) -> Iterator[str]:
    """The constraints of a type in short."""
    for group in graph_type.unique:
        yield f"unique {', '.join(group)}"
    if isinstance(graph_type, NodeType):
        yield from (f"{r.property_name} in {r.low}..{r.high}" for r in graph_type.ranges)
        yield from (f"{c.property_name} like {c.pattern}" for c in graph_type.checks)
    if isinstance(graph_type, EdgeType) and graph_type.cardinality != Cardinality():
        low, high = graph_type.cardinality.low, graph_type.cardinality.high
        yield f"{low}..{'' if high is None else high} per {graph_type.source}"


def scene(title: str, subtitle: str) -> None:
    """Start a part of the show."""
    console.print()
    console.rule(Text(title, "bold"), align="left")
    show(Text(subtitle, "bright_black"))


def heading(text: str) -> None:
    """A question or a case."""
    show(Text(f"\n{text}", "bold"))


def command(line: str) -> None:
    """What a person would type for what the demo does through the Python API."""
    show(Text(f"\n$ omnigraph {line}", "cyan"))


def show(thing: str | Text | Table) -> None:
    """Print with a margin; text is never taken for markup."""
    text = Text(thing) if isinstance(thing, str) else thing
    console.print(Padding(text, (0, 0, 0, 2), expand=False))


def plain_table(*columns: str) -> Table:
    """A table without frame."""
    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.columns[0].style = "cyan"
    return table


def shown(path: Path) -> str:
    """A path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


if __name__ == "__main__":
    main()
