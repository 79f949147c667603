"""`omnigraph schema`: the schema that a graph accepted, or that one is to get."""

from __future__ import annotations

import click

from omnigraph.cli.confirm import ask, can_ask
from omnigraph.cli.exits import FAILURE
from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Command,
    Family,
    actor_option,
    branch_option,
    common_options,
    durability_option,
    examples,
    if_commit_option,
    json_option,
    message_option,
    target,
    target_options,
)
from omnigraph.cli.schema_source import schema_source
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options
from omnigraph.cli.text_source import read_text
from omnigraph.text_file import TextKind


@click.group(
    "schema",
    cls=Family,
    usual="show",
    context_settings=HELP_NAMES,
    epilog=examples(
        "omnigraph schema show ./fleet",
        "omnigraph schema check fleet.pg",
        "omnigraph schema plan ./fleet --schema fleet.pg",
        "omnigraph schema apply ./fleet --schema fleet.pg",
    ),
)
@json_option
@common_options
def schema_group() -> None:
    """Look at the schema of a graph, check a schema file, change the schema."""


@schema_group.command(
    "show",
    epilog=examples(
        "omnigraph schema show ./fleet > fleet.pg",
        "omnigraph schema show ./fleet --at v1.0",
        "omnigraph schema show ./fleet --json | jq -r .schema_hash",
    ),
)
@target_options
@state_options
@json_option
@common_options
@click.pass_obj
def show_command(settings: Settings, uri: str | None, store: str | None, state: StateAsked) -> None:
    """Print the schema as it was accepted, byte for byte.

    An earlier state shows the schema that it had.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.schema(state.view(graph))


@schema_group.command(
    "check",
    epilog=examples(
        "omnigraph schema check fleet.pg",
        "omnigraph schema check fleet.pg --json | jq -r '.diagnostics[].message'",
    ),
)
@click.argument("file", type=WORDS, metavar="FILE")
@json_option
@common_options
@click.pass_obj
def check_command(settings: Settings, file: str) -> None:
    """Check a schema file without creating a graph.

    FILE is a .pg text file, or - for stdin. Every finding is shown at its place.
    """
    text, name = read_text(file, TextKind.SCHEMA, settings.output)

    from omnigraph.schema.compile import compile_schema

    settings.output.valid_schema(name, compile_schema(text, source_name=name))


def _schema_options(command: Command) -> Command:
    command = click.option(
        "--allow-data-loss",
        is_flag=True,
        help="Drop for good: what is dropped is deleted from the past, too. Confirms drops.",
    )(command)
    return click.option(
        "--schema",
        type=WORDS,
        required=True,
        metavar="FILE",
        help="The schema to be, a .pg text file, or - for stdin.",
    )(command)


@schema_group.command(
    "plan",
    epilog=examples(
        "omnigraph schema plan ./fleet --schema fleet.pg",
        "omnigraph schema plan ./fleet --schema fleet.pg --json | jq -r '.steps[].kind'",
    ),
)
@target_options
@_schema_options
@branch_option
@json_option
@common_options
@click.pass_obj
def plan_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    schema: str,
    allow_data_loss: bool,
    branch: str,
) -> None:
    """Show what applying a schema would do, step by step.

    Nothing is changed and no row is read. Steps that hide data are marked. The exit code is 1 if a
    step is not possible.
    """
    place = target(uri, store)
    source = schema_source(schema, settings.output)

    from omnigraph.cli.schema_output import print_plan
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        plan = graph.schema_plan(source, branch=branch, allow_data_loss=allow_data_loss)
        print_plan(plan, settings)
    if not plan.supported:
        raise click.exceptions.Exit(FAILURE)


@schema_group.command(
    "apply",
    epilog=examples(
        "omnigraph schema apply ./fleet --schema fleet.pg --as alice",
        "omnigraph schema apply ./fleet --schema fleet.pg --dry-run",
        "omnigraph schema apply ./fleet --schema fleet.pg --yes --message 'No more call signs'",
    ),
)
@target_options
@_schema_options
@branch_option
@click.option("--yes", is_flag=True, help="Do not ask before data is hidden.")
@click.option("--dry-run", is_flag=True, help="Check everything, also all rows; change nothing.")
@if_commit_option
@message_option
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def apply_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    schema: str,
    allow_data_loss: bool,
    branch: str,
    yes: bool,
    dry_run: bool,
    if_commit: str | None,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Give a branch another schema, as one commit.

    Rows are checked against new rules first; if one is in the way, nothing is changed. What is
    dropped stays readable in the past. Other branches keep their schema until they are merged.
    """
    place = target(uri, store)
    source = schema_source(schema, settings.output)

    from omnigraph.cli.schema_output import print_applied, print_plan
    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        confirmed = yes or allow_data_loss or dry_run
        if not confirmed and can_ask(settings):
            shown = graph.snapshot(branch).commit.id
            plan = graph.schema_plan(source, branch=branch)
            if plan.supported and plan.destructive:
                print_plan(plan, settings)
                ask(settings, "Hide this data?")
                # What was shown is what is done.
                confirmed, if_commit = True, if_commit or shown
        settings.writing = not dry_run
        result = graph.schema_apply(
            source,
            branch=branch,
            confirm=confirmed,
            allow_data_loss=allow_data_loss,
            dry_run=dry_run,
            actor=actor,
            message=message,
            if_commit=if_commit,
        )
        settings.published = result.commit.id if result.commit else None
        print_applied(result, settings)
        answered()
