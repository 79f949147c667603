"""`omnigraph branch` and `omnigraph tag`: lines of development over the whole graph, and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.answers import (
    BranchChanged,
    BranchDetails,
    BranchNames,
    RefChange,
    TagChanged,
    TagList,
)
from omnigraph.cli.command import command, family, target, target_options, word_and_target
from omnigraph.cli.commands.merge import merge_command
from omnigraph.cli.lines import count_text
from omnigraph.cli.options import (
    actor_option,
    durability_option,
    if_commit_option,
    not_empty,
    text_argument,
    text_option,
)
from omnigraph.cli.settings import Settings, needs_yes
from omnigraph.cli.streams import one_line
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.branch.control import BranchInfo


@family(
    "branch", "omnigraph branch create june ./fleet", "omnigraph branch list ./fleet", usual="list"
)
def branch_group() -> None:
    """Make, look at and end branches.

    A branch is a line of commits of its own over the whole graph. Making one copies nothing.
    """


branch_group.add_command(merge_command)


@command(
    "create",
    "omnigraph branch create june ./fleet",
    "omnigraph branch create fix ./fleet --from v1.0 --description 'Wrong flags' --as alice",
    "omnigraph branch create before ./fleet --from main@2026-11-15",
    into=branch_group,
)
@text_argument("name", metavar="NAME")
@text_option(
    "--from",
    "source",
    default="main",
    show_default=True,
    metavar="TARGET",
    callback=not_empty,
    help="What it starts from: a branch, a tag, a commit, a version (main@12) or a moment.",
)
@text_option("--description", metavar="TEXT", help="What it is for.")
@actor_option
@durability_option
def create_command(settings: Settings, name: str, source: str, **options: Any) -> None:
    """Make a branch.

    It shows what TARGET shows, and costs the same at any size of the graph. Any printable name will
    do, also one with slashes.
    """
    with settings.graph() as graph:
        made = graph.branches.create(name, source, **options)
        settings.show(BranchChanged(change=RefChange.CREATED, branch=made))


@command(
    "list",
    "omnigraph branch list ./fleet",
    "omnigraph branch list ./fleet --verbose",
    "omnigraph branch list ./fleet --json | jq -r '.branches[].name'",
    into=branch_group,
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Show also the newest commit, its time and actor, the parent and the description.",
)
def list_command(settings: Settings, verbose: bool) -> None:
    """List the branches, main first."""
    with settings.graph() as graph:
        if verbose:
            settings.show(BranchDetails(branches=graph.branches.details()))
        else:
            settings.show(BranchNames(names=graph.branches.list()))


@command("show", "omnigraph branch show june ./fleet", into=branch_group)
@text_argument("name", metavar="NAME")
def show_command(settings: Settings, name: str) -> None:
    """Show one branch: its newest commit, where it came from, what it is for."""
    with settings.graph() as graph:
        settings.show(graph.branches.show(name))


@command(
    "delete",
    "omnigraph branch delete june ./fleet",
    "omnigraph branch delete june ./fleet --if-commit 01JZ8Y6N2D3V5K7M9P1R3T5V7X --yes",
    into=branch_group,
)
@text_argument("name", metavar="NAME")
@if_commit_option
@durability_option
@click.option(
    "--yes", is_flag=True, help="Do not ask; required on a remote store without a terminal."
)
def delete_command(settings: Settings, name: str, if_commit: str | None, yes: bool) -> None:
    """End a branch.

    Branches that were made from it, tags, and commits that were merged elsewhere keep all they
    need. The name is free again. On a terminal you are asked first.
    """
    with settings.graph() as graph:
        if not yes:
            if_commit = _confirm(settings, graph, name, if_commit)
        ended = graph.branches.delete(name, if_commit=if_commit)
        settings.show(BranchChanged(change=RefChange.DELETED, branch=ended))


@command("rename", "omnigraph branch rename june july ./fleet", into=branch_group)
@text_argument("name", metavar="OLD")
@text_argument("new_name", metavar="NEW")
@durability_option
def rename_command(settings: Settings, name: str, new_name: str) -> None:
    """Give a branch another name.

    It stays the same branch: its commits and its history are untouched.
    """
    with settings.graph() as graph:
        renamed = graph.branches.rename(name, new_name)
        settings.show(
            BranchChanged(change=RefChange.RENAMED, branch=renamed, former_name=name.strip())
        )


@command(
    "describe",
    "omnigraph branch describe june 'Corrections for June' ./fleet",
    "omnigraph branch describe june --clear ./fleet",
    into=branch_group,
    on_graph=False,
)
@text_argument("name", metavar="NAME")
@text_argument("text", metavar="[TEXT]", required=False)
@target_options
@click.option("--clear", is_flag=True, help="Take the description away.")
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
    settings.place = target(uri, store)
    with settings.graph() as graph:
        described = graph.branches.describe(name, text)
        settings.show(BranchChanged(change=RefChange.DESCRIBED, branch=described))


def _confirm(settings: Settings, graph: Graph, name: str, if_commit: str | None) -> str | None:
    """Ask if there is a person; returns the commit that the branch must still be at."""
    from omnigraph.storage.location import locate

    if not settings.can_ask():
        if locate(graph.uri).is_local:
            return if_commit
        raise needs_yes(f"deleting a branch of {graph.uri}", "it is not on this machine")
    branch = graph.branches.show(name)
    settings.ask(_question(graph, branch))
    # What was shown is what is deleted.
    return if_commit or branch.head.id


def _question(graph: Graph, branch: BranchInfo) -> str:
    alone = len(graph.commits(branch=branch.name, not_in="main"))
    lost = f"{count_text(alone, 'commit')} not on main" if alone else "all its commits are on main"
    return f"Delete branch {one_line(branch.name)} of {one_line(graph.uri)}, {lost}?"


# ---------------------------------------------------------------- tags


@family("tag", "omnigraph tag create v1.0 ./fleet", "omnigraph tag list ./fleet", usual="list")
def tag_group() -> None:
    """Give commits names.

    A tag keeps its commit from being reclaimed, whatever becomes of the branch.
    """


@command(
    "create",
    "omnigraph tag create v1.0 ./fleet",
    "omnigraph tag create v0.9 main@12 ./fleet --message 'As shown in May' --as alice",
    "omnigraph tag create audited june ./fleet",
    into=tag_group,
    on_graph=False,
)
@text_argument("name", metavar="NAME")
@text_argument("word", metavar="[TARGET]", required=False)
@target_options
@text_option("--message", metavar="TEXT", help="Why; recorded in the tag.")
@actor_option
@durability_option
def create_tag_command(
    settings: Settings,
    name: str,
    word: str | None,
    uri: str | None,
    store: str | None,
    **options: Any,
) -> None:
    """Name the commit that TARGET shows.

    TARGET is a branch, a tag, a commit, a version (main@12) or a moment (main@2026-11-15); main if
    it is left out. A single word behind NAME is the graph, or TARGET if the graph is named by
    --store or the environment.
    """
    shown, settings.place = word_and_target(word, uri, store)
    with settings.graph() as graph:
        made = graph.tags.create(name, "main" if shown is None else shown, **options)
        settings.show(TagChanged(change=RefChange.CREATED, tag=made))


@command(
    "list",
    "omnigraph tag list ./fleet",
    "omnigraph tag list ./fleet --json | jq -r '.tags[].name'",
    into=tag_group,
)
def list_tag_command(settings: Settings) -> None:
    """List the tags by name, with their commits."""
    with settings.graph() as graph:
        settings.show(TagList(tags=graph.tags.list()))


@command("show", "omnigraph tag show v1.0 ./fleet", into=tag_group)
@text_argument("name", metavar="NAME")
def show_tag_command(settings: Settings, name: str) -> None:
    """Show one tag: its commit, its author and its message."""
    with settings.graph() as graph:
        settings.show(graph.tags.show(name))


@command("delete", "omnigraph tag delete v1.0 ./fleet", into=tag_group)
@text_argument("name", metavar="NAME")
def delete_tag_command(settings: Settings, name: str) -> None:
    """Take a name away.

    The commit itself stays as long as a branch or another tag leads to it; the answer names it, so
    that the tag can be made again.
    """
    with settings.graph() as graph:
        settings.show(TagChanged(change=RefChange.DELETED, tag=graph.tags.delete(name)))
