"""`omnigraph load`: files into a graph, as one commit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

import click

from omnigraph.cli.confirm import ask, can_ask, needs_yes
from omnigraph.cli.interrupts import answered, hush_libraries
from omnigraph.cli.meter import Unit
from omnigraph.cli.new_branch import branch_for
from omnigraph.cli.options import (
    WORDS,
    actor_option,
    branch_option,
    common_options,
    durability_option,
    examples,
    json_option,
    message_option,
    not_empty,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import is_terminal, one_line
from omnigraph.clock import SystemClock
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.input.streams import GivenStream

STDIN = "-"


@click.command(
    "load",
    epilog=examples(
        "omnigraph load ./fleet --data vessels.jsonl --data calls.jsonl --mode append",
        "omnigraph load ./fleet --data new.jsonl --mode merge --as alice --message 'June'",
        "omnigraph load ./fleet --data dump.jsonl.gz --mode overwrite",
        "sqlite3 -csv -header port.db 'select * from calls' | \\\n"
        "    omnigraph load ./fleet --data - --type CallsAt --mode append",
        "omnigraph load ./fleet --data june.jsonl --mode merge --branch june --from main",
        "omnigraph load ./fleet --data calls.parquet --type CallsAt --mode append --dry-run",
        "omnigraph load ./fleet --data s3://lake/june/ --mode merge --rejects rejects.jsonl",
    ),
)
@target_options
@click.option(
    "--data",
    "files",
    type=WORDS,
    multiple=True,
    required=True,
    metavar="FILE",
    help="A JSONL file, or with --type a CSV, TSV, Parquet or Arrow file; a folder, a pattern, an "
    "s3:// path, - for stdin; also packed with gzip or zstd. May be repeated: all files are one "
    "commit.",
)
@click.option(
    "--type",
    "type_name",
    type=WORDS,
    metavar="NAME",
    help="The node or edge type that CSV, TSV, Parquet and Arrow files hold.",
)
@click.option(
    "--mode",
    type=click.Choice(["append", "merge", "overwrite"]),
    required=True,
    help="append: insert, refuse ids that exist. merge: insert or replace. "
    "overwrite: the data becomes the whole content of every type it mentions.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "local", "spark"]),
    default="auto",
    show_default=True,
    help="local: this process. spark: for more than it can hold. auto: by the size of the input.",
)
@click.option(
    "--rejects",
    type=WORDS,
    metavar="FILE",
    help="Write everything that is wrong with the data here, one JSON object a line.",
)
@click.option("--dry-run", is_flag=True, help="Check everything, publish nothing.")
@branch_option
@click.option(
    "--from",
    "start",
    type=WORDS,
    metavar="TARGET",
    callback=not_empty,
    help="If there is no branch of the name in --branch, make it from this branch, tag, commit, "
    "version or moment. It goes again if nothing is published.",
)
@message_option
@actor_option
@durability_option
@click.option("--yes", is_flag=True, help="Overwrite on a remote store without asking.")
@json_option
@common_options
@click.pass_obj
def load_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    files: tuple[str, ...],
    type_name: str | None,
    mode: str,
    engine: str,
    rejects: str | None,
    dry_run: bool,
    branch: str,
    start: str | None,
    message: str | None,
    actor: str | None,
    durability: str,
    yes: bool,
) -> None:
    """Load data into a graph as one commit.

    Everything is checked against the schema before anything is published; either all of it is
    published or nothing. Findings name the file and the line.

    \b
    A line of JSONL is one of
      {"type": "Vessel", "data": {...}}
      {"edge": "CallsAt", "from": ID, "to": ID, "data": {...}}
    """
    place = target(uri, store)
    if files.count(STDIN) > 1:
        raise UsageError("stdin is named twice", hint="give --data - once")
    if STDIN in files and engine == "spark":
        raise UsageError("Spark reads files, not stdin", hint="write it to a file first")
    if start is not None and branch.strip() == "main":
        raise UsageError("--from makes a branch, and main is there", hint="name it with --branch")
    if mode == "overwrite" and not yes and not dry_run:
        _confirm(settings, place, stdin_is_free=STDIN not in files)

    from omnigraph.graph import open as open_graph

    hush_libraries()
    output = settings.output
    clock = SystemClock()
    with open_graph(place, durability=durability) as graph:
        if STDIN in files and is_terminal(sys.stdin):
            output.notice("reading from the terminal; end with Ctrl-D")
        source = _source(files)
        started_s = clock.monotonic_s()
        settings.writing = not dry_run
        new = branch_for(graph, branch, start, actor=actor, dry_run=dry_run)
        with new as written, output.meter("reading", _size(source), Unit.BYTES) as meter:
            result = graph.load(
                source,
                mode=mode,
                type=type_name,
                branch=written.branch,
                actor=actor,
                message=message,
                progress=meter.advance_to,
                phases=meter.show_phase,
                engine=engine,
                rejects=rejects,
                dry_run=dry_run,
            )
        settings.published = result.commit.id if result.commit else None
        result = replace(result, base_branch=written.base)
        output.loaded(result, clock.monotonic_s() - started_s)
        answered()


def _source(files: Sequence[str]) -> list[str | GivenStream]:
    """What to load."""
    return [_stdin() if name == STDIN else name for name in files]


def _stdin() -> GivenStream:
    from omnigraph.input.streams import GivenStream

    if cast("TextIO | None", sys.stdin) is None:
        raise UsageError("stdin is closed", hint="give the path of a file")
    return GivenStream(name="<stdin>", open=lambda: cast(BinaryIO, sys.stdin.buffer))


def _size(source: Sequence[str | GivenStream]) -> int | None:
    """The size of files on this machine, for the meter; on a bucket it is not worth a request."""
    from omnigraph.input.sources import sort_out

    if any(not isinstance(name, str) or name.startswith("s3://") for name in source):
        return None
    return sort_out(source).size_bytes


def _confirm(settings: Settings, place: str, *, stdin_is_free: bool) -> None:
    """Replacing content on a store that others share wants a second look."""
    from omnigraph.storage.location import locate

    if locate(place).is_local:
        return
    if not stdin_is_free or not can_ask(settings):
        raise needs_yes(f"overwriting {place}", "it is not on this machine")
    ask(settings, f"Replace every type that the data mentions in {one_line(place)}?")
