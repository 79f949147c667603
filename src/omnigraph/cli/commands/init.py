"""`omnigraph init`: create a graph."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.options import (
    WORDS,
    actor_option,
    common_options,
    durability_option,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings


@click.command(
    "init",
    epilog=examples(
        "omnigraph init ./fleet --schema fleet.pg",
        "omnigraph init s3://bucket/fleet --schema fleet.pg --as alice",
    ),
)
@target_options
@click.option(
    "--schema", type=WORDS, required=True, metavar="FILE", help="The schema, a .pg text file."
)
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def init_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    schema: str,
    actor: str | None,
    durability: str,
) -> None:
    """Create a graph with a schema.

    The schema is checked first; with a finding in it nothing is created. A graph that is there
    already is never touched.
    """
    place = target(uri, store)

    from omnigraph.graph import init

    with init(place, Path(schema), actor=actor, durability=durability) as graph:
        settings.output.created(graph.uri, graph.snapshot())
