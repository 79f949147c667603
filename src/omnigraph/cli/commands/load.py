"""`omnigraph load`: files into a graph, as one commit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import command
from omnigraph.cli.data_files import DataFiles
from omnigraph.cli.meter import MeterUnit
from omnigraph.cli.options import (
    branch_option,
    commit_options,
    engine_option,
    not_empty,
    text_option,
)
from omnigraph.cli.settings import Settings, needs_yes
from omnigraph.cli.sources import STDIN, STDIN_NAME
from omnigraph.cli.streams import one_line
from omnigraph.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ErrorKind,
    OmnigraphError,
    UsageError,
)
from omnigraph.work_time import WorkClock

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.branch.control import BranchInfo
    from omnigraph.choices import AutoEngineWord, LoadModeWord
    from omnigraph.input.streams import GivenStream


@command(
    "load",
    "omnigraph load ./fleet --data vessels.jsonl --data calls.jsonl --mode append",
    "omnigraph load ./fleet --data new.jsonl --mode merge --as alice --message 'June'",
    "omnigraph load ./fleet --data dump.jsonl.gz --mode overwrite",
    "sqlite3 -csv -header port.db 'select * from calls' | \\\n"
    "    omnigraph load ./fleet --data - --type CallsAt --mode append",
    "omnigraph load ./fleet --data june.jsonl --mode merge --branch june --from main",
    "omnigraph load ./fleet --data calls.parquet --type CallsAt --mode append --dry-run",
    "omnigraph load ./fleet --data Vessel=vessels.csv --data Port=ports.parquet --mode append \\\n"
    "    --map Vessel.imo=imo_number --map Vessel.name=vessel",
    "omnigraph load ./fleet --data s3://lake/june/ --mode merge --rejects rejects.jsonl",
)
@text_option(
    "--data",
    "files",
    multiple=True,
    required=True,
    metavar="[TYPE=]FILE",
    help="A JSONL file, or with its type a CSV, TSV, Parquet or Arrow file; a folder, a pattern, "
    "an s3:// path, - for stdin; also packed with gzip or zstd. May be repeated: all files are one "
    "commit.",
)
@text_option(
    "--type",
    metavar="NAME",
    help="The node or edge type that CSV, TSV, Parquet and Arrow files hold, if it is one.",
)
@text_option(
    "--map",
    "columns",
    multiple=True,
    metavar="[TYPE.]PROPERTY=COLUMN",
    help="The column that fills a property, where names differ; of a type that has one, exactly "
    "the columns that are named are read. The ends of an edge are src and dst. May be repeated.",
)
@click.option(
    "--mode",
    type=click.Choice(["append", "merge", "overwrite"]),
    required=True,
    help="append: insert, refuse ids that exist. merge: insert or replace. "
    "overwrite: the data becomes the whole content of every type it mentions.",
)
@engine_option(
    "auto",
    "local",
    "spark",
    help="local: this process. spark: for more than it can hold. auto: by the size of the input.",
)
@text_option(
    "--rejects",
    metavar="FILE",
    help="Write everything that is wrong with the data here, one JSON object a line.",
)
@click.option("--dry-run", is_flag=True, help="Check everything, publish nothing.")
@branch_option
@text_option(
    "--from",
    "start",
    metavar="TARGET",
    callback=not_empty,
    help="If there is no branch of the name in --branch, make it from this branch, tag, commit, "
    "version or moment. It is deleted again if nothing is published.",
)
@commit_options
@click.option("--yes", is_flag=True, help="Overwrite on a remote store without asking.")
def load_command(
    settings: Settings,
    files: tuple[str, ...],
    type: str | None,
    columns: tuple[str, ...],
    mode: LoadModeWord,
    engine: AutoEngineWord,
    dry_run: bool,
    branch: str,
    start: str | None,
    actor: str | None,
    yes: bool,
    **options: Any,
) -> None:
    """Load data into a graph as one commit.

    Everything is checked against the schema before anything is published; either all of it is
    published or nothing. Findings name the file and the line.

    \b
    A line of JSONL is one of
      {"type": "Vessel", "data": {...}}
      {"edge": "CallsAt", "from": ID, "to": ID, "data": {...}}
    """
    data = DataFiles.of(files, type)
    mapping = data.mapping(columns, type)
    files = tuple(data.paths)
    if files.count(STDIN) > 1:
        raise UsageError("stdin is named twice", hint="give --data - once")
    if STDIN in files and engine == "spark":
        raise UsageError("Spark reads files, not stdin", hint="write it to a file first")
    if start is not None and branch.strip() == "main":
        raise UsageError("--from makes a branch, and main is there", hint="name it with --branch")
    if mode == "overwrite" and not yes and not dry_run:
        _confirm(settings, stdin_is_free=STDIN not in files)
    with settings.graph() as graph, WorkClock() as clock:
        source = data.source(lambda: _stdin(settings))
        started_s = clock.monotonic_s()
        settings.writing = not dry_run
        new = _branch_for(graph, branch, start, actor=actor, dry_run=dry_run)
        measured = settings.output.meter("reading", _size(files), MeterUnit.BYTES)
        with new as written, measured as meter:
            result = graph.load(
                source,
                type=type,
                mapping=mapping,
                mode=mode,
                branch=written.branch,
                actor=actor,
                progress=meter.advance_to,
                phases=meter.show_phase,
                engine=engine,
                dry_run=dry_run,
                **options,
            )
        result = replace(result, base_branch=written.base)
        settings.show(result, result.commit, elapsed_s=clock.monotonic_s() - started_s)


def _stdin(settings: Settings) -> GivenStream:
    from omnigraph.input.streams import GivenStream

    stdin = settings.stdin("give the path of a file")
    return GivenStream(name=STDIN_NAME, open=lambda: stdin)


def _size(files: Sequence[str]) -> int | None:
    """The size of files on this machine, for the meter; on a bucket it is not worth a request."""
    from omnigraph.input.sources import sort_out
    from omnigraph.storage.location import BUCKETS

    if any(name == STDIN or name.startswith(BUCKETS) for name in files):
        return None
    return sort_out(files).size_bytes


def _confirm(settings: Settings, *, stdin_is_free: bool) -> None:
    """Ask before the content of a store is replaced that others may share."""
    from omnigraph.storage.location import locate

    place = settings.place
    if locate(place).is_local:
        return
    if not stdin_is_free or not settings.can_ask():
        raise needs_yes(f"overwriting {place}", "it is not on this machine")
    settings.ask(f"Replace every type that the data mentions in {one_line(place)}?")


# ---------------------------------------------------------------- a branch for it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """Where a command writes."""

    branch: str
    base: str | None = None
    """The branch it was made from, if it was made by this command."""


@contextmanager
def _branch_for(
    graph: Graph, branch: str, start: str | None, *, actor: str | None, dry_run: bool
) -> Generator[_Written]:
    """The branch to write to, made from ``start`` if there is none of this name.

    When the block fails, a branch that was made here is deleted, unless it was written to by then.
    """
    made = None if start is None else _made(graph, branch.strip(), start, actor, dry_run=dry_run)
    if made is None:
        yield _Written(branch=branch)
        return
    if dry_run:
        yield _Written(branch=made.name)
        return
    try:
        yield _Written(branch=made.name, base=made.parent)
    except CommitUnknownError:
        raise  # The data may be there: nothing is deleted.
    except BaseException:
        with suppress(OmnigraphError):
            graph.branches.delete(made.name, if_commit=made.head.id)
        raise


def _made(
    graph: Graph, branch: str, start: str, actor: str | None, *, dry_run: bool
) -> BranchInfo | None:
    """The new branch; in a dry run the one that it would start from. None if it exists."""
    view = graph.at(start)  # A wrong target fails in any case.
    if branch in graph.branches:
        return None
    if dry_run:
        base = graph.branches.show(view.branch)
        if base.head.id != view.commit.id:
            raise UsageError(
                f"a dry run cannot check against {start}: no branch shows it",
                hint="make the branch first: omnigraph branch create",
            )
        return base
    try:
        return graph.branches.create(branch, start, actor=actor)
    except AlreadyExistsError as e:
        if e.kind is not ErrorKind.BRANCH_EXISTS:
            raise
        return None  # Another process made it just now.
