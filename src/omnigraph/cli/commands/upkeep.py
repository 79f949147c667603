"""`status`, `check`, `cleanup`, `recovery`, `optimize`, `index`, `repair`: upkeep of a graph."""

from __future__ import annotations

from typing import Any

import click

from omnigraph.cli.answers import IndexList, PendingWrites
from omnigraph.cli.command import command, family
from omnigraph.cli.meter import MeterUnit
from omnigraph.cli.options import (
    SPAN,
    branch_option,
    commit_options,
    durability_option,
    engine_option,
    message_option,
    text_argument,
    text_option,
    types_option,
)
from omnigraph.cli.settings import Settings, fail_if, needs_yes


@command(
    "status",
    "omnigraph status ./fleet",
    "omnigraph status ./fleet --json | jq '.types[] | {type_key, rows, fragments}'",
)
@branch_option
def status_command(settings: Settings, branch: str) -> None:
    """Show on one screen how a graph is doing.

    Its size, rows and files of every type, how far indexes reach, branches, tags, writes that are
    pending, the depth of its history, and what to run next. No rows are read.
    """
    with settings.graph() as graph:
        settings.show(graph.upkeep.status(branch))


@command(
    "check",
    "omnigraph check ./fleet",
    "omnigraph check ./fleet --full --json | jq '.findings[]'",
    "omnigraph check ./fleet --history",
)
@click.option(
    "--full",
    is_flag=True,
    help="Read every column; check rows, indexes and commits against each other.",
)
@click.option("--history", is_flag=True, help="Check every earlier state that is kept, too.")
def check_command(settings: Settings, **options: Any) -> None:
    """Check a whole graph for damage, and say what to do about it.

    On every branch and at every tag: names lead to states, the history is complete, every table
    opens, its files are there and can be read, rows are as many as the manifest says, ids are
    unique and both ends of every edge exist. With --full also that rows keep every rule of the
    schema, that indexes answer rightly, and that commits count what they changed. With --history
    also every earlier state that is kept: its tables open, and their files are there. Nothing is
    changed. Exits with 1 if something is found.
    """
    with settings.graph() as graph:
        with settings.output.meter("Checking", None, MeterUnit.TABLES) as meter:
            report = graph.upkeep.check(**options, progress=meter.advance_of)
        settings.show(report)
    fail_if(not report.ok)


@command(
    "cleanup",
    "omnigraph cleanup ./fleet --keep 50",
    "omnigraph cleanup ./fleet --keep 50 --older-than 30d --confirm",
    "omnigraph cleanup s3://bucket/fleet --older-than 30d --confirm --yes",
)
@click.option("--keep", type=int, metavar="N", help="Keep the newest N commits of every branch.")
@click.option(
    "--older-than", type=SPAN, metavar="SPAN", help="Keep what was shown within SPAN: 30d, 12h."
)
@click.option("--confirm", is_flag=True, help="Remove; without it the command only says what.")
@click.option("--yes", is_flag=True, help="Needed with --confirm if the graph is not on this disk.")
@click.option(
    "--grace",
    type=SPAN,
    default="1h",
    show_default=True,
    metavar="SPAN",
    help="Never touch what was written or shown within SPAN: it may still be read.",
)
@engine_option(
    "auto",
    "local",
    "spark",
    help="What looks at the versions that are kept: this process, or Spark if they are very many.",
)
def cleanup_command(settings: Settings, confirm: bool, yes: bool, **options: Any) -> None:
    """Remove the past that is not kept, and what writes that died have left.

    With --keep and --older-than only what both give up. Branches, tags and what merges need are
    always kept, and the list of commits stays complete. It can run while others write. Without
    --confirm nothing is removed.
    """
    from omnigraph.storage.location import locate

    if confirm and not yes and not locate(settings.place).is_local:
        raise needs_yes(
            "cleanup of a graph that is not on this disk",
            "look at the preview first: leave --confirm out",
        )
    with settings.graph() as graph:
        doing = "Cleaning up" if confirm else "Looking"
        with settings.output.meter(doing, None, MeterUnit.PLACES) as meter:
            report = graph.upkeep.cleanup(confirm=confirm, **options, progress=meter.advance_of)
        settings.show(report)
    fail_if(bool(report.errors))


@family(
    "recovery", "omnigraph recovery list ./fleet", "omnigraph recovery run ./fleet", usual="list"
)
def recovery_group() -> None:
    """Look at writes that did not end well, and deal with them.

    There is no need to: such a write is published as a whole or not at all, and blocks nothing.
    """


@command("list", "omnigraph recovery list ./fleet", into=recovery_group)
def list_command(settings: Settings) -> None:
    """List the writes that are pending: running, stalled, published, unreadable or unclear.

    With --json the answer is {"intents", "put_aside"}.
    """
    with settings.graph() as graph:
        recovery = graph.upkeep.recovery
        settings.show(PendingWrites(intents=recovery.list(), put_aside=recovery.put_aside()))


@command("show", "omnigraph recovery show 01JZ8YB1 ./fleet", into=recovery_group)
@text_argument("operation", metavar="OPERATION")
def show_command(settings: Settings, operation: str) -> None:
    """Show one pending write, by its id or the beginning of it."""
    with settings.graph() as graph:
        settings.show(graph.upkeep.recovery.show(operation))


@command(
    "run",
    "omnigraph recovery run ./fleet",
    "omnigraph recovery run ./fleet --operation 01JZ8YB1 --stalled-after 1m",
    into=recovery_group,
)
@text_option("--operation", metavar="ID", help="Only this write.")
@click.option(
    "--stalled-after",
    type=SPAN,
    default="1h",
    show_default=True,
    metavar="SPAN",
    help="Give up a write that gave no sign of life for SPAN.",
)
def run_command(settings: Settings, operation: str | None, stalled_after: float) -> None:
    """Finish what was published and give up what has stalled.

    A write that is given up gets a commit by omnigraph:recovery, which records it. If it goes on
    after all, it fails with 'revoked' and can be repeated. The next cleanup removes its files.
    """
    with settings.graph() as graph:
        report = graph.upkeep.recovery.run(operation, stalled_after=stalled_after)
        settings.show(report)
    fail_if(bool(report.failed))


@command(
    "optimize",
    "omnigraph optimize ./fleet",
    "omnigraph optimize ./fleet --type Vessel --as nightly",
    "omnigraph optimize ./fleet --json | jq '.tables[] | select(.committed)'",
)
@types_option
@branch_option
@commit_options
def optimize_command(settings: Settings, **options: Any) -> None:
    """Join small files and bring indexes up to date, as one commit.

    No answer changes, and the past stays readable. Tables that did not change since the last time
    are not touched: a second run finds nothing to do. OMNIGRAPH_MAINTENANCE_CONCURRENCY says how
    many tables are worked on at once (8).
    """
    with settings.graph(writing=True) as graph:
        result = graph.optimize(**options)
        settings.show(result, result.commit, verb="Optimized")


@family("index", "omnigraph index status ./fleet", "omnigraph index build ./fleet", usual="status")
def index_group() -> None:
    """Look at indexes and build them.

    The schema says which there are: ids, endpoints and keys always, others by @index. They make
    reads faster and change no answer.
    """


@command(
    "status",
    "omnigraph index status ./fleet",
    "omnigraph index status ./fleet --type Vessel --json | jq '.indexes[].coverage'",
    into=index_group,
)
@types_option
@branch_option
def index_status_command(settings: Settings, **options: Any) -> None:
    """Show every index and how many of the rows it covers.

    The other rows are found as well, by a scan.
    """
    with settings.graph() as graph:
        settings.show(IndexList(indexes=graph.indexes(**options)))


@command(
    "build",
    "omnigraph index build ./fleet",
    "omnigraph index build ./fleet --type Vessel",
    into=index_group,
)
@types_option
@branch_option
@commit_options
def build_command(settings: Settings, **options: Any) -> None:
    """Make every index cover every row, as one commit; files stay as they are.

    'omnigraph optimize' does what is worth its cost; this builds anew what lags by a single row.
    """
    with settings.graph(writing=True) as graph:
        result = graph.build_indexes(**options)
        settings.show(result, result.commit, verb="Indexed")


@command(
    "repair",
    "omnigraph repair ./fleet",
    "omnigraph repair ./fleet --confirm",
    "omnigraph repair ./fleet --type Vessel --discard --confirm",
)
@types_option
@click.option("--confirm", is_flag=True, help="Do it; without it the command only says what.")
@click.option(
    "--force", is_flag=True, help="Adopt changes of rows, too, if the schema allows them."
)
@click.option("--discard", is_flag=True, help="Put every table back to what the graph shows.")
@message_option
@durability_option
def repair_command(settings: Settings, confirm: bool, **options: Any) -> None:
    """Deal with what another program did to tables of main, and with names of branches.

    Every Lance program can open the tables of a graph. What it commits there is not part of the
    graph; such a table drifts, and optimize and cleanup leave it alone. If files were only joined,
    --confirm puts the table back, because no row changed. Anything else is refused, unless --force
    adopts it or --discard puts the table back.

    What older releases could leave is found on every branch. Indexes that were taken from another
    lineage of a table are built again; a branch that cannot be found by its name gets
    one, and a name without a branch is removed; edges without a node at one end are deleted, but
    only with --force: the nodes may be what is missing. Exits with 1 if something was refused.
    """
    with settings.graph(writing=confirm) as graph:
        report = graph.upkeep.repair(confirm=confirm, **options)
        settings.show(report, report.commits[-1] if report.commits else None)
    fail_if(bool(report.refused))
