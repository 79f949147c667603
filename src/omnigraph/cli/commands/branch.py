"""`omnigraph branch`: lines of development over the whole graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.commands.merge import merge_command
from omnigraph.cli.confirm import ask, can_ask, needs_yes
from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Family,
    actor_option,
    common_options,
    durability_option,
    examples,
    if_commit_option,
    json_option,
    not_empty,
    target,
    target_options,
)
from omnigraph.cli.ref_change import RefChange
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.graph import Graph


@click.group(
    "branch",
    cls=Family,
    usual="list",
    context_settings=HELP_NAMES,
    epilog=examples(
        "omnigraph branch create june ./fleet",
        "omnigraph branch list ./fleet",
    ),
)
@json_option
@common_options
def branch_group() -> None:
    """Make, look at and end branches.

    A branch is a line of commits of its own over the whole graph. Making one copies nothing.
    """


branch_group.add_command(merge_command)


@branch_group.command(
    "create",
    epilog=examples(
        "omnigraph branch create june ./fleet",
        "omnigraph branch create fix ./fleet --from v1.0 --description 'Wrong flags' --as alice",
        "omnigraph branch create before ./fleet --from main@2026-11-15",
    ),
)
@click.argument("name", type=WORDS, metavar="NAME")
@target_options
@click.option(
    "--from",
    "source",
    type=WORDS,
    default="main",
    show_default=True,
    metavar="TARGET",
    callback=not_empty,
    help="What it starts from: a branch, a tag, a commit, a version (main@12) or a moment.",
)
@click.option("--description", type=WORDS, metavar="TEXT", help="What it is for.")
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def create_command(
    settings: Settings,
    name: str,
    uri: str | None,
    store: str | None,
    source: str,
    description: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Make a branch.

    It shows what TARGET shows, and costs the same at any size of the graph. Any printable name will
    do, also one with slashes.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        made = graph.branches.create(name, source, description=description, actor=actor)
        settings.output.branch_changed(RefChange.CREATED, made)


@branch_group.command(
    "list",
    epilog=examples(
        "omnigraph branch list ./fleet",
        "omnigraph branch list ./fleet --verbose",
        "omnigraph branch list ./fleet --json | jq -r '.branches[].name'",
    ),
)
@target_options
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show also the newest commit, its time and actor, the parent and the description.",
)
@json_option
@common_options
@click.pass_obj
def list_command(settings: Settings, uri: str | None, store: str | None, verbose: bool) -> None:
    """List the branches, main first."""
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        if verbose:
            settings.output.branch_details(graph.branches.details())
        else:
            settings.output.branches(graph.branches.list())


@branch_group.command("show", epilog=examples("omnigraph branch show june ./fleet"))
@click.argument("name", type=WORDS, metavar="NAME")
@target_options
@json_option
@common_options
@click.pass_obj
def show_command(settings: Settings, name: str, uri: str | None, store: str | None) -> None:
    """Show one branch: its newest commit, where it came from, what it is for."""
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.branch(graph.branches.show(name))


@branch_group.command(
    "delete",
    epilog=examples(
        "omnigraph branch delete june ./fleet",
        "omnigraph branch delete june ./fleet --if-commit 01JZ8Y6N2D3V5K7M9P1R3T5V7X --yes",
    ),
)
@click.argument("name", type=WORDS, metavar="NAME")
@target_options
@if_commit_option
@durability_option
@click.option(
    "--yes", is_flag=True, help="Do not ask; on a remote store without a terminal a must."
)
@json_option
@common_options
@click.pass_obj
def delete_command(
    settings: Settings,
    name: str,
    uri: str | None,
    store: str | None,
    if_commit: str | None,
    durability: str,
    yes: bool,
) -> None:
    """End a branch.

    Branches that were made from it, tags, and commits that were merged elsewhere keep all they
    need. The name is free again. On a terminal you are asked first.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        if not yes:
            if_commit = _confirm(settings, graph, name, if_commit)
        ended = graph.branches.delete(name, if_commit=if_commit)
        settings.output.branch_changed(RefChange.DELETED, ended)


@branch_group.command("rename", epilog=examples("omnigraph branch rename june july ./fleet"))
@click.argument("name", type=WORDS, metavar="OLD")
@click.argument("new_name", type=WORDS, metavar="NEW")
@target_options
@durability_option
@json_option
@common_options
@click.pass_obj
def rename_command(
    settings: Settings,
    name: str,
    new_name: str,
    uri: str | None,
    store: str | None,
    durability: str,
) -> None:
    """Give a branch another name.

    It stays the same branch: its commits and its history are untouched.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        renamed = graph.branches.rename(name, new_name)
        settings.output.branch_changed(RefChange.RENAMED, renamed, former_name=name.strip())


@branch_group.command(
    "describe",
    epilog=examples(
        "omnigraph branch describe june 'Corrections for June' ./fleet",
        "omnigraph branch describe june --clear ./fleet",
    ),
)
@click.argument("name", type=WORDS, metavar="NAME")
@click.argument("text", type=WORDS, metavar="[TEXT]", required=False)
@target_options
@click.option("--clear", is_flag=True, help="Take the description away.")
@json_option
@common_options
@click.pass_obj
def describe_command(
    settings: Settings,
    name: str,
    text: str | None,
    uri: str | None,
    store: str | None,
    clear: bool,
) -> None:
    """Say what a branch is for."""
    if clear and uri is None:
        text, uri = None, text
    if (text is None) != clear:
        why = "a description and --clear are both given" if clear else "no description is given"
        raise UsageError(why, hint="write the text behind the name, or --clear")
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        described = graph.branches.describe(name, text)
        settings.output.branch_changed(RefChange.DESCRIBED, described)


def _confirm(settings: Settings, graph: Graph, name: str, if_commit: str | None) -> str | None:
    """Ask if somebody is there; returns the commit that the branch must still be at."""
    from omnigraph.storage.location import locate

    if not can_ask(settings):
        if locate(graph.uri).is_local:
            return if_commit
        raise needs_yes(f"deleting a branch of {graph.uri}", "it is not on this machine")
    branch = graph.branches.show(name)
    ask(settings, _question(graph, branch))
    # What was shown is what is deleted.
    return if_commit or branch.head.id


def _question(graph: Graph, branch: BranchInfo) -> str:
    from omnigraph.cli.text import count_text

    alone = len(graph.commits(branch=branch.name, not_in="main"))
    lost = f"{count_text(alone, 'commit')} not on main" if alone else "all its commits are on main"
    return f"Delete branch {one_line(branch.name)} of {one_line(graph.uri)}, {lost}?"
