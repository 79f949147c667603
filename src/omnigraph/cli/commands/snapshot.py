"""`omnigraph snapshot`: what a state of a graph holds."""

from __future__ import annotations

import click

from omnigraph.cli.options import (
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options


@click.command(
    "snapshot",
    epilog=examples(
        "omnigraph snapshot ./fleet",
        "omnigraph snapshot ./fleet --at v1.0",
        "omnigraph snapshot ./fleet --json | jq '.datasets[].entity_count'",
    ),
)
@target_options
@state_options
@json_option
@common_options
@click.pass_obj
def snapshot_command(
    settings: Settings, uri: str | None, store: str | None, state: StateAsked
) -> None:
    """Show what a graph holds, now or in an earlier state.

    Its types with the number of entities and the version of their data, and the commit that made
    the state.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.snapshot(graph.uri, state.view(graph))
