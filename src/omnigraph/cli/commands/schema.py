"""`omnigraph schema`: the schema that a graph accepted, or that one is to get."""

from __future__ import annotations

import click

from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Family,
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options
from omnigraph.cli.text_source import read_text
from omnigraph.text_file import TextKind


@click.group(
    "schema",
    cls=Family,
    usual="show",
    context_settings=HELP_NAMES,
    epilog=examples("omnigraph schema show ./fleet", "omnigraph schema check fleet.pg"),
)
@json_option
@common_options
def schema_group() -> None:
    """Look at the schema of a graph, or check a schema file."""


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
