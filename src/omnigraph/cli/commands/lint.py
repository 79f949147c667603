"""`omnigraph lint`: look over files of queries without running them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.options import (
    WORDS,
    common_options,
    examples,
    json_option,
    said_store,
    target,
    target_options,
)
from omnigraph.cli.output import Output
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options
from omnigraph.cli.text_source import STDIN, read_text
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog


@click.command(
    "lint",
    epilog=examples(
        "omnigraph lint ./fleet --query fleet.gq",
        "omnigraph lint --schema fleet.pg --query reads.gq --query writes.gq",
        "omnigraph lint --schema fleet.pg --query fleet.gq --json | jq '.files[].queries[].name'",
    ),
)
@target_options
@click.option(
    "--query",
    "files",
    type=WORDS,
    multiple=True,
    required=True,
    metavar="FILE",
    help="A .gq file, or - for stdin. May be repeated.",
)
@click.option(
    "--schema",
    type=WORDS,
    metavar="FILE",
    help="The schema, a .pg file, instead of that of a graph; - for stdin.",
)
@state_options
@click.option("--describe", is_flag=True, help="Say also what each query takes, gives and touches.")
@json_option
@common_options
@click.pass_obj
def lint_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    files: tuple[str, ...],
    schema: str | None,
    state: StateAsked,
    describe: bool,
) -> None:
    """Check files of queries against a schema, without running them.

    The schema is that of a graph, now or in an earlier state, or a .pg file. Every finding is shown
    at its place. Warnings are about what is legal and probably not meant; only errors make the exit
    code 1. With --json the answer describes every valid query: parameters, result columns, types it
    reads and writes.
    """
    if (*files, schema).count(STDIN) > 1:
        raise UsageError("stdin is named twice", hint="give - once")
    output = settings.output
    catalog = _catalog(uri, store, schema, state, output)
    texts = [read_text(name, TextKind.QUERY, output) for name in files]

    from omnigraph.query.lint import lint

    reports = [lint(text, catalog, name=name) for text, name in texts]
    output.linted(reports, describe=describe)
    if any(r.status == "error" for r in reports):
        raise click.exceptions.Exit(FAILURE)


def _catalog(
    uri: str | None, store: str | None, schema: str | None, state: StateAsked, output: Output
) -> Catalog:
    if schema is not None:
        # A graph that only the environment names is not asked for here.
        if uri is not None or said_store() is not None or state.said:
            raise UsageError("a graph and --schema are both given", hint="give one of them")
        from omnigraph.schema.compile import compile_schema

        text, name = read_text(schema, TextKind.SCHEMA, output)
        return compile_schema(text, source_name=name)
    if uri is None and store is None:
        raise UsageError("no schema is named", hint="give a graph, or a .pg file with --schema")
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        return state.view(graph).catalog
