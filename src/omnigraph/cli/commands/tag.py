"""`omnigraph tag`: names for commits."""

from __future__ import annotations

import click

from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Family,
    actor_option,
    common_options,
    durability_option,
    examples,
    json_option,
    target,
    target_options,
    word_and_target,
)
from omnigraph.cli.ref_change import RefChange
from omnigraph.cli.settings import Settings


@click.group(
    "tag",
    cls=Family,
    usual="list",
    context_settings=HELP_NAMES,
    epilog=examples("omnigraph tag create v1.0 ./fleet", "omnigraph tag list ./fleet"),
)
@json_option
@common_options
def tag_group() -> None:
    """Give commits names.

    A tag keeps its commit from being reclaimed, whatever becomes of the branch.
    """


@tag_group.command(
    "create",
    epilog=examples(
        "omnigraph tag create v1.0 ./fleet",
        "omnigraph tag create v0.9 main@12 ./fleet --message 'As shown in May' --as alice",
        "omnigraph tag create audited june ./fleet",
    ),
)
@click.argument("name", type=WORDS, metavar="NAME")
@click.argument("word", type=WORDS, metavar="[TARGET]", required=False)
@target_options
@click.option("--message", type=WORDS, metavar="TEXT", help="Why; recorded in the tag.")
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def create_command(
    settings: Settings,
    name: str,
    word: str | None,
    uri: str | None,
    store: str | None,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Name the commit that TARGET shows.

    TARGET is a branch, a tag, a commit, a version (main@12) or a moment (main@2026-11-15); main if
    it is left out. A single word behind NAME is the graph, or TARGET if the graph is named by
    --store or the environment.
    """
    shown, place = word_and_target(word, uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        made = graph.tags.create(
            name, shown if shown is not None else "main", actor=actor, message=message
        )
        settings.output.tag_changed(RefChange.CREATED, made)


@tag_group.command(
    "list",
    epilog=examples(
        "omnigraph tag list ./fleet",
        "omnigraph tag list ./fleet --json | jq -r '.tags[].name'",
    ),
)
@target_options
@json_option
@common_options
@click.pass_obj
def list_command(settings: Settings, uri: str | None, store: str | None) -> None:
    """List the tags by name, with their commits."""
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.tags(graph.tags.list())


@tag_group.command("show", epilog=examples("omnigraph tag show v1.0 ./fleet"))
@click.argument("name", type=WORDS, metavar="NAME")
@target_options
@json_option
@common_options
@click.pass_obj
def show_command(settings: Settings, name: str, uri: str | None, store: str | None) -> None:
    """Show one tag: its commit, who made it and why."""
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.tag(graph.tags.show(name))


@tag_group.command("delete", epilog=examples("omnigraph tag delete v1.0 ./fleet"))
@click.argument("name", type=WORDS, metavar="NAME")
@target_options
@json_option
@common_options
@click.pass_obj
def delete_command(settings: Settings, name: str, uri: str | None, store: str | None) -> None:
    """Take a name away.

    The commit itself stays as long as a branch or another tag leads to it; the answer names it, so
    that the tag can be made again.
    """
    place = target(uri, store)

    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        settings.output.tag_changed(RefChange.DELETED, graph.tags.delete(name))
