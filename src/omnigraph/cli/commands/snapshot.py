"""`omnigraph snapshot`: what a branch holds."""

from __future__ import annotations

import click

from omnigraph.cli.options import (
    branch_option,
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings


@click.command(
    "snapshot",
    epilog=examples(
        "omnigraph snapshot ./fleet",
        "omnigraph snapshot ./fleet --json | jq '.datasets[].entity_count'",
    ),
)
@target_options
@branch_option
@json_option
@common_options
@click.pass_obj
def snapshot_command(settings: Settings, uri: str | None, store: str | None, branch: str) -> None:
    """Show what a graph holds now.

    Its types with the number of entities and the version of their data, and the newest commit.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.snapshot(graph.uri, graph.snapshot(branch))
