"""`omnigraph commit`: the history."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from omnigraph.cli.answers import CommitList, CommitLog, ResetDone
from omnigraph.cli.command import command, family
from omnigraph.cli.commands.merge import revert_command
from omnigraph.cli.lines import count_text
from omnigraph.cli.options import (
    all_of,
    branch_option,
    commit_argument,
    commit_options,
    if_commit_option,
    not_empty,
    text_argument,
    text_option,
)
from omnigraph.cli.settings import Settings, needs_yes
from omnigraph.cli.streams import one_line
from omnigraph.errors import UsageError


@family(
    "commit",
    "omnigraph commit list ./fleet --limit 10",
    "omnigraph commit log ./fleet --all --graph",
    usual="list",
)
def commit_group() -> None:
    """Look at the history of a graph, and go back in it."""


commit_group.add_command(revert_command)


_limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the newest N.  [default: all]",
)
_first_parent_option = click.option(
    "--first-parent", is_flag=True, help="Only the branch's own line, without what was merged."
)
_filter_options = all_of(
    _limit_option,
    text_option(
        "--actor",
        "actors",
        multiple=True,
        metavar="NAME",
        help="Only commits of this actor. May be repeated: of any of them.",
    ),
    text_option(
        "--filter",
        "filters",
        multiple=True,
        metavar="actor=NAME",
        help="The same as --actor NAME.",
    ),
    text_option(
        "--kind",
        metavar="KIND",
        help="Only commits of this kind: load, mutation, merge, revert, reset …",
    ),
    text_option("--type", metavar="NAME", help="Only commits that changed this node or edge type."),
    text_option(
        "--since",
        metavar="MOMENT",
        help="Only commits of this moment or later: 2026-11-15, 2026-11-15T10:00Z, yesterday, "
        "'2 weeks ago', monday, 12h. A day is its first moment, in UTC.",
    ),
    text_option("--until", metavar="MOMENT", help="Only commits of this moment or earlier."),
    _first_parent_option,
    text_option(
        "--not-in",
        metavar="TARGET",
        callback=not_empty,
        help="Leave out what is in this branch, tag or commit as well.",
    ),
)


@command(
    "list",
    "omnigraph commit list ./fleet --limit 10",
    "omnigraph commit list ./fleet --actor alice --since 2026-11-01 --type Vessel",
    "omnigraph commit list ./fleet --branch june --not-in main",
    "omnigraph commit list ./fleet --json | jq -r '.commits[0].graph_commit_id'",
    into=commit_group,
)
@branch_option
@_filter_options
def list_command(settings: Settings, **options: Any) -> None:
    """List commits, newest first.

    All that went into the branch: its own commits, those of the branches it was made from, and
    those that were merged. A line shows the commit, its time in UTC, the actor, the kind, how many
    entities were inserted (+), updated (~) and deleted (-), and the message.
    """
    _show_list(settings, **options)


@command(
    "log",
    "omnigraph log",
    "omnigraph log ./fleet --since yesterday --actor alice",
    "omnigraph log ./fleet --all --graph",
)
@branch_option
@_filter_options
@click.option("--all", "everywhere", is_flag=True, help="The commits of all branches.")
@click.option("--graph", "drawn", is_flag=True, help="Draw the lines between the commits.")
def short_log_command(
    settings: Settings, branch: str, everywhere: bool, drawn: bool, **options: Any
) -> None:
    """Show the history: 'commit list', and with --all or --graph 'commit log'."""
    if not everywhere and not drawn:
        _show_list(settings, branch=branch, **options)
        return
    own = {name: options.pop(name) for name in ("limit", "first_parent")}
    if any(options.values()):
        raise UsageError(
            "--all and --graph show all commits, and the other options leave some out",
            hint="give only --limit and --first-parent with them",
        )
    _show_log(settings, branch, everywhere, drawn, **own)


def _show_list(
    settings: Settings,
    limit: int | None,
    actors: tuple[str, ...],
    filters: tuple[str, ...],
    **options: Any,
) -> None:
    wanted = {*actors, *map(_actor, filters)}
    with settings.graph() as graph:
        several = len(wanted) > 1
        found = graph.commits(
            limit=None if several else limit,
            actor=None if several else next(iter(wanted), None),
            **options,
        )
        if several:
            from omnigraph.results import Commits

            found = Commits([c for c in found if c.actor in wanted][:limit])
        settings.show(CommitList(commits=found))


@command(
    "show",
    "omnigraph commit show 01JZ8Y6N2D3V5K7M9P1R3T5V7X ./fleet",
    "omnigraph commit show 01jz8y6n2d ./fleet",
    "omnigraph commit show HEAD~1 ./fleet",
    into=commit_group,
)
@commit_argument("ID")
def show_command(settings: Settings, commit_id: str, branch: str | None) -> None:
    """Show one commit: its actor, time and message, and what it changed in each type.

    The beginning of an id is enough as long as no other commit begins so; upper and lower case are
    the same. HEAD is the newest commit of main, HEAD~2 or main~2 two before it.
    """
    with settings.graph() as graph:
        settings.show(graph.commit(commit_id, branch=branch))


@command(
    "log",
    "omnigraph commit log ./fleet --graph",
    "omnigraph commit log ./fleet --all --graph --limit 20",
    "omnigraph commit log ./fleet --branch june --first-parent",
    into=commit_group,
)
@branch_option
@click.option("--all", "everywhere", is_flag=True, help="The commits of all branches.")
@click.option("--graph", "drawn", is_flag=True, help="Draw the lines between the commits.")
@_limit_option
@_first_parent_option
def log_command(
    settings: Settings,
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
    _show_log(settings, branch, everywhere, drawn, limit, first_parent)


def _show_log(
    settings: Settings,
    branch: str,
    everywhere: bool,
    drawn: bool,
    limit: int | None,
    first_parent: bool,
) -> None:
    context = click.get_current_context()
    said = context.get_parameter_source("branch") is ParameterSource.COMMANDLINE
    if everywhere and (said or first_parent):
        other = "--branch" if said else "--first-parent"
        raise UsageError(f"{other} is about one branch and --all about every", hint="give one")
    with settings.graph() as graph:
        log = graph.log(
            branch=None if everywhere else branch, limit=limit, first_parent=first_parent
        )
        settings.show(CommitLog(log=log, drawn=drawn))


@command(
    "reset",
    "omnigraph commit reset main@12 ./fleet",
    "omnigraph commit reset v1.0 ./fleet --branch june --yes --as alice",
    "omnigraph commit reset 01jz8y6n2d ./fleet --message 'June was wrong'",
    into=commit_group,
)
@text_argument("shown", metavar="TARGET")
@branch_option
@if_commit_option
@commit_options
@click.option("--yes", is_flag=True, help="Do not ask; required without a terminal.")
def reset_command(
    settings: Settings, shown: str, branch: str, if_commit: str | None, yes: bool, **options: Any
) -> None:
    """Make a branch show an earlier state again.

    TARGET is a commit, a tag, a branch, a version (main@12) or a moment (main@2026-11-15). A new
    commit follows it; the commits that came after it are left behind. Those can still be read by
    their ids until they are reclaimed: tag what must be kept. You are asked first. To undo one
    commit and keep the later ones there is 'commit revert'.
    """
    with settings.graph() as graph:
        goal = graph.at(shown).commit.id
        before = graph.snapshot(branch).commit.id
        left = len(graph.commits(branch=branch, not_in=shown))
        lost = count_text(left, "commit")
        if not yes and goal != before:
            if not settings.can_ask():
                raise needs_yes("a reset", f"it leaves {lost} behind")
            where = f"branch {one_line(branch)} of {one_line(graph.uri)}"
            settings.ask(f"Reset {where} to commit {goal}, and leave {lost} behind?")
        settings.writing = True
        made = graph.reset(shown, branch=branch, if_commit=if_commit or before, **options)
        done = ResetDone(
            branch=branch,
            # TARGET may be a branch that went on meanwhile.
            target_commit=(made.parent_id if made else None) or goal,
            previous_commit=before,
            left_behind=left,
            commit=made,
        )
        settings.show(done, made)


def _actor(condition: str) -> str:
    name, equals, value = condition.partition("=")
    if name.strip() != "actor" or not equals or not value:
        raise UsageError(f"cannot filter by '{condition}'", hint="use --filter actor=NAME")
    return value
