"""`omnigraph import`: data that no schema describes yet becomes a graph."""

from __future__ import annotations

from contextlib import ExitStack

from omnigraph.cli.command import command
from omnigraph.cli.commands.graph import ask_about_the_place
from omnigraph.cli.data_files import DataFiles
from omnigraph.cli.options import actor_option, durability_option, text_option, yes_option
from omnigraph.cli.settings import Settings
from omnigraph.cli.sources import schema_source
from omnigraph.cli.streams import one_line
from omnigraph.work_time import WorkClock


@command(
    "import",
    "omnigraph import ./friends --data friends.graphml",
    "omnigraph import ./movies --data nodes.csv --data rels.csv",
    "omnigraph import ./fleet --data ./kuzu-export --schema edited.pg",
)
@text_option(
    "--data",
    "files",
    multiple=True,
    required=True,
    metavar="[TYPE=]FILE",
    help="A GraphML file; CSV files of Neo4j, with headers such as :ID and :START_ID; the folder "
    "of Kuzu's EXPORT DATABASE as CSV; also what 'schema infer' takes. May be repeated.",
)
@text_option(
    "--schema",
    metavar="FILE",
    help="The schema, if the inferred one was edited: 'schema infer' prints it for the same data.",
)
@actor_option
@durability_option
@yes_option
def import_command(
    settings: Settings, files: tuple[str, ...], schema: str | None, actor: str | None, yes: bool
) -> None:
    """Create a graph from data, with a schema that is inferred from it.

    Infers the schema, creates the graph and loads everything as one commit. Types come from what
    the data says: the attribute type, labels or label in GraphML, labels in Neo4j, tables in Kuzu.
    All of it is read into memory.
    """
    from omnigraph.api.opening import init
    from omnigraph.infer.schema import infer_schema

    given = schema_source(schema, settings) if schema is not None else None
    inferred = infer_schema(DataFiles.of(files, None, mixed=True).named())
    ask_about_the_place(settings, yes=yes, can_ask=True)
    settings.writing = settings.creating = True
    with ExitStack() as stack:
        text = given if given is not None else inferred.schema
        graph = stack.enter_context(
            init(settings.place, text, actor=actor, durability=settings.durability)
        )
        clock = stack.enter_context(WorkClock())
        started_s = clock.monotonic_s()
        settings.output.notice(f"Created {one_line(graph.uri)}")
        result = graph.load(inferred.source, mapping=inferred.mapping or None, actor=actor)
        settings.show(result, result.commit, elapsed_s=clock.monotonic_s() - started_s)
