"""`omnigraph mutate`: change a graph with a query, as one commit."""

from __future__ import annotations

import click

from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import (
    actor_option,
    branch_option,
    common_options,
    durability_option,
    examples,
    if_commit_option,
    json_option,
    message_option,
)
from omnigraph.cli.query_source import QuerySource, source_options
from omnigraph.cli.settings import Settings
from omnigraph.clock import SystemClock


@click.command(
    "mutate",
    epilog=examples(
        "omnigraph mutate ./fleet -e 'update Vessel set { flag: \"no\" } where imo = 9300001'",
        "omnigraph mutate ./fleet add_port --query fleet.gq --param code=OSL --as alice",
        "omnigraph mutate ./fleet -e 'delete Port where code = \"AAR\"' --if-commit 01JZ8Y6N2D…",
    ),
)
@source_options
@branch_option
@if_commit_option
@message_option
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def mutate_command(
    settings: Settings,
    source: QuerySource,
    branch: str,
    if_commit: str | None,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Insert, update or delete with a query, as one commit.

    All statements of the query are published together or not at all, checked against the schema. A
    mutation that changes nothing makes no commit.

    \b
    With --json the answer is
      {"branch", "query_name", "affected_nodes", "affected_edges", "actor_id", "commit"}
    """
    output = settings.output
    asked = source.read(output)

    from omnigraph.graph import open as open_graph

    clock = SystemClock()
    with open_graph(source.place, durability=durability) as graph:
        started_s = clock.monotonic_s()
        settings.writing = True
        with asked.named():
            result = graph.mutate(
                asked.text,
                asked.params,
                name=asked.name,
                branch=branch,
                actor=actor,
                message=message,
                if_commit=if_commit,
            )
        settings.published = result.commit.id if result.commit else None
        output.mutated(result, clock.monotonic_s() - started_s)
        answered()
