"""`omnigraph query`: rows out of a graph."""

from __future__ import annotations

import sys

import click

from omnigraph.cli.formats import Format, chosen_format, format_option
from omnigraph.cli.options import (
    common_options,
    examples,
    json_option,
    limit_options,
)
from omnigraph.cli.query_source import QuerySource, source_options
from omnigraph.cli.settings import Settings
from omnigraph.cli.state import StateAsked, state_options
from omnigraph.cli.streams import is_terminal
from omnigraph.clock import SystemClock
from omnigraph.errors import UsageError


@click.command(
    "query",
    epilog=examples(
        "omnigraph query ./fleet -e 'match { $v: Vessel } return { $v.name, $v.flag }'",
        "omnigraph query ./fleet calls_of --query fleet.gq --param imo=9300001",
        "omnigraph query ./fleet --query - --format csv < report.gq > report.csv",
        "omnigraph query ./fleet calls_of --query fleet.gq --params '{\"imo\": 9300001}' --json",
        "omnigraph query ./fleet --query all.gq --commit 01jz8y6n2d --format arrow > rows.arrow",
        "omnigraph query ./fleet --query all.gq --at main@2026-11-15",
        "omnigraph query s3://lake/fleet --query totals.gq --engine spark",
    ),
)
@source_options
@state_options
@format_option
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="local: this process. spark: for questions about more than it can hold; same answer.",
)
@limit_options
@json_option
@common_options
@click.pass_obj
def query_command(
    settings: Settings,
    source: QuerySource,
    state: StateAsked,
    form: str | None,
    engine: str,
    timeout_s: float | None,
    memory_bytes: int | None,
) -> None:
    """Ask a graph for rows.

    URI is the graph and NAME the query of a file that has several; when --store names the graph, a
    single word is NAME. The whole query reads one state of the graph: the newest, or that of
    --commit or --at.

    On a terminal the table fits the window and shows the first 1,000 rows. In a pipe, and in all
    other formats, nothing is left out.

    \b
    With --json the answer is
      {"query_name", "target": {"branch", "commit"}, "row_count", "columns", "rows",
       "graph_commit_id"}

    It has "notices", too, if a search ran over many rows that no built index covers; in other
    formats that is a line on stderr. The answer does not depend on indexes.
    """
    chosen = chosen_format(form, settings)
    if chosen is Format.ARROW and is_terminal(sys.stdout):
        raise UsageError("Arrow is not for reading", hint="send it into a file: … > rows.arrow")
    output = settings.output
    asked = source.read(output)

    from omnigraph.graph import open as open_graph

    clock = SystemClock()
    with open_graph(source.place) as graph:
        started_s = clock.monotonic_s()
        with asked.named():
            result = state.view(graph).query(
                asked.text,
                asked.params,
                name=asked.name,
                engine=engine,
                timeout_s=timeout_s,
                memory_bytes=memory_bytes,
            )
        elapsed_s = clock.monotonic_s() - started_s
        output.rows(result, chosen, pinned=state.pinned, elapsed_s=elapsed_s)
