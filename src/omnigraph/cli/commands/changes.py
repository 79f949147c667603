"""`omnigraph diff` and `omnigraph changes`: what differs between states, what commits changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.answers import Exported
from omnigraph.cli.command import command, family, target_options, words_and_target
from omnigraph.cli.options import (
    all_of,
    branch_option,
    commit_argument,
    kinds_option,
    not_empty,
    ops_option,
    text_argument,
    text_option,
    types_option,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import whole_file
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.branch.diff import Diff
    from omnigraph.cli.texts.changes import Wanted


@command(
    "diff",
    "omnigraph diff main june ./fleet",
    "omnigraph diff HEAD~2 ./fleet",
    "omnigraph diff main@12 main ./fleet --stat",
    "omnigraph diff v1.0 main ./fleet --type Vessel --op update --limit 20",
    "omnigraph diff main@2026-11-15 main ./fleet --json | jq -r 'select(.op == \"delete\").id'",
    on_graph=False,
)
@text_argument("before", metavar="[FROM]", required=False)
@text_argument("after", metavar="[TO]", required=False)
@target_options
@types_option
@kinds_option
@ops_option
@click.option("--stat", is_flag=True, help="Only how many entities of each type changed.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the first N entities.  [default: 1000 on a terminal, else all]",
)
@text_option(
    "--arrow",
    "arrow_file",
    metavar="FILE",
    help="Write the entities to a file as an Arrow IPC stream, images as JSON; it appears only "
    "when it is complete.",
)
def diff_command(
    settings: Settings,
    before: str | None,
    after: str | None,
    uri: str | None,
    store: str | None,
    stat: bool,
    arrow_file: str | None,
    **options: Any,
) -> None:
    """Show what changed from one state of a graph to another.

    A state is a branch (main), a tag, a commit or the beginning of its id, a version of a branch
    (main@12), so many commits before another (HEAD~2, main~1), or a branch at a moment
    (main@2026-11-15T10:00Z, main@yesterday). Without TO it is main, without FROM the commit before
    main's newest. A word that is a graph's folder or an address is the graph.

    First come the counts, then every entity: nodes before edges, by type and id. Entities are
    inserted (+), updated (~) with the values before and after, or deleted (-).

    With --json there is one line with the two states and the counts, then one line for
    each entity with its images.
    """
    if stat and arrow_file is not None:
        raise UsageError(
            "--stat shows no entities and --arrow writes them", hint="give one of them"
        )

    from omnigraph.cli.texts.changes import DiffShown, Wanted

    wanted = Wanted(**options)
    words, settings.place = words_and_target([before, after, uri], store)
    before, after = {0: ("main~1", "main"), 1: (*words, "main"), 2: (*words,)}[len(words)]
    with settings.graph() as graph:
        found = graph.diff(before, after)
        if arrow_file is None:
            settings.show(DiffShown(found, wanted, stat=stat))
        else:
            rows = _write_arrow(found, wanted, Path(arrow_file))
            document = {"format": "arrow", "rows": rows, "diff": wanted.head(found)}
            settings.show(Exported(place=arrow_file, rows=rows, document=document))


def _write_arrow(diff: Diff, wanted: Wanted, path: Path) -> int:
    """All changes as an Arrow IPC stream in a file; returns how many there are."""
    from omnigraph.branch.changes import ARROW_SCHEMA
    from omnigraph.cli.rows import ipc_chunks

    facts = {"from_commit_id": diff.before.head.id, "to_commit_id": diff.after.head.id}
    written: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for piece, take in wanted.pieces(diff):
            written.append(take)
            yield piece.batch().slice(0, take).replace_schema_metadata(facts)

    with whole_file(path) as out:
        for chunk in ipc_chunks(ARROW_SCHEMA.with_metadata(facts), batches()):
            out.write(chunk)
    return sum(written)


# ---------------------------------------------------------------- the feed


@family(
    "changes",
    "omnigraph changes poll ./fleet --start beginning",
    "omnigraph changes baseline ./fleet --output fleet.jsonl",
    usual="poll",
)
def changes_group() -> None:
    """Read what changed, commit by commit.

    Every change has the entity as it was and as it is. A cursor says how far a reader has come:
    store it when your work is done, and go on with it in any later call.
    """


_filter_options = all_of(kinds_option, types_option, ops_option)
"""Which changes; a cursor is good for the filter that it was made with."""
_begin_options = all_of(
    text_option(
        "--start",
        metavar="START",
        callback=not_empty,
        help="Begin now, at the beginning, or after a commit of the branch (after:ID).  "
        "[default: now]",
    ),
    text_option(
        "--cursor",
        metavar="CURSOR",
        callback=not_empty,
        help="Go on where an earlier call, or a baseline, ended.",
    ),
)
_page_options = all_of(
    click.option(
        "--max-changes",
        type=click.IntRange(1, 8192),
        metavar="N",
        help="So many changes on a page.  [default: 1000, at most 8192]",
    ),
    click.option(
        "--max-bytes",
        type=click.IntRange(1, 32 << 20),
        metavar="N",
        help="So many bytes of changes on a page.  [default: 4 MiB, at most 32 MiB]",
    ),
)
_page_token = text_option(
    "--page-token",
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


@command(
    "poll",
    "omnigraph changes poll ./fleet --start beginning",
    "omnigraph changes poll ./fleet --cursor cZT9… --json",
    "omnigraph changes poll ./fleet --start after:01JZ8Y6N2D --type Vessel --op delete",
    into=changes_group,
)
@branch_option
@_begin_options
@_page_token
@_filter_options
@_max_commits
@_page_options
def poll_command(settings: Settings, **options: Any) -> None:
    """Show what happened on a branch since an earlier poll.

    One block for each commit along first parents, oldest first. A poll ends where the branch stands
    when it begins; a long one comes in pages. Only the last page has the cursor, so a reader that
    stores it has seen every commit before it as a whole.

    With --json each block is a line, and the last line is
    {"cursor", "caught_up"} or {"next_page_token"}.
    """
    from omnigraph.cli.texts.changes import FeedPart

    with settings.graph() as graph:
        page = graph.changes.poll(**options)
        if page.next_page_token is not None:
            last = f"next page: {page.next_page_token}"
        else:
            rest = "caught up" if page.caught_up else "there is more"
            last = f"{rest}; cursor: {page.cursor}"
        settings.show(FeedPart(page.blocks, record=page.ending(), last_line=last))


@command(
    "follow",
    "omnigraph changes follow ./fleet",
    "omnigraph changes follow ./fleet --start beginning --until-caught-up --json > feed.jsonl",
    "omnigraph changes follow ./fleet --cursor cZT9… --type Vessel --json | ./index-vessels",
    into=changes_group,
)
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
def follow_command(settings: Settings, **options: Any) -> None:
    """Show what happens on a branch, as it happens.

    Goes on until it is interrupted, and then prints the cursor with which to go on. With --json
    each block is a line, and a line {"cursor", "caught_up"} follows whenever everything before it
    is complete. A commit of many changes comes in several blocks, all but the last with
    "continued".
    """
    from omnigraph.cli.texts.changes import FeedPart

    with settings.graph() as graph:
        feed = graph.changes.follow(**options)
        try:
            for page in feed.pages():
                ending = page.ending() if page.cursor is not None else None
                # Not the last answer: Ctrl-C goes on interrupting.
                settings.output.show(FeedPart(page.blocks, record=ending))
        except KeyboardInterrupt:
            settings.output.notice(f"go on with --cursor {feed.cursor}")
            raise
        settings.output.notice(f"caught up; go on with --cursor {feed.cursor}")


@command(
    "baseline",
    "omnigraph changes baseline ./fleet --output fleet.jsonl > cursor.txt",
    "omnigraph changes baseline ./fleet --type Vessel --output vessels.jsonl --json",
    into=changes_group,
)
@branch_option
@_filter_options
@text_option(
    "--output",
    metavar="FILE",
    help="Write to a file, which appears only when it is complete and on disk.  [default: stdout]",
)
def baseline_command(settings: Settings, output: str | None, **options: Any) -> None:
    """Write a branch as JSONL, with the cursor that goes on from there.

    The data is that of an export of one moment. Its last line is
    {"baseline": {"snapshot_commit_id", "resume_cursor"}}. With --output the cursor is printed, too,
    when the file is safely there.
    """
    path = settings.data_path(output)

    from omnigraph.cli.texts.changes import FeedPart

    with settings.graph() as graph, settings.data_sink(path, "writing") as (out, meter):
        made = graph.changes.baseline(out, **options, progress=meter.advance_to)
    if path is not None:
        settings.output.notice(f"{made.rows:,} entities of commit {made.commit_id} are in {path}")
        record = {"output": str(path), "rows": made.rows, **made.to_dict()}
        settings.show(FeedPart(record=record, last_line=made.cursor))


@command(
    "show",
    "omnigraph changes show 01JZ8Y6N2D ./fleet",
    "omnigraph changes show 01JZ8Y6N2D ./fleet --op delete --json | jq '.changes[].id'",
    into=changes_group,
)
@commit_argument("COMMIT")
@_page_token
@_filter_options
@_page_options
def show_command(settings: Settings, commit_id: str, **options: Any) -> None:
    """Show what one commit changed against its first parent.

    The beginning of an id is enough. Many changes come in pages. With --json a page is one line
    {"cause", "changes", "next_page_token"}.
    """
    from omnigraph.cli.texts.changes import FeedPart

    with settings.graph() as graph:
        block = graph.changes.commit(commit_id, **options)
        token = block.next_page_token
        last = f"next page: {token}" if token is not None else None
        settings.show(FeedPart([block], last_line=last))
