"""`make demo`: a shipping graph is built, asked, changed, branched, merged, and attacked.

Leaves the graph in ./.demo/shipping and its input in ./.demo/data, replaced on every run. It
runs on the base install; demo_spark.py goes on with Spark.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo_stage import (
    DATA,
    GRAPH,
    QUERIES,
    SCHEMA,
    command,
    console,
    heading,
    load,
    plain_table,
    scene,
    show,
    shown,
)
from rich.text import Text
from shipping_data import Record, Shipping, edge, make_shipping, node, write_jsonl
from shipping_questions import hops, shortest_route

import omnigraph
from omnigraph.schema.catalog import Cardinality, EdgeType, GraphType, NodeType

ROTTERDAM = "NLRTM"


def main() -> None:
    """The show, scene by scene."""
    for place in (GRAPH, DATA):
        shutil.rmtree(place, ignore_errors=True)
    DATA.mkdir(parents=True)
    with create() as graph:
        load_all(graph, make_shipping())
        show_snapshot(graph)
        show_questions(graph)
        show_mutation(graph)
        show_branches(graph)
        show_past(graph)
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
    load(graph, "arrivals", shipping.arrivals, "operations", "Voyage status as of 1 June", "merge")


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


def show_questions(graph: omnigraph.Graph) -> None:
    """Scene 4: queries, checked against the schema before they run."""
    scene("Questions", f"named queries in {shown(QUERIES)}, checked against the schema")
    heading("The busiest ports")
    ask(graph, "busiest_ports")
    heading("Two lanes from Reykjavík, and no lane that goes there directly")
    ask(graph, "two_lanes_from", start="ISREY")
    heading("Ports that trade what Rotterdam trades (nearest vectors)")
    mix = graph.query('match { $p: Port { locode: "NLRTM" } } return { $p.cargo_mix as mix }')
    ask(graph, "alike", shown_params="mix=[…]", mix=list(mix.to_dicts()[0]["mix"]))
    heading("A question with a mistake")
    try:
        graph.query("match { $p: Prt } return { $p.name }")
    except omnigraph.QueryError as error:
        show(Text(error.message, "red"))
    heading("The shortest way from Reykjavík to Auckland by liner: Dijkstra, on Arrow tables")
    route = shortest_route(graph.snapshot(), "ISREY", "NZAKL")
    show("\n".join([*hops(route), f"{len(route) - 1} lanes, {route[-1][1]:,} nm"]))


def show_mutation(graph: omnigraph.Graph) -> None:
    """Scene 5: a change is one commit."""
    scene(
        "Changing it", "a mutation is a query that writes: one commit, with its author and message"
    )
    said = "--param port=NLRTM --param depth=24.5"
    command(f"mutate {GRAPH} --query {shown(QUERIES)} deepen {said} --as dredgers")
    done = graph.mutate(
        QUERIES.read_text(encoding="utf-8"),
        {"port": ROTTERDAM, "depth": 24.5},
        name="deepen",
        actor="dredgers",
        message="Rotterdam was dredged",
    )
    if done.commit is not None:
        show(Text(f"commit {done.commit.id} on main", "green"))
    ask(graph, "depth_of", port=ROTTERDAM)


def show_branches(graph: omnigraph.Graph) -> None:
    """Scene 6: work beside main, what differs, and a merge that does not agree."""
    scene("Branches", "a branch is the whole graph, made in no time; nothing is copied")
    command(f"branch create expansion {GRAPH} --as planning")
    graph.branches.create("expansion", description="New berths", actor="planning")
    change(graph, 'update Port set { berths: 90 } where locode = "NLRTM"', "planning", "expansion")
    change(graph, 'update Port set { berths: 60 } where locode = "DEHAM"', "planning", "expansion")
    change(graph, 'update Port set { berths: 75 } where locode = "NLRTM"', "harbour-office", "main")
    heading("What the branch has that main has not")
    command(f"diff main expansion {GRAPH}")
    for changed in graph.diff("main", "expansion").changes():
        show(f"{changed.op} {changed.type_name} {changed.id}")
    heading("Both sides changed Rotterdam's berths")
    command(f"merge expansion {GRAPH}")
    try:
        graph.merge("expansion")
    except omnigraph.MergeConflictError as error:
        show(Text(error.message, "red"))
        for conflict in error.conflicts:
            show(Text(conflict.message, "red"))
    else:
        sys.exit("the merge was accepted, and it should not have been")
    command(f"merge expansion {GRAPH} --prefer theirs --delete-branch --as harbour-office")
    merged = graph.merge(
        "expansion",
        prefer="theirs",
        delete_branch=True,
        actor="harbour-office",
        message="New berths, as planned",
    )
    if merged.commit is not None:
        show(Text(f"merged in commit {merged.commit.id}", "green"))


def show_past(graph: omnigraph.Graph) -> None:
    """Scene 7: every earlier state can be read."""
    scene("The past", "each commit is a state that can be asked, compared and named")
    graph.tags.create("spring-plan", "main~2", message="Before the new berths")
    command(f"tag create spring-plan main~2 {GRAPH} --message 'Before the new berths'")
    for state in ("main", "spring-plan", "HEAD~3"):
        heading(f"Rotterdam in {state}")
        ask(graph, "depth_of", at=state, port=ROTTERDAM)
    heading("What changed since then")
    command(f"diff spring-plan main {GRAPH} --stat")
    for name, counts in graph.diff("spring-plan", "main").counts.items():
        show(f"{name.partition(':')[2]}: {counts.updated} updated")


def ask(
    graph: omnigraph.Graph,
    name: str,
    *,
    at: str = "main",
    shown_params: str | None = None,
    **params: Any,
) -> None:
    """One of the named queries, as a table."""
    said = shown_params or " ".join(f"--param {key}={value}" for key, value in params.items())
    state = "" if at == "main" else f" --at {at}"
    if shown_params:
        said = f"--param {shown_params}"
    command(f"query {GRAPH} --query {shown(QUERIES)} {name} {said}{state}".rstrip())
    rows = graph.at(at).query(QUERIES.read_text(encoding="utf-8"), params, name=name).to_dicts()
    table = plain_table(*rows[0])
    for row in rows:
        table.add_row(*(f"{v:,.1f}" if isinstance(v, float) else str(v) for v in row.values()))
    show(table)


def change(graph: omnigraph.Graph, text: str, actor: str, branch: str) -> None:
    """A mutation that is written out."""
    command(f"mutate {GRAPH} -e '{text}' --branch {branch} --as {actor}")
    graph.mutate(text, branch=branch, actor=actor)


def show_guard_rails(graph: omnigraph.Graph) -> None:
    """Scene 8: bad input changes nothing and says why."""
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
    """Scene 9: go on by yourself."""
    scene("Your turn", f"the graph stays in {GRAPH}, its input in {DATA}")
    program = Path(sys.executable).with_name("omnigraph")
    name = shown(program) if program.exists() else "omnigraph"
    for line in (
        f"shell {GRAPH}",
        f"log {GRAPH} --graph",
        f"query {GRAPH} --query {shown(QUERIES)} busiest_ports",
        f"diff HEAD~1 {GRAPH}",
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


if __name__ == "__main__":
    main()
