"""`omnigraph optimize` and `omnigraph index`: files joined, indexes built, and how they stand."""

from __future__ import annotations

import click

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
    json_option,
    message_option,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings


def _types_option(command: Command) -> Command:
    return click.option(
        "--type",
        "types",
        type=WORDS,
        multiple=True,
        metavar="NAME",
        help="Only this node or edge type. May be repeated.",
    )(command)


@click.command(
    "optimize",
    epilog=examples(
        "omnigraph optimize ./fleet",
        "omnigraph optimize ./fleet --type Vessel --as nightly",
        "omnigraph optimize ./fleet --json | jq '.tables[] | select(.committed)'",
    ),
)
@target_options
@_types_option
@branch_option
@message_option
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def optimize_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    types: tuple[str, ...],
    branch: str,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Join small files and bring indexes up to date, as one commit.

    No answer changes, and the past stays readable. Tables that did not change since the last time
    are not touched: a second run finds nothing to do. OMNIGRAPH_MAINTENANCE_CONCURRENCY says how
    many tables are worked on at once (8).
    """
    place = target(uri, store)

    from omnigraph.cli.upkeep_output import print_optimized
    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        settings.writing = True
        result = graph.optimize(branch=branch, types=types, actor=actor, message=message)
        settings.published = result.commit.id if result.commit is not None else None
        print_optimized(result, settings, verb="Optimized")
        answered()


@click.group(
    "index",
    cls=Family,
    usual="status",
    context_settings=HELP_NAMES,
    epilog=examples("omnigraph index status ./fleet", "omnigraph index build ./fleet"),
)
@json_option
@common_options
def index_group() -> None:
    """Look at indexes and build them.

    The schema says which there are: ids, endpoints and keys always, others by @index. They make
    reads faster and change no answer.
    """


@index_group.command(
    "status",
    epilog=examples(
        "omnigraph index status ./fleet",
        "omnigraph index status ./fleet --type Vessel --json | jq '.indexes[].coverage'",
    ),
)
@target_options
@_types_option
@branch_option
@json_option
@common_options
@click.pass_obj
def status_command(
    settings: Settings, uri: str | None, store: str | None, types: tuple[str, ...], branch: str
) -> None:
    """Show every index and how many of the rows it covers.

    The other rows are found as well, by looking through them.
    """
    place = target(uri, store)

    from omnigraph.cli.upkeep_output import print_indexes
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        print_indexes(graph.indexes(branch=branch, types=types), settings)
        answered()


@index_group.command(
    "build",
    epilog=examples("omnigraph index build ./fleet", "omnigraph index build ./fleet --type Vessel"),
)
@target_options
@_types_option
@branch_option
@message_option
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def build_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    types: tuple[str, ...],
    branch: str,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Make every index cover every row, as one commit; files stay as they are.

    'omnigraph optimize' does what is worth its cost; this builds anew what lags by a single row.
    """
    place = target(uri, store)

    from omnigraph.cli.upkeep_output import print_optimized
    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        settings.writing = True
        result = graph.build_indexes(branch=branch, types=types, actor=actor, message=message)
        settings.published = result.commit.id if result.commit is not None else None
        print_optimized(result, settings, verb="Indexed")
        answered()
