"""The commit graph as text: lanes, commits, and the names that branches and tags give them.

graph.log -> [log_text] -> output
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from omnigraph.cli.branch_text import BRANCH_STYLE, TAG_STYLE
from omnigraph.cli.lanes import LaneRow, draw
from omnigraph.cli.streams import one_line
from omnigraph.cli.text import ID_STYLE, QUIET_STYLE, change_parts, first_line, when_text

if TYPE_CHECKING:
    from omnigraph.branch.history import LoggedCommit

_COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
"""Of lanes, over and over again."""


def log_text(log: Sequence[LoggedCommit], *, graph: bool, ascii_only: bool = False) -> Text:
    """One line a commit; with ``graph`` behind the lanes."""
    return Text("\n").join(_lines(log, graph=graph, ascii_only=ascii_only))


def _lines(log: Sequence[LoggedCommit], *, graph: bool, ascii_only: bool) -> Iterator[Text]:
    if not graph:
        yield from map(_commit, log)
        return
    found = {entry.commit.id: entry for entry in log}
    history = [(entry.commit.id, entry.parents) for entry in log]
    for row in draw(history, ascii_only=ascii_only):
        line = _lanes(row)
        if row.commit_id is not None:
            line.append(" ").append_text(_commit(found[row.commit_id]))
        line.rstrip()
        yield line


def _lanes(row: LaneRow) -> Text:
    line = Text()
    for character, colour in zip(row.text, row.colours, strict=True):
        line.append(character, _COLOURS[colour % len(_COLOURS)] if colour >= 0 else "")
    return line


def _commit(entry: LoggedCommit) -> Text:
    commit = entry.commit
    line = Text(commit.id, ID_STYLE)
    names = [(one_line(name), BRANCH_STYLE) for name in entry.branches]
    names += [(f"tag: {one_line(name)}", TAG_STYLE) for name in entry.tags]
    if names:
        shown = Text(", ").join(Text(name, style) for name, style in names)
        line.append(" (").append_text(shown).append(")")
    line.append(f"  {when_text(commit.created_at_us)}", QUIET_STYLE)
    if commit.actor:
        line.append(f"  {one_line(commit.actor)}", "cyan")
    line.append(f"  {commit.kind}")
    if change := change_parts(commit.changes):
        line.append("  ").append_text(Text.assemble(*change))
    if commit.message:
        line.append(f"  {first_line(commit.message)}")
    return line
