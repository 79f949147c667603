"""`omnigraph query`, `explain`, `mutate` and `lint`: what is done with the text of queries."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.answers import Explained, Linted
from omnigraph.cli.command import command, said_store, target, target_options
from omnigraph.cli.options import (
    RowFormat,
    branch_option,
    chosen_format,
    commit_options,
    engine_option,
    format_option,
    if_commit_option,
    limit_options,
    text_option,
)
from omnigraph.cli.settings import Settings, fail_if
from omnigraph.cli.sources import (
    STDIN,
    Asked,
    StateAsked,
    read_text,
    source_options,
    state_options,
)
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind
from omnigraph.work_time import WorkClock

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog


@command(
    "query",
    "omnigraph query ./fleet -e 'match { $v: Vessel } return { $v.name, $v.flag }'",
    "omnigraph query ./fleet calls_of --query fleet.gq --param imo=9300001",
    "omnigraph query ./fleet --query - --format csv < report.gq > report.csv",
    "omnigraph query ./fleet calls_of --query fleet.gq --params '{\"imo\": 9300001}' --json",
    "omnigraph query ./fleet --query all.gq --commit 01jz8y6n2d --format arrow > rows.arrow",
    "omnigraph query ./fleet --query all.gq --at main@2026-11-15",
    "omnigraph query s3://lake/fleet --query totals.gq --engine spark",
    on_graph=False,
)
@source_options
@state_options
@format_option
@engine_option(
    "local",
    "spark",
    help="local: this process. spark: for questions about more than it can hold; same answer.",
)
@limit_options
def query_command(
    settings: Settings,
    asked: Asked,
    state: StateAsked,
    form: str | None,
    **options: Any,
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
    if chosen is RowFormat.ARROW and is_terminal(sys.stdout):
        raise UsageError("Arrow is not for reading", hint="send it into a file: … > rows.arrow")

    from omnigraph.cli.rows import QueryRows

    with settings.graph() as graph, WorkClock() as clock:
        started_s = clock.monotonic_s()
        result = asked.ask(state.view(graph).query, **options)
        elapsed_s = clock.monotonic_s() - started_s
        settings.show(QueryRows(result, chosen, pinned=state.pinned, elapsed_s=elapsed_s))


@command(
    "explain",
    "omnigraph explain ./fleet -e 'match { $v: Vessel } return { count($v) }'",
    "omnigraph explain ./fleet calls_of --query fleet.gq --param imo=9300001 --analyze",
    "omnigraph explain ./fleet -e 'match { $v: Vessel } return { $v.name }' --at v1.0",
    on_graph=False,
)
@source_options
@state_options
@click.option(
    "--analyze",
    is_flag=True,
    help="Run it, and say how many rows, milliseconds and requests each step took.",
)
@limit_options
def explain_command(settings: Settings, asked: Asked, state: StateAsked, **options: Any) -> None:
    """Show how a query is run, step by step.

    The last step stands first; what it takes its rows from is indented below it. Without --analyze
    nothing is run, and parameters need no values.
    """
    with settings.graph() as graph:
        view = state.view(graph)
        found = asked.ask(view.explain, **options)
        commit = view.commit.id if state.pinned else None
        settings.show(Explained(explanation=found, branch=view.branch, commit=commit))


@command(
    "mutate",
    "omnigraph mutate ./fleet -e 'update Vessel set { flag: \"no\" } where imo = 9300001'",
    "omnigraph mutate ./fleet add_port --query fleet.gq --param code=OSL --as alice",
    "omnigraph mutate ./fleet -e 'delete Port where code = \"AAR\"' --if-commit 01JZ8Y6N2D…",
    on_graph=False,
)
@source_options
@branch_option
@if_commit_option
@commit_options
def mutate_command(settings: Settings, asked: Asked, **options: Any) -> None:
    """Insert, update or delete with a query, as one commit.

    All statements of the query are published together or not at all, checked against the schema. A
    mutation that changes nothing makes no commit.

    \b
    With --json the answer is
      {"branch", "query_name", "affected_nodes", "affected_edges", "actor_id", "commit"}
    """
    with settings.graph(writing=True) as graph, WorkClock() as clock:
        started_s = clock.monotonic_s()
        result = asked.ask(graph.mutate, **options)
        settings.show(result, result.commit, elapsed_s=clock.monotonic_s() - started_s)


@command(
    "lint",
    "omnigraph lint ./fleet --query fleet.gq",
    "omnigraph lint --schema fleet.pg --query reads.gq --query writes.gq",
    "omnigraph lint --schema fleet.pg --query fleet.gq --json | jq '.files[].queries[].name'",
    on_graph=False,
)
@target_options
@text_option(
    "--query",
    "files",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A .gq file, or - for stdin. May be repeated.",
)
@text_option(
    "--schema",
    metavar="FILE",
    help="The schema, a .pg file, instead of that of a graph; - for stdin.",
)
@state_options
@click.option("--describe", is_flag=True, help="Say also what each query takes, gives and touches.")
def lint_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    files: tuple[str, ...],
    schema: str | None,
    state: StateAsked,
    describe: bool,
) -> None:
    """Check files of queries against a schema, without running them.

    The schema is that of a graph, now or in an earlier state, or a .pg file. Every finding is shown
    at its place. Warnings are about what is legal and probably not meant; only errors make the exit
    code 1. With --json the answer describes every valid query: parameters, result columns, types it
    reads and writes.
    """
    if (*files, schema).count(STDIN) > 1:
        raise UsageError("stdin is named twice", hint="give - once")
    catalog = _catalog(settings, uri, store, schema, state)
    texts = [read_text(name, TextKind.QUERY, settings) for name in files]

    from omnigraph.query.lint import lint

    reports = [lint(text, catalog, name=name) for text, name in texts]
    settings.show(Linted(reports=reports, describe=describe))
    fail_if(any(r.status == "error" for r in reports))


def _catalog(
    settings: Settings, uri: str | None, store: str | None, schema: str | None, state: StateAsked
) -> Catalog:
    if schema is not None:
        # A graph that only the environment names is not asked for here.
        if uri is not None or said_store() is not None or state.said:
            raise UsageError("a graph and --schema are both given", hint="give one of them")
        from omnigraph.schema.compile import compile_schema

        text, name = read_text(schema, TextKind.SCHEMA, settings)
        return compile_schema(text, source_name=name)
    if uri is None and store is None:
        raise UsageError("no schema is named", hint="give a graph, or a .pg file with --schema")
    settings.place = target(uri, store)
    with settings.graph() as graph:
        return state.view(graph).catalog
