"""`omnigraph status`, `check`, `cleanup` and `recovery`: looking after a graph."""

from __future__ import annotations

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Family,
    branch_option,
    common_options,
    examples,
    json_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.spans import SPAN
from omnigraph.errors import UsageError


@click.command(
    "status",
    epilog=examples(
        "omnigraph status ./fleet",
        "omnigraph status ./fleet --json | jq '.types[] | {type_key, rows, fragments}'",
    ),
)
@target_options
@branch_option
@json_option
@common_options
@click.pass_obj
def status_command(settings: Settings, uri: str | None, store: str | None, branch: str) -> None:
    """Show on one screen how a graph is doing.

    Its size, rows and files of every type, how far indexes reach, branches, tags, writes that are
    pending, the depth of its history, and what to run next. No rows are read.
    """
    place = target(uri, store)

    from omnigraph.cli.care_output import print_status
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        print_status(graph.upkeep.status(branch), settings)


@click.command(
    "check",
    epilog=examples(
        "omnigraph check ./fleet",
        "omnigraph check ./fleet --full --json | jq '.findings[]'",
        "omnigraph check ./fleet --history",
    ),
)
@target_options
@click.option(
    "--full",
    is_flag=True,
    help="Read every column, and hold rows, indexes and commits to what they say.",
)
@click.option("--history", is_flag=True, help="Look at every state of the past that is kept, too.")
@json_option
@common_options
@click.pass_obj
def check_command(
    settings: Settings, uri: str | None, store: str | None, full: bool, history: bool
) -> None:
    """Look whether a whole graph is sound, and say what to do if it is not.

    On every branch and at every tag: names lead to states, the history is complete, every table
    opens, its files are there and can be read, rows are as many as the manifest says, ids are
    unique and edges lead somewhere. With --full also that rows keep every rule of the schema, that
    indexes answer rightly, and that commits count what they changed. With --history every state of
    the past that is kept: its tables open, and their files are there. Nothing is changed. Exits
    with 1 if something is found.
    """
    place = target(uri, store)

    from omnigraph.cli.care_output import print_check
    from omnigraph.cli.meter import Unit
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        with settings.output.meter("Checking", None, Unit.TABLES) as meter:
            report = graph.upkeep.check(full=full, history=history, progress=meter.advance_of)
        answered()
        print_check(report, settings)
    if not report.ok:
        raise click.exceptions.Exit(FAILURE)


@click.command(
    "cleanup",
    epilog=examples(
        "omnigraph cleanup ./fleet --keep 50",
        "omnigraph cleanup ./fleet --keep 50 --older-than 30d --confirm",
        "omnigraph cleanup s3://bucket/fleet --older-than 30d --confirm --yes",
    ),
)
@target_options
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
    help="Never touch what was written or shown within SPAN: somebody may be reading it.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"]),
    default="auto",
    show_default=True,
    help="Who looks at the versions that are kept: this process, or Spark if they are very many.",
)
@json_option
@common_options
@click.pass_obj
def cleanup_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    keep: int | None,
    older_than: float | None,
    confirm: bool,
    yes: bool,
    grace: float,
    engine: str,
) -> None:
    """Remove the past that nobody keeps, and what writes that died have left.

    With --keep and --older-than only what both give up. Branches, tags and what merges need are
    always kept, and the list of commits stays complete. It can run while others write. Without
    --confirm nothing is removed.
    """
    place = target(uri, store)

    from omnigraph.cli.care_output import print_cleanup
    from omnigraph.cli.meter import Unit
    from omnigraph.graph import open as open_graph
    from omnigraph.storage.location import locate

    if confirm and not yes and not locate(place).is_local:
        raise UsageError(
            "cleanup of a graph that is not on this disk needs --yes",
            hint="look at the preview first: leave --confirm out",
        )
    with open_graph(place) as graph:
        doing = "Cleaning up" if confirm else "Looking"
        with settings.output.meter(doing, None, Unit.PLACES) as meter:
            report = graph.upkeep.cleanup(
                keep=keep,
                older_than=older_than,
                confirm=confirm,
                grace=grace,
                engine=engine,
                progress=meter.advance_of,
            )
        answered()
        print_cleanup(report, settings, command="add --confirm")
    if report.errors:
        raise click.exceptions.Exit(FAILURE)


@click.group(
    "recovery",
    cls=Family,
    usual="list",
    context_settings=HELP_NAMES,
    epilog=examples("omnigraph recovery list ./fleet", "omnigraph recovery run ./fleet"),
)
@json_option
@common_options
def recovery_group() -> None:
    """Look at writes that did not end well, and deal with them.

    Nobody has to: such a write is published as a whole or not at all, and blocks nothing.
    """


@recovery_group.command("list", epilog=examples("omnigraph recovery list ./fleet"))
@target_options
@json_option
@common_options
@click.pass_obj
def list_command(settings: Settings, uri: str | None, store: str | None) -> None:
    """List the writes that are pending: running, stalled, published, unreadable or unclear.

    With --json the answer is {"intents", "put_aside"}.
    """
    place = target(uri, store)

    from omnigraph.cli.care_output import print_intents
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        recovery = graph.upkeep.recovery
        print_intents(recovery.list(), recovery.put_aside(), settings)


@recovery_group.command("show", epilog=examples("omnigraph recovery show 01JZ8YB1 ./fleet"))
@click.argument("operation", type=WORDS, metavar="OPERATION")
@target_options
@json_option
@common_options
@click.pass_obj
def show_command(settings: Settings, operation: str, uri: str | None, store: str | None) -> None:
    """Show one pending write, by its id or the beginning of it."""
    place = target(uri, store)

    from omnigraph.cli.care_output import print_intent
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        print_intent(graph.upkeep.recovery.show(operation), settings)


@recovery_group.command(
    "run",
    epilog=examples(
        "omnigraph recovery run ./fleet",
        "omnigraph recovery run ./fleet --operation 01JZ8YB1 --stalled-after 1m",
    ),
)
@target_options
@click.option("--operation", type=WORDS, metavar="ID", help="Only this write.")
@click.option(
    "--stalled-after",
    type=SPAN,
    default="1h",
    show_default=True,
    metavar="SPAN",
    help="Give up a write that was not heard of for SPAN.",
)
@json_option
@common_options
@click.pass_obj
def run_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    operation: str | None,
    stalled_after: float,
) -> None:
    """Finish what was published and give up what has stalled.

    A write that is given up is told by a commit of omnigraph:recovery. If it wakes up after all it
    fails with 'revoked' and can be repeated. Its files go with the next cleanup.
    """
    place = target(uri, store)

    from omnigraph.cli.care_output import print_recovered
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        report = graph.upkeep.recovery.run(operation, stalled_after=stalled_after)
        answered()
        print_recovered(report, settings)
    if report.failed:
        raise click.exceptions.Exit(FAILURE)
