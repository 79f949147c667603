"""`omnigraph schema`: the schema that a graph accepted."""

from __future__ import annotations

import click

from omnigraph.cli.options import (
    HELP_NAMES,
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings


@click.group(
    "schema", context_settings=HELP_NAMES, epilog=examples("omnigraph schema show ./fleet")
)
def schema_group() -> None:
    """Look at the schema of a graph."""


@schema_group.command(
    "show",
    epilog=examples(
        "omnigraph schema show ./fleet > fleet.pg",
        "omnigraph schema show ./fleet --json | jq -r .schema_hash",
    ),
)
@target_options
@json_option
@common_options
@click.pass_obj
def show_command(settings: Settings, uri: str | None, store: str | None) -> None:
    """Print the schema as it was accepted, byte for byte."""
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.schema(graph.snapshot())
