"""`omnigraph diff`: what changed between two states of a graph."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.options import (
    WORDS,
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.errors import UsageError


@click.command(
    "diff",
    epilog=examples(
        "omnigraph diff main june ./fleet",
        "omnigraph diff main@12 main ./fleet --stat",
        "omnigraph diff v1.0 main ./fleet --type Vessel --op update --limit 20",
        "omnigraph diff main@2026-11-15 main ./fleet --json | jq -r 'select(.op == \"delete\").id'",
    ),
)
@click.argument("before", type=WORDS, metavar="FROM")
@click.argument("after", type=WORDS, metavar="TO")
@target_options
@click.option(
    "--type",
    "types",
    type=WORDS,
    multiple=True,
    metavar="NAME",
    help="Only this node or edge type. May be repeated.",
)
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(["node", "edge"]),
    multiple=True,
    help="Only nodes or only edges.",
)
@click.option(
    "--op",
    "ops",
    type=click.Choice(["insert", "update", "delete"]),
    multiple=True,
    help="Only entities that were inserted, updated or deleted. May be repeated.",
)
@click.option("--stat", is_flag=True, help="Only how many entities of each type changed.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the first N entities.  [default: 1000 on a terminal, else all]",
)
@click.option(
    "--arrow",
    "arrow_file",
    type=WORDS,
    metavar="FILE",
    help="Write the entities to a file as an Arrow IPC stream, images as JSON; it appears only "
    "when it is complete.",
)
@json_option
@common_options
@click.pass_obj
def diff_command(
    settings: Settings,
    before: str,
    after: str,
    uri: str | None,
    store: str | None,
    types: tuple[str, ...],
    kinds: tuple[str, ...],
    ops: tuple[str, ...],
    stat: bool,
    limit: int | None,
    arrow_file: str | None,
) -> None:
    """Show what changed from one state of a graph to another.

    A state is a branch (main), a tag, a commit or the beginning of its id, a version of a branch
    (main@12), or a branch at a moment (main@2026-11-15T10:00Z). First come the counts, then every
    entity: nodes before edges, by type and id. Entities are inserted (+), updated (~) with the
    values before and after, or deleted (-).

    With --json there is one line that tells what is compared and the counts, then one line for
    each entity with its images.
    """
    place = target(uri, store)
    if stat and arrow_file is not None:
        raise UsageError(
            "--stat shows no entities and --arrow writes them", hint="give one of them"
        )

    from omnigraph.cli.diff_output import Wanted, print_json, print_text, write_arrow
    from omnigraph.graph import open as open_graph

    wanted = Wanted(kinds=kinds, types=types, ops=ops, limit=limit)
    with open_graph(place) as graph:
        found = graph.diff(before, after)
        if arrow_file is not None:
            rows = write_arrow(found, wanted, Path(arrow_file))
            document = {"format": "arrow", "rows": rows, "diff": wanted.head(found)}
            settings.output.exported(arrow_file, rows, document)
        elif settings.json:
            print_json(found, wanted, stat=stat)
        else:
            print_text(found, wanted, stat=stat, quiet=settings.quiet)
