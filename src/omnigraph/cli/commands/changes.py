"""`omnigraph changes`: what commits changed, one after the other."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import click

from omnigraph.cli.files import whole_file
from omnigraph.cli.interrupts import answered
from omnigraph.cli.meter import SilentMeter, Unit
from omnigraph.cli.options import (
    HELP_NAMES,
    WORDS,
    Command,
    Family,
    branch_option,
    common_options,
    examples,
    json_option,
    not_empty,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import is_terminal, stdout_writer
from omnigraph.errors import UsageError

STDOUT = ("-", "/dev/stdout")


@click.group(
    "changes",
    cls=Family,
    usual="poll",
    context_settings=HELP_NAMES,
    epilog=examples(
        "omnigraph changes poll ./fleet --start beginning",
        "omnigraph changes baseline ./fleet --output fleet.jsonl",
    ),
)
@json_option
@common_options
def changes_group() -> None:
    """Read what changed, commit by commit.

    Every change has the entity as it was and as it is. A cursor says how far a reader has come:
    store it when your work is done, and go on with it in any later call.
    """


def _filter_options(command: Command) -> Command:
    """Which changes; a cursor is good for the filter that it was made with."""
    command = click.option(
        "--op",
        "ops",
        type=click.Choice(["insert", "update", "delete"]),
        multiple=True,
        help="Only entities that were inserted, updated or deleted. May be repeated.",
    )(command)
    command = click.option(
        "--type",
        "types",
        type=WORDS,
        multiple=True,
        metavar="NAME",
        help="Only this node or edge type. May be repeated.",
    )(command)
    return click.option(
        "--kind",
        "kinds",
        type=click.Choice(["node", "edge"]),
        multiple=True,
        help="Only nodes or only edges.",
    )(command)


def _begin_options(command: Command) -> Command:
    """Where to begin."""
    command = click.option(
        "--cursor",
        type=WORDS,
        metavar="CURSOR",
        callback=not_empty,
        help="Go on where an earlier call, or a baseline, ended.",
    )(command)
    return click.option(
        "--start",
        type=WORDS,
        metavar="START",
        callback=not_empty,
        help="Begin now, at the beginning, or after a commit of the branch (after:ID).  "
        "[default: now]",
    )(command)


def _page_options(command: Command) -> Command:
    """How much at a time."""
    command = click.option(
        "--max-bytes",
        type=click.IntRange(1, 32 << 20),
        metavar="N",
        help="So many bytes of changes on a page.  [default: 4 MiB, at most 32 MiB]",
    )(command)
    return click.option(
        "--max-changes",
        type=click.IntRange(1, 8192),
        metavar="N",
        help="So many changes on a page.  [default: 1000, at most 8192]",
    )(command)


_page_token = click.option(
    "--page-token",
    type=WORDS,
    metavar="TOKEN",
    callback=not_empty,
    help="The next page, by the token of the page before.",
)
_max_commits = click.option(
    "--max-commits",
    type=click.IntRange(1, 512),
    metavar="N",
    help="Look at so many commits in one poll.  [default: 128, at most 512]",
)


@changes_group.command(
    "poll",
    epilog=examples(
        "omnigraph changes poll ./fleet --start beginning",
        "omnigraph changes poll ./fleet --cursor cZT9… --json",
        "omnigraph changes poll ./fleet --start after:01JZ8Y6N2D --type Vessel --op delete",
    ),
)
@target_options
@branch_option
@_begin_options
@_page_token
@_filter_options
@_max_commits
@_page_options
@json_option
@common_options
@click.pass_obj
def poll_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    start: str | None,
    cursor: str | None,
    page_token: str | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    max_commits: int | None,
    max_changes: int | None,
    max_bytes: int | None,
) -> None:
    """Show what happened on a branch since an earlier poll.

    One block for each commit along first parents, oldest first. A poll ends where the branch stands
    when it begins; a long one comes in pages. Only the last page has the cursor, so whoever stores
    it has seen every commit before it as a whole.

    With --json each block is a line, and the last line is
    {"cursor", "caught_up"} or {"next_page_token"}.
    """
    place = target(uri, store)

    from omnigraph.cli.changes_output import FeedPrinter
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        page = graph.changes.poll(
            branch=branch,
            start=start,
            cursor=cursor,
            page_token=page_token,
            kinds=kinds,
            types=types,
            ops=ops,
            max_commits=max_commits,
            max_changes=max_changes,
            max_bytes=max_bytes,
        )
        printer = FeedPrinter(as_json=settings.json)
        printer.blocks(page.blocks)
        printer.ending(page)
        answered()


@changes_group.command(
    "follow",
    epilog=examples(
        "omnigraph changes follow ./fleet",
        "omnigraph changes follow ./fleet --start beginning --until-caught-up --json > feed.jsonl",
        "omnigraph changes follow ./fleet --cursor cZT9… --type Vessel --json | ./index-vessels",
    ),
)
@target_options
@branch_option
@_begin_options
@_filter_options
@click.option("--until-caught-up", is_flag=True, help="End when the branch has no more commits.")
@click.option(
    "--interval",
    "interval_s",
    type=click.FloatRange(min=0),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait before asking again.",
)
@_page_options
@json_option
@common_options
@click.pass_obj
def follow_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    start: str | None,
    cursor: str | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    until_caught_up: bool,
    interval_s: float,
    max_changes: int | None,
    max_bytes: int | None,
) -> None:
    """Show what happens on a branch, as it happens.

    Goes on until it is interrupted, and then tells the cursor with which to go on. With --json each
    block is a line, and a line {"cursor", "caught_up"} follows whenever everything before it is
    complete. A commit of many changes comes in several blocks, all but the last with "continued".
    """
    place = target(uri, store)

    from omnigraph.cli.changes_output import FeedPrinter
    from omnigraph.graph import open as open_graph

    printer = FeedPrinter(as_json=settings.json)
    with open_graph(place) as graph:
        feed = graph.changes.follow(
            branch=branch,
            start=start,
            cursor=cursor,
            kinds=kinds,
            types=types,
            ops=ops,
            until_caught_up=until_caught_up,
            interval_s=interval_s,
            max_changes=max_changes,
            max_bytes=max_bytes,
        )
        try:
            for page in feed.pages():
                printer.blocks(page.blocks)
                if settings.json and page.cursor is not None:
                    printer.ending(page)
        except KeyboardInterrupt:
            settings.output.notice(f"go on with --cursor {feed.cursor}")
            raise
        if not settings.json:
            settings.output.notice(f"caught up; go on with --cursor {feed.cursor}")
        answered()


@changes_group.command(
    "baseline",
    epilog=examples(
        "omnigraph changes baseline ./fleet --output fleet.jsonl > cursor.txt",
        "omnigraph changes baseline ./fleet --type Vessel --output vessels.jsonl --json",
    ),
)
@target_options
@branch_option
@_filter_options
@click.option(
    "--output",
    type=WORDS,
    metavar="FILE",
    help="Write to a file, which appears only when it is complete and on disk.  [default: stdout]",
)
@json_option
@common_options
@click.pass_obj
def baseline_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    output: str | None,
) -> None:
    """Write a branch as JSONL, with the cursor that goes on from there.

    The data is that of an export of one moment. Its last line is
    {"baseline": {"snapshot_commit_id", "resume_cursor"}}. With --output the cursor is printed, too,
    when the file is safely there.
    """
    place = target(uri, store)
    path = None if output is None or output in STDOUT else Path(output)
    if path is None and settings.json:
        raise UsageError("the data is on stdout already", hint="with --json, give --output too")

    from omnigraph.cli.changes_output import FeedPrinter
    from omnigraph.graph import open as open_graph

    said = settings.output
    with open_graph(place) as graph:
        mixed = path is None and is_terminal(sys.stdout)
        meter = SilentMeter() if mixed else said.meter("writing", None, Unit.ENTITIES)
        with _stdout() if path is None else whole_file(path) as out, meter:
            made = graph.changes.baseline(
                out, branch=branch, kinds=kinds, types=types, ops=ops, progress=meter.advance_to
            )
    if path is not None:
        printer = FeedPrinter(as_json=settings.json)
        if settings.json:
            printer.record({"output": str(path), "rows": made.rows, **made.to_dict()})
        else:
            said.notice(f"{made.rows:,} entities of commit {made.commit_id} are in {path}")
            printer.text(made.cursor)
    answered()


@changes_group.command(
    "show",
    epilog=examples(
        "omnigraph changes show 01JZ8Y6N2D ./fleet",
        "omnigraph changes show 01JZ8Y6N2D ./fleet --op delete --json | jq '.changes[].id'",
    ),
)
@click.argument("commit_id", type=WORDS, metavar="COMMIT")
@target_options
@click.option(
    "--branch",
    type=WORDS,
    metavar="NAME",
    help="The branch that has the commit.  [default: main, then any]",
)
@_page_token
@_filter_options
@_page_options
@json_option
@common_options
@click.pass_obj
def show_command(
    settings: Settings,
    commit_id: str,
    uri: str | None,
    store: str | None,
    branch: str | None,
    page_token: str | None,
    kinds: tuple[str, ...],
    types: tuple[str, ...],
    ops: tuple[str, ...],
    max_changes: int | None,
    max_bytes: int | None,
) -> None:
    """Show what one commit changed against its first parent.

    The beginning of an id is enough. Many changes come in pages. With --json a page is one line
    {"cause", "changes", "next_page_token"}.
    """
    if not commit_id.strip():
        raise UsageError("the commit id is empty", hint="'omnigraph commit list' shows the commits")
    place = target(uri, store)

    from omnigraph.cli.changes_output import FeedPrinter
    from omnigraph.graph import open as open_graph

    with open_graph(place) as graph:
        block = graph.changes.commit(
            commit_id,
            branch=branch,
            kinds=kinds,
            types=types,
            ops=ops,
            page_token=page_token,
            max_changes=max_changes,
            max_bytes=max_bytes,
        )
        printer = FeedPrinter(as_json=settings.json)
        printer.blocks([block])
        if block.next_page_token is not None and not settings.json:
            printer.text(f"next page: {block.next_page_token}")
        answered()


@contextmanager
def _stdout() -> Generator[BinaryIO]:
    with stdout_writer("write to a file with --output") as writer:
        yield cast(BinaryIO, writer)
