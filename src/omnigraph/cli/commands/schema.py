"""`omnigraph schema`: the schema that a graph accepted, or that one is to get."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.answers import SchemaShown, ValidSchema
from omnigraph.cli.command import command, family
from omnigraph.cli.data_files import DataFiles
from omnigraph.cli.interrupts import conversation
from omnigraph.cli.options import (
    all_of,
    branch_option,
    commit_options,
    if_commit_option,
    text_argument,
    text_option,
)
from omnigraph.cli.settings import Settings, fail_if
from omnigraph.cli.sources import StateAsked, read_text, schema_source, state_options
from omnigraph.text_file import TextKind


@family(
    "schema",
    "omnigraph schema show ./fleet",
    "omnigraph schema check fleet.pg",
    "omnigraph schema plan ./fleet --schema fleet.pg",
    "omnigraph schema apply ./fleet --schema fleet.pg",
    usual="show",
)
def schema_group() -> None:
    """Look at the schema of a graph, check a schema file, change the schema."""


@command(
    "show",
    "omnigraph schema show ./fleet > fleet.pg",
    "omnigraph schema show ./fleet --at v1.0",
    "omnigraph schema show ./fleet --json | jq -r .schema_hash",
    into=schema_group,
)
@state_options
def show_command(settings: Settings, state: StateAsked) -> None:
    """Print the schema as it was accepted, byte for byte.

    An earlier state shows the schema that it had.
    """
    with settings.graph() as graph:
        settings.show(SchemaShown(view=state.view(graph)))


@command(
    "check",
    "omnigraph schema check fleet.pg",
    "omnigraph schema check fleet.pg --json | jq -r '.diagnostics[].message'",
    into=schema_group,
    on_graph=False,
)
@text_argument("file", metavar="FILE")
def check_command(settings: Settings, file: str) -> None:
    """Check a schema file without creating a graph.

    FILE is a .pg text file, or - for stdin. Every finding is shown at its place.
    """
    text, name = read_text(file, TextKind.SCHEMA, settings)

    from omnigraph.schema.compile import compile_schema

    settings.show(ValidSchema(name=name, catalog=compile_schema(text, source_name=name)))


@command(
    "infer",
    "omnigraph schema infer airports.csv routes.csv > flights.pg",
    "omnigraph schema infer friends.graphml",
    "omnigraph schema infer Airport=a.csv Route=r.parquet --json | jq -r .schema",
    into=schema_group,
    on_graph=False,
)
@text_argument("files", metavar="[TYPE=]FILE...", nargs=-1, required=True)
def infer_command(settings: Settings, files: tuple[str, ...]) -> None:
    """Infer a schema from files of data, or from a dump of a graph.

    Prints a commented .pg text: types of columns, keys, enums, and foreign keys as edges. Its first
    lines say how the same files are loaded with it. A CSV, TSV, Parquet or Arrow file, or JSONL
    with plain rows, is a type of its own, named by the file unless it says TYPE=FILE; JSONL with
    records of a graph names types itself. Every row is read.

    A dump is a GraphML file, the CSV files of Neo4j, or the folder of Kuzu's EXPORT DATABASE.
    """
    from omnigraph.infer.schema import infer_schema

    settings.show(infer_schema(DataFiles.of(files, None, mixed=True).named()))


_schema_options = all_of(
    text_option(
        "--schema",
        required=True,
        metavar="FILE",
        help="The new schema, a .pg text file, or - for stdin.",
    ),
    click.option(
        "--allow-data-loss",
        is_flag=True,
        help="Drop for good: what is dropped is deleted from the past, too. Confirms drops.",
    ),
)


@command(
    "plan",
    "omnigraph schema plan ./fleet --schema fleet.pg",
    "omnigraph schema plan ./fleet --schema fleet.pg --json | jq -r '.steps[].kind'",
    into=schema_group,
)
@_schema_options
@branch_option
def plan_command(settings: Settings, schema: str, **options: Any) -> None:
    """Show what applying a schema would do, step by step.

    Nothing is changed and no row is read. Steps that hide data are marked. The exit code is 1 if a
    step is not possible.
    """
    source = schema_source(schema, settings)
    with settings.graph() as graph:
        plan = graph.schema_plan(source, **options)
        settings.show(plan)
    fail_if(not plan.supported)


@command(
    "apply",
    "omnigraph schema apply ./fleet --schema fleet.pg --as alice",
    "omnigraph schema apply ./fleet --schema fleet.pg --dry-run",
    "omnigraph schema apply ./fleet --schema fleet.pg --yes --message 'No more call signs'",
    into=schema_group,
)
@_schema_options
@branch_option
@click.option("--yes", is_flag=True, help="Do not ask before data is hidden.")
@click.option("--dry-run", is_flag=True, help="Check everything, also all rows; change nothing.")
@if_commit_option
@commit_options
def apply_command(
    settings: Settings,
    schema: str,
    allow_data_loss: bool,
    branch: str,
    yes: bool,
    dry_run: bool,
    if_commit: str | None,
    **options: Any,
) -> None:
    """Give a branch another schema, as one commit.

    Rows are checked against new rules first; if one is in the way, nothing is changed. What is
    dropped stays readable in the past. Other branches keep their schema until they are merged.
    """
    source = schema_source(schema, settings)
    with settings.graph() as graph:
        confirmed = yes or allow_data_loss or dry_run
        if not confirmed and settings.can_ask():
            shown = graph.snapshot(branch).commit.id
            plan = graph.schema_plan(source, branch=branch)
            if plan.supported and plan.destructive:
                with conversation():
                    settings.show(plan)
                    settings.ask("Hide this data?")
                # What was shown is what is done.
                confirmed, if_commit = True, if_commit or shown
        settings.writing = not dry_run
        result = graph.schema_apply(
            source,
            branch=branch,
            confirm=confirmed,
            allow_data_loss=allow_data_loss,
            dry_run=dry_run,
            if_commit=if_commit,
            **options,
        )
        settings.show(result, result.commit)
