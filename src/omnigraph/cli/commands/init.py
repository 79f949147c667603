"""`omnigraph init`: create a graph."""

from __future__ import annotations

import click

from omnigraph.cli.interrupts import answered
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
from omnigraph.cli.schema_source import schema_source
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
    "--schema",
    type=WORDS,
    required=True,
    metavar="FILE",
    help="The schema, a .pg text file, or - for stdin.",
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
    source = schema_source(schema, settings.output)

    from omnigraph.graph import init

    settings.writing = True
    with init(place, source, actor=actor, durability=durability) as graph:
        view = graph.snapshot()
        settings.published = view.commit.id
        settings.output.created(graph.uri, view)
        answered()
