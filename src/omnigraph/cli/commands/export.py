"""`omnigraph export`: a graph as JSONL, or on Spark as folders of files."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from omnigraph.cli.files import whole_file
from omnigraph.cli.interrupts import answered, hush_libraries
from omnigraph.cli.meter import SilentMeter, Unit
from omnigraph.cli.options import (
    WORDS,
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options
from omnigraph.cli.streams import is_terminal, stdout_writer
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.view import SnapshotView

STDOUT = ("-", "/dev/stdout")
"""Ours is written as it is: opened by its name it would lose what stands in it."""


@click.command(
    "export",
    epilog=examples(
        "omnigraph export ./fleet > fleet.jsonl",
        "omnigraph export ./fleet --type Vessel --type CallsAt --output part.jsonl",
        "omnigraph export ./fleet --commit 01jz8y6n2d --output june.jsonl",
        "omnigraph export ./fleet --at main@2026-06-30T22:00Z --output june.jsonl",
        "omnigraph export ./fleet --engine spark --format parquet --output s3://lake/fleet",
    ),
)
@target_options
@state_options
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
    metavar="PATH",
    help="Write to a file, which appears only when it is complete; on Spark to an empty folder or "
    "s3:// prefix.  [default: stdout]",
)
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="local: one stream of JSONL. spark: files in parts per type, written by many tasks.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "parquet"]),
    default="jsonl",
    show_default=True,
    help="What the files hold; Parquet needs --engine spark.",
)
@json_option
@common_options
@click.pass_obj
def export_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    state: StateAsked,
    types: tuple[str, ...],
    output: str | None,
    engine: str,
    form: str,
) -> None:
    """Write a graph as JSONL, nodes first; on Spark as folders of JSONL or Parquet.

    One moment of the graph is written, whatever others publish meanwhile. JSONL loads back exactly:
    omnigraph init, then omnigraph load --mode overwrite.
    """
    place = target(uri, store)
    to_stdout = output is None or output in STDOUT
    _check(engine, form, output, to_stdout=to_stdout, as_json=settings.json)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        view = state.view(graph)
        if engine == "spark" and output is not None:
            _export_on_spark(settings, view, output, form, types)
        else:
            _export_here(settings, view, None if to_stdout else Path(output or ""), types)


def _check(engine: str, form: str, output: str | None, *, to_stdout: bool, as_json: bool) -> None:
    """What contradicts itself is told before anything is opened."""
    if engine == "spark":
        if to_stdout:
            raise UsageError("an export on Spark is a folder", hint="name it with --output")
        return
    if form != "jsonl":
        raise UsageError(f"the local engine does not write {form}", hint="add --engine spark")
    if output is not None and output.startswith("s3://"):
        raise UsageError("the local engine writes to files", hint="add --engine spark")
    if to_stdout and as_json:
        raise UsageError("the data is on stdout already", hint="with --json, give --output too")


def _export_here(
    settings: Settings, view: SnapshotView, path: Path | None, types: tuple[str, ...]
) -> None:
    total = _total(view, types)
    said = settings.output
    # A bar between the lines of data on the same terminal helps nobody.
    mixed = path is None and is_terminal(sys.stdout)
    meter = SilentMeter() if mixed else said.meter("exporting", total, Unit.ENTITIES)
    with _stdout() if path is None else whole_file(path) as out, meter:
        lines = view.export(out, types=types, progress=meter.advance_to)
    answered()
    if path is not None:
        document = {"format": "jsonl", "graph_commit_id": view.commit.id, "rows": lines}
        said.exported(str(path), lines, document)


def _export_on_spark(
    settings: Settings, view: SnapshotView, place: str, form: str, types: tuple[str, ...]
) -> None:
    from omnigraph.input.phases import LoadPhase, Phase
    from omnigraph.view import export_format

    hush_libraries()
    said = settings.output
    with said.meter("exporting", _total(view, types), Unit.ENTITIES) as meter:
        meter.show_phase(LoadPhase(phase=Phase.STARTING))
        with view.spark() as on_spark:
            done = on_spark.export(
                place, format=export_format(form), types=types, phases=meter.show_phase
            )
    answered()
    said.exported(place, done.rows, done.to_dict())


def _total(view: SnapshotView, types: tuple[str, ...]) -> int:
    names = types or tuple(t.name for t in view.catalog.types())
    return sum(view.count(name) for name in dict.fromkeys(names))


@contextmanager
def _stdout() -> Generator[BinaryIO]:
    with stdout_writer("export to a file with --output") as writer:
        yield cast(BinaryIO, writer)
