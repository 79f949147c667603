"""`omnigraph export`: a graph as JSONL."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from omnigraph.cli.files import whole_file
from omnigraph.cli.interrupts import answered
from omnigraph.cli.meter import SilentMeter, Unit
from omnigraph.cli.options import (
    WORDS,
    branch_option,
    common_options,
    examples,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import is_terminal, stdout_writer

if TYPE_CHECKING:
    from omnigraph.graph import SnapshotView

STDOUT = ("-", "/dev/stdout")
"""Ours is written as it is: opened by its name it would lose what stands in it."""


@click.command(
    "export",
    epilog=examples(
        "omnigraph export ./fleet > fleet.jsonl",
        "omnigraph export ./fleet --type Vessel --type CallsAt --output part.jsonl",
    ),
)
@target_options
@branch_option
@click.option(
    "--type",
    "types",
    type=WORDS,
    multiple=True,
    metavar="NAME",
    help="Only this node or edge type. May be repeated.",
)
@click.option(
    "--output",
    type=WORDS,
    metavar="FILE",
    help="Write to a file, which appears only when it is complete.  [default: stdout]",
)
@common_options
@click.pass_obj
def export_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    types: tuple[str, ...],
    output: str | None,
) -> None:
    """Write a graph as JSONL, nodes first.

    One moment of the graph is written, whatever others publish meanwhile. The text loads back
    exactly: omnigraph init, then omnigraph load --mode overwrite.
    """
    place = target(uri, store)
    path = None if output is None or output in STDOUT else Path(output)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        view = graph.snapshot(branch)
        total = _total(view, types)
        said = settings.output
        # A bar between the lines of data on the same terminal helps nobody.
        mixed = path is None and is_terminal(sys.stdout)
        meter = SilentMeter() if mixed else said.meter("exporting", total, Unit.ENTITIES)
        with _stdout() if path is None else whole_file(path) as out, meter:
            lines = view.export(out, types=types, progress=meter.advance_to)
        answered()
        said.exported(lines, path)


def _total(view: SnapshotView, types: tuple[str, ...]) -> int:
    names = types or tuple(t.name for t in view.catalog.types())
    return sum(view.count(name) for name in dict.fromkeys(names))


@contextmanager
def _stdout() -> Generator[BinaryIO]:
    with stdout_writer("export to a file with --output") as writer:
        yield cast(BinaryIO, writer)
