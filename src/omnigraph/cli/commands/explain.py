"""`omnigraph explain`: how a query is run."""

from __future__ import annotations

import click

from omnigraph.cli.options import (
    common_options,
    examples,
    json_option,
    limit_options,
)
from omnigraph.cli.query_source import QuerySource, source_options
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options


@click.command(
    "explain",
    epilog=examples(
        "omnigraph explain ./fleet -e 'match { $v: Vessel } return { count($v) }'",
        "omnigraph explain ./fleet calls_of --query fleet.gq --param imo=9300001 --analyze",
        "omnigraph explain ./fleet -e 'match { $v: Vessel } return { $v.name }' --at v1.0",
    ),
)
@source_options
@state_options
@click.option(
    "--analyze",
    is_flag=True,
    help="Run it, and say how many rows, milliseconds and requests each step took.",
)
@limit_options
@json_option
@common_options
@click.pass_obj
def explain_command(
    settings: Settings,
    source: QuerySource,
    state: StateAsked,
    analyze: bool,
    timeout_s: float | None,
    memory_bytes: int | None,
) -> None:
    """Show how a query is run, step by step.

    The last step stands first; what it takes its rows from is indented below it. Without --analyze
    nothing is run, and parameters need no values.
    """
    output = settings.output
    asked = source.read(output)

    from omnigraph.cli.explained import Explained
    from omnigraph.graph import open as open_graph

    with open_graph(source.place) as graph:
        view = state.view(graph)
        with asked.named():
            found = view.explain(
                asked.text,
                asked.params,
                name=asked.name,
                analyze=analyze,
                timeout_s=timeout_s,
                memory_bytes=memory_bytes,
            )
        commit = view.commit.id if state.pinned else None
        output.explained(Explained(explanation=found, branch=view.branch, commit=commit))
