"""`omnigraph init`: create a graph."""

from __future__ import annotations

from pathlib import Path

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
from omnigraph.cli.output import Output
from omnigraph.cli.settings import Settings
from omnigraph.cli.text_source import STDIN, read_text
from omnigraph.text_file import TextKind


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
    source = _piped(settings.output) if schema == STDIN else Path(schema)

    from omnigraph.graph import init

    settings.writing = True
    with init(place, source, actor=actor, durability=durability) as graph:
        view = graph.snapshot()
        settings.published = view.commit.id
        settings.output.created(graph.uri, view)
        answered()


def _piped(output: Output) -> str:
    """A schema from stdin, as text that is plainly no path."""
    from omnigraph.schema.compile import compile_schema

    text, name = read_text(STDIN, TextKind.SCHEMA, output)
    # Only here findings can name the place they are at.
    compile_schema(text, source_name=name)
    return text if "\n" in text else text + "\n"
