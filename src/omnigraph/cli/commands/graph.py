"""`omnigraph init`, `snapshot` and `export`: create a graph, see what it holds, write it out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.answers import Created, Exported, Held
from omnigraph.cli.command import command
from omnigraph.cli.interrupts import answered
from omnigraph.cli.meter import MeterUnit, SilentMeter
from omnigraph.cli.options import WORDS, actor_option, durability_option, types_option
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import StateAsked, schema_source, state_options
from omnigraph.cli.streams import STDOUT, data_sink, is_terminal
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.view import SnapshotView


@command(
    "init",
    "omnigraph init ./fleet --schema fleet.pg",
    "omnigraph init s3://bucket/fleet --schema fleet.pg --as alice",
)
@click.option(
    "--schema",
    type=WORDS,
    required=True,
    metavar="FILE",
    help="The schema, a .pg text file, or - for stdin.",
)
@actor_option
@durability_option
def init_command(settings: Settings, schema: str, actor: str | None) -> None:
    """Create a graph with a schema.

    The schema is checked first; with a finding in it nothing is created. A graph that is there
    already is never touched.
    """
    source = schema_source(schema, settings.output)

    from omnigraph.api.opening import init

    settings.writing = True
    with init(settings.place, source, actor=actor, durability=settings.durability) as graph:
        view = graph.snapshot()
        settings.publish(view.commit)
        settings.show(Created(uri=graph.uri, view=view))


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
        settings.show(Held(uri=graph.uri, view=state.view(graph)))


@command(
    "export",
    "omnigraph export ./fleet > fleet.jsonl",
    "omnigraph export ./fleet --type Vessel --type CallsAt --output part.jsonl",
    "omnigraph export ./fleet --commit 01jz8y6n2d --output june.jsonl",
    "omnigraph export ./fleet --at main@2026-06-30T22:00Z --output june.jsonl",
    "omnigraph export ./fleet --engine spark --format parquet --output s3://lake/fleet",
)
@state_options
@types_option
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
def export_command(
    settings: Settings,
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
    to_stdout = output is None or output in STDOUT
    _check(engine, form, output, to_stdout=to_stdout, as_json=settings.json)
    with settings.graph() as graph:
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
    # A bar between the lines of data on the same terminal is in the way.
    mixed = path is None and is_terminal(sys.stdout)
    meter = (
        SilentMeter() if mixed else settings.output.meter("exporting", total, MeterUnit.ENTITIES)
    )
    with data_sink(path, "export to a file with --output") as out, meter:
        lines = view.export(out, types=types, progress=meter.advance_to)
    if path is None:
        answered()
    else:
        document = {"format": "jsonl", "graph_commit_id": view.commit.id, "rows": lines}
        settings.show(Exported(place=str(path), rows=lines, document=document))


def _export_on_spark(
    settings: Settings, view: SnapshotView, place: str, form: str, types: tuple[str, ...]
) -> None:
    from omnigraph.api.view import export_format
    from omnigraph.input.phases import LoadPhase, Phase

    total = _total(view, types)
    with settings.output.meter("exporting", total, MeterUnit.ENTITIES) as meter:
        meter.show_phase(LoadPhase(phase=Phase.STARTING))
        with view.spark() as on_spark:
            done = on_spark.export(
                place, format=export_format(form), types=types, phases=meter.show_phase
            )
    settings.show(Exported(place=place, rows=done.rows, document=done.to_dict()))


def _total(view: SnapshotView, types: tuple[str, ...]) -> int:
    names = types or tuple(t.name for t in view.catalog.types())
    return sum(view.count(name) for name in dict.fromkeys(names))
