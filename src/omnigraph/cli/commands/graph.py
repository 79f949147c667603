"""`omnigraph init`, `snapshot` and `export`: create a graph, see what it holds, write it out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.answers import Created, Exported
from omnigraph.cli.command import command
from omnigraph.cli.interrupts import answered
from omnigraph.cli.meter import MeterUnit
from omnigraph.cli.options import (
    actor_option,
    durability_option,
    engine_option,
    text_option,
    types_option,
    yes_option,
)
from omnigraph.cli.settings import Settings, needs_yes
from omnigraph.cli.sources import STDIN, StateAsked, schema_source, state_options
from omnigraph.cli.streams import STDOUT, one_line
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.view import SnapshotView


@command(
    "init",
    "omnigraph init ./fleet --schema fleet.pg",
    "omnigraph init s3://bucket/fleet --schema fleet.pg --as alice",
)
@text_option(
    "--schema",
    required=True,
    metavar="FILE",
    help="The schema, a .pg text file, or - for stdin.",
)
@actor_option
@durability_option
@yes_option
def init_command(settings: Settings, schema: str, actor: str | None, yes: bool) -> None:
    """Create a graph with a schema.

    The schema is checked first; with a finding in it nothing is created. A graph that is there
    already is never touched.
    """
    source = schema_source(schema, settings)
    ask_about_the_place(settings, yes=yes, can_ask=schema != STDIN)

    from omnigraph.api.opening import init

    settings.writing = settings.creating = True
    with init(settings.place, source, actor=actor, durability=settings.durability) as graph:
        view = graph.snapshot()
        settings.show(Created(uri=graph.uri, view=view), view.commit)


def ask_about_the_place(settings: Settings, *, yes: bool, can_ask: bool) -> None:
    """Ask before a graph is created in a folder that holds other things."""
    if yes or not _holds_other_things(settings.place):
        return
    if not can_ask or not settings.can_ask():
        raise needs_yes(f"a graph in {settings.place}", "the folder is not empty")
    settings.ask(f"{one_line(settings.place)} is not empty. Create a graph among what is there?")


def _holds_other_things(place: str) -> bool:
    """Whether a folder on this machine has content that is not of a graph."""
    from omnigraph.manifest.snapshot import MAIN_PATH
    from omnigraph.storage.location import locate

    folder = locate(place).local_path
    try:
        names = {entry.name for entry in folder.iterdir()} if folder is not None else set[str]()
    except OSError:  # It is not there, or no folder: creating the graph says so.
        return False
    # Schemas are what an init leaves that was cut off: it can simply be repeated.
    return MAIN_PATH not in names and not names <= {"_schema"}


@command(
    "snapshot",
    "omnigraph snapshot ./fleet",
    "omnigraph snapshot ./fleet --at v1.0",
    "omnigraph snapshot ./fleet --json | jq '.datasets[].entity_count'",
)
@state_options
def snapshot_command(settings: Settings, state: StateAsked) -> None:
    """Show what a graph holds, now or in an earlier state.

    Its types with the number of entities and the version of their data, and the commit that made
    the state.
    """
    with settings.graph() as graph:
        settings.show(state.view(graph), uri=graph.uri)


@command(
    "export",
    "omnigraph export ./fleet > fleet.jsonl",
    "omnigraph export ./fleet --type Vessel --type CallsAt --output part.jsonl",
    "omnigraph export ./fleet --commit 01jz8y6n2d --output june.jsonl",
    "omnigraph export ./fleet --at main@2026-06-30T22:00Z --output june.jsonl",
    "omnigraph export ./fleet --format csv --output ./tables",
    "omnigraph export ./fleet --engine spark --format parquet --output s3://lake/fleet",
)
@state_options
@types_option
@text_option(
    "--output",
    metavar="PATH",
    help="Write to a file, which appears only when it is complete; CSV, Parquet and Spark write to "
    "an empty folder or s3:// prefix.  [default: stdout]",
)
@engine_option(
    "local",
    "spark",
    help="local: this process. spark: files in parts per type, written by many tasks.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv", "parquet"]),
    default="jsonl",
    show_default=True,
    help="jsonl: one stream, all types. csv, parquet: an empty folder, with a file for each type.",
)
def export_command(
    settings: Settings,
    state: StateAsked,
    types: tuple[str, ...],
    output: str | None,
    engine: str,
    form: str,
) -> None:
    """Write a graph as JSONL, nodes first, or as folders of CSV or Parquet files.

    One moment of the graph is written, whatever others publish meanwhile. JSONL loads back exactly:
    omnigraph init, then omnigraph load --mode overwrite.
    """
    if engine == "spark":
        if output is None or output in STDOUT:
            raise UsageError("an export on Spark is a folder", hint="name it with --output")
        with settings.graph() as graph:
            _export_on_spark(settings, state.view(graph), output, form, types)
        return
    if form != "jsonl":
        if output is None or output in STDOUT:
            raise UsageError(f"an export to {form} is a folder", hint="name it with --output")
        with settings.graph() as graph:
            _export_folder(settings, state.view(graph), output, form, types)
        return
    from omnigraph.storage.location import BUCKETS

    if output is not None and output.startswith(BUCKETS):
        raise UsageError("the local engine writes to files", hint="add --engine spark")
    path = settings.data_path(output)
    with settings.graph() as graph:
        _export_here(settings, state.view(graph), path, types)


def _export_here(
    settings: Settings, view: SnapshotView, path: Path | None, types: tuple[str, ...]
) -> None:
    with settings.data_sink(path, "exporting", _total(view, types)) as (out, meter):
        lines = view.export(out, types=types, progress=meter.advance_to)
    if path is None:
        answered()
    else:
        document = {"format": "jsonl", "graph_commit_id": view.commit.id, "rows": lines}
        settings.show(Exported(place=str(path), rows=lines, document=document))


def _export_folder(
    settings: Settings, view: SnapshotView, place: str, form: str, types: tuple[str, ...]
) -> None:
    total = _total(view, types)
    with settings.output.meter("exporting", total, MeterUnit.ENTITIES) as meter:
        done = view.export_folder(place, form, types, meter.advance_to)
    settings.show(Exported(place=place, rows=done["rows"], document=done))


def _export_on_spark(
    settings: Settings, view: SnapshotView, place: str, form: str, types: tuple[str, ...]
) -> None:
    from omnigraph.input.phases import LoadPhase, Phase

    total = _total(view, types)
    chosen = view.checked_export(place, form, types)
    with settings.output.meter("exporting", total, MeterUnit.ENTITIES) as meter:
        meter.show_phase(LoadPhase(phase=Phase.STARTING))
        with view.spark() as on_spark:
            done = on_spark.export(place, format=chosen, types=types, phases=meter.show_phase)
    settings.show(Exported(place=place, rows=done.rows, document=done.to_dict()))


def _total(view: SnapshotView, types: tuple[str, ...]) -> int:
    names = types or tuple(t.name for t in view.catalog.types())
    return sum(view.count(name) for name in dict.fromkeys(names))
