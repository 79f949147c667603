"""`omnigraph commit`: the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.results import Commits


@click.group(
    "commit",
    cls=Family,
    usual="list",
    context_settings=HELP_NAMES,
    epilog=examples("omnigraph commit list ./fleet --limit 10"),
)
@json_option
@common_options
def commit_group() -> None:
    """Look at the history of a graph."""


@commit_group.command(
    "list",
    epilog=examples(
        "omnigraph commit list ./fleet --limit 10",
        "omnigraph commit list ./fleet --filter actor=alice --filter actor=bob",
        "omnigraph commit list ./fleet --json | jq -r '.commits[0].graph_commit_id'",
    ),
)
@target_options
@branch_option
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="Only the newest N.  [default: all]"
)
@click.option(
    "--filter",
    "filters",
    type=WORDS,
    multiple=True,
    metavar="actor=NAME",
    help="Only commits of this actor. May be repeated: of any of them.",
)
@json_option
@common_options
@click.pass_obj
def list_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    limit: int | None,
    filters: tuple[str, ...],
) -> None:
    """List commits, newest first.

    A line shows the commit, its time in UTC, the actor, the kind, how many entities were inserted
    (+), updated (~) and deleted (-), and the message.
    """
    place = target(uri, store)
    actors = frozenset(_actor(f) for f in filters)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.commits(_commits(graph, branch, limit, actors))


@commit_group.command(
    "show",
    epilog=examples(
        "omnigraph commit show 01JZ8Y6N2D3V5K7M9P1R3T5V7X ./fleet",
        "omnigraph commit show 01jz8y6n2d ./fleet",
    ),
)
@click.argument("commit_id", type=WORDS, metavar="ID")
@target_options
@branch_option
@json_option
@common_options
@click.pass_obj
def show_command(
    settings: Settings, commit_id: str, uri: str | None, store: str | None, branch: str
) -> None:
    """Show one commit: who, when, why, and what it changed in each type.

    The beginning of an id is enough as long as no other commit of the branch begins so; upper and
    lower case are the same.
    """
    if not commit_id.strip():
        raise UsageError("the commit id is empty", hint="'omnigraph commit list' shows the commits")
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.commit(graph.commit(commit_id, branch=branch))


def _commits(graph: Graph, branch: str, limit: int | None, actors: frozenset[str]) -> Commits:
    if len(actors) <= 1:
        return graph.commits(branch=branch, limit=limit, actor=next(iter(actors), None))

    from omnigraph.results import Commits

    matching = [c for c in graph.commits(branch=branch) if c.actor in actors]
    return Commits(matching[:limit])


def _actor(condition: str) -> str:
    name, equals, value = condition.partition("=")
    if name.strip() != "actor" or not equals or not value:
        raise UsageError(f"cannot filter by '{condition}'", hint="use --filter actor=NAME")
    return value
