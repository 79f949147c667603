"""`omnigraph commit`: the history."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from omnigraph.cli.commands.merge import revert_command
from omnigraph.cli.confirm import ask, can_ask, needs_yes
from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Command,
    Family,
    actor_option,
    branch_option,
    common_options,
    durability_option,
    examples,
    if_commit_option,
    json_option,
    message_option,
    not_empty,
    target,
    target_options,
)
from omnigraph.cli.ref_change import ResetDone
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line
from omnigraph.errors import UsageError


@click.group(
    "commit",
    cls=Family,
    usual="list",
    context_settings=HELP_NAMES,
    epilog=examples(
        "omnigraph commit list ./fleet --limit 10", "omnigraph commit log ./fleet --all --graph"
    ),
)
@json_option
@common_options
def commit_group() -> None:
    """Look at the history of a graph, and go back in it."""


commit_group.add_command(revert_command)


def _filter_options(command: Command) -> Command:
    """Which commits are shown."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def _limit_option(command: Command) -> Command:
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only the newest N.  [default: all]",
    )(command)


_FILTERS: tuple[Any, ...] = (
    _limit_option,
    click.option(
        "--actor",
        "actors",
        type=WORDS,
        multiple=True,
        metavar="NAME",
        help="Only commits of this actor. May be repeated: of any of them.",
    ),
    click.option(
        "--filter",
        "filters",
        type=WORDS,
        multiple=True,
        metavar="actor=NAME",
        help="The same as --actor NAME.",
    ),
    click.option(
        "--kind",
        type=WORDS,
        metavar="KIND",
        help="Only commits of this kind: load, mutation, merge, revert, reset …",
    ),
    click.option(
        "--type",
        "type_name",
        type=WORDS,
        metavar="NAME",
        help="Only commits that changed this node or edge type.",
    ),
    click.option(
        "--since",
        type=WORDS,
        metavar="MOMENT",
        help="Only commits of this moment or later, e.g. 2026-11-15 or 2026-11-15T10:00Z. A day "
        "is its first moment, in UTC.",
    ),
    click.option(
        "--until", type=WORDS, metavar="MOMENT", help="Only commits of this moment or earlier."
    ),
    click.option(
        "--first-parent", is_flag=True, help="Only the branch's own line, without what was merged."
    ),
    click.option(
        "--not-in",
        type=WORDS,
        metavar="TARGET",
        callback=not_empty,
        help="Leave out what is in this branch, tag or commit as well.",
    ),
)


@commit_group.command(
    "list",
    epilog=examples(
        "omnigraph commit list ./fleet --limit 10",
        "omnigraph commit list ./fleet --actor alice --since 2026-11-01 --type Vessel",
        "omnigraph commit list ./fleet --branch june --not-in main",
        "omnigraph commit list ./fleet --json | jq -r '.commits[0].graph_commit_id'",
    ),
)
@target_options
@branch_option
@_filter_options
@json_option
@common_options
@click.pass_obj
def list_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    limit: int | None,
    actors: tuple[str, ...],
    filters: tuple[str, ...],
    kind: str | None,
    type_name: str | None,
    since: str | None,
    until: str | None,
    first_parent: bool,
    not_in: str | None,
) -> None:
    """List commits, newest first.

    All that went into the branch: its own commits, those of the branches it was made from, and
    those that were merged. A line shows the commit, its time in UTC, the actor, the kind, how many
    entities were inserted (+), updated (~) and deleted (-), and the message.
    """
    place = target(uri, store)
    wanted = {*actors, *map(_actor, filters)}

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        several = len(wanted) > 1
        found = graph.commits(
            branch=branch,
            limit=None if several else limit,
            actor=None if several else next(iter(wanted), None),
            kind=kind,
            type=type_name,
            since=since,
            until=until,
            first_parent=first_parent,
            not_in=not_in,
        )
        if several:
            from omnigraph.results import Commits

            found = Commits([c for c in found if c.actor in wanted][:limit])
        settings.output.commits(found)


@commit_group.command(
    "show",
    epilog=examples(
        "omnigraph commit show 01JZ8Y6N2D3V5K7M9P1R3T5V7X ./fleet",
        "omnigraph commit show 01jz8y6n2d ./fleet",
    ),
)
@click.argument("commit_id", type=WORDS, metavar="ID")
@target_options
@click.option(
    "--branch",
    type=WORDS,
    metavar="NAME",
    help="Look on this branch only.  [default: main, then all others]",
)
@json_option
@common_options
@click.pass_obj
def show_command(
    settings: Settings, commit_id: str, uri: str | None, store: str | None, branch: str | None
) -> None:
    """Show one commit: who, when, why, and what it changed in each type.

    The beginning of an id is enough as long as no other commit begins so; upper and lower case are
    the same.
    """
    if not commit_id.strip():
        raise UsageError("the commit id is empty", hint="'omnigraph commit list' shows the commits")
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.commit(graph.commit(commit_id, branch=branch))


@commit_group.command(
    "log",
    epilog=examples(
        "omnigraph commit log ./fleet --graph",
        "omnigraph commit log ./fleet --all --graph --limit 20",
        "omnigraph commit log ./fleet --branch june --first-parent",
    ),
)
@target_options
@branch_option
@click.option("--all", "everywhere", is_flag=True, help="The commits of all branches.")
@click.option("--graph", "drawn", is_flag=True, help="Draw the lines between the commits.")
@_limit_option
@click.option(
    "--first-parent", is_flag=True, help="Only the branch's own line, without what was merged."
)
@json_option
@common_options
@click.pass_obj
def log_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    everywhere: bool,
    drawn: bool,
    limit: int | None,
    first_parent: bool,
) -> None:
    """Show how commits follow from each other.

    A commit stands above its parents. Beside it are the branches whose newest commit it is, and its
    tags. With --json every commit has them as "branches" and "tags".
    """
    place = target(uri, store)
    context = click.get_current_context()
    said = context.get_parameter_source("branch") is ParameterSource.COMMANDLINE
    if everywhere and (said or first_parent):
        other = "--branch" if said else "--first-parent"
        raise UsageError(f"{other} is about one branch and --all about every", hint="give one")

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        log = graph.log(
            branch=None if everywhere else branch, limit=limit, first_parent=first_parent
        )
        settings.output.log(log, graph=drawn)


@commit_group.command(
    "reset",
    epilog=examples(
        "omnigraph commit reset main@12 ./fleet",
        "omnigraph commit reset v1.0 ./fleet --branch june --yes --as alice",
        "omnigraph commit reset 01jz8y6n2d ./fleet --message 'June was wrong'",
    ),
)
@click.argument("shown", type=WORDS, metavar="TARGET")
@target_options
@branch_option
@if_commit_option
@message_option
@actor_option
@durability_option
@click.option("--yes", is_flag=True, help="Do not ask; without a terminal a must.")
@json_option
@common_options
@click.pass_obj
def reset_command(
    settings: Settings,
    shown: str,
    uri: str | None,
    store: str | None,
    branch: str,
    if_commit: str | None,
    message: str | None,
    actor: str | None,
    durability: str,
    yes: bool,
) -> None:
    """Make a branch show an earlier state again.

    TARGET is a commit, a tag, a branch, a version (main@12) or a moment (main@2026-11-15). A new
    commit follows it; the commits that came after it are left behind. Those can still be read by
    their ids until they are reclaimed: tag what must be kept. You are asked first. To undo one
    commit and keep the later ones there is 'commit revert'.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        goal = graph.at(shown).commit.id
        before = graph.snapshot(branch).commit.id
        left = len(graph.commits(branch=branch, not_in=shown))
        if not yes and goal != before:
            if not can_ask(settings):
                raise needs_yes("a reset", f"it leaves {_left(left)} behind")
            where = f"branch {one_line(branch)} of {one_line(graph.uri)}"
            ask(settings, f"Reset {where} to commit {goal}, and leave {_left(left)} behind?")
        settings.writing = True
        made = graph.reset(
            shown,
            branch=branch,
            actor=actor,
            message=message,
            if_commit=if_commit or before,
        )
        settings.published = made.id if made else None
        settings.output.was_reset(
            ResetDone(
                branch=branch,
                # TARGET may be a branch that went on meanwhile.
                target_commit=(made.parent_id if made else None) or goal,
                previous_commit=before,
                left_behind=left,
                commit=made,
            )
        )
        answered()


def _left(count: int) -> str:
    return f"{count:,} {'commit' if count == 1 else 'commits'}"


def _actor(condition: str) -> str:
    name, equals, value = condition.partition("=")
    if name.strip() != "actor" or not equals or not value:
        raise UsageError(f"cannot filter by '{condition}'", hint="use --filter actor=NAME")
    return value
