"""`omnigraph repair`: what another program did to tables of main, and indexes of other lineages."""

from __future__ import annotations

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import (
    WORDS,
    common_options,
    durability_option,
    examples,
    json_option,
    message_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings


@click.command(
    "repair",
    epilog=examples(
        "omnigraph repair ./fleet",
        "omnigraph repair ./fleet --confirm",
        "omnigraph repair ./fleet --type Vessel --discard --confirm",
    ),
)
@target_options
@click.option(
    "--type",
    "types",
    type=WORDS,
    multiple=True,
    metavar="NAME",
    help="Only this node or edge type. May be repeated.",
)
@click.option("--confirm", is_flag=True, help="Do it; without it the command only says what.")
@click.option(
    "--force", is_flag=True, help="Adopt changes of rows, too, if the schema allows them."
)
@click.option("--discard", is_flag=True, help="Put every table back to what the graph shows.")
@message_option
@durability_option
@json_option
@common_options
@click.pass_obj
def repair_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    types: tuple[str, ...],
    confirm: bool,
    force: bool,
    discard: bool,
    message: str | None,
    durability: str,
) -> None:
    """Deal with what another program did to tables of main, and with names of branches.

    Every Lance program can open the tables of a graph. What it commits there is not part of the
    graph; such a table drifts, and optimize and cleanup leave it alone. If files were only joined,
    --confirm puts the table back, because no row changed. Anything else is refused, unless --force
    adopts it or --discard puts the table back.

    What older releases could leave is found on every branch. Indexes that were taken from another
    lineage of a table are built again; a branch that lives and is not found by its name gets one,
    and a name that leads nowhere is ended; edges that lead nowhere are deleted, but only with
    --force: their nodes may be what is missing. Exits with 1 if something was refused.
    """
    place = target(uri, store)

    from omnigraph.cli.repair_output import print_repair
    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        settings.writing = confirm
        report = graph.upkeep.repair(
            types=types, confirm=confirm, force=force, discard=discard, message=message
        )
        settings.published = report.commits[-1].id if report.commits else None
        answered()
        print_repair(report, settings)
    if report.refused:
        raise click.exceptions.Exit(FAILURE)
