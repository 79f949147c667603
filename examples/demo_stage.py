"""How the demo prints: scenes, command lines, tables; and where it keeps its graph and files."""

from __future__ import annotations

import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from shipping_data import Record, write_jsonl

import omnigraph

SCHEMA = Path(__file__).with_name("shipping.pg")
QUERIES = Path(__file__).with_name("shipping.gq")
DEMO = Path(".demo")
GRAPH = DEMO / "shipping"
DATA = DEMO / "data"
WIDTH_PIPED = 100

console = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_PIPED)


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


def show_counts(result: omnigraph.LoadResult) -> None:
    """What a load brought."""
    counts = ", ".join(f"{t.entities_loaded:,} {t.name}" for t in (*result.nodes, *result.edges))
    show(Text.assemble((f"{result.total_entities:,} entities", "green"), f": {counts}"))


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
