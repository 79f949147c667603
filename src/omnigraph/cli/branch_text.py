"""Branches and tags as text for people, as rich renderables; nothing is printed here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from omnigraph.cli.ref_change import RefChange, ResetDone
from omnigraph.cli.streams import one_line
from omnigraph.cli.text import (
    ID_STYLE,
    QUIET_STYLE,
    change_parts,
    commit_line,
    count_text,
    fact_lines,
    first_line,
    indented,
    when_text,
)

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.branch.tags import Tag

BRANCH_STYLE = "bold green"
TAG_STYLE = "bold magenta"


def branch_details_text(branches: Sequence[BranchInfo]) -> Text:
    """One line a branch: its newest commit, when that was, by whom, where it came from."""
    return _aligned(
        [
            [
                Text(one_line(b.name), BRANCH_STYLE),
                Text(b.head.id, ID_STYLE),
                Text(when_text(b.head.created_at_us), QUIET_STYLE),
                Text(one_line(b.head.actor) if b.head.actor else "-", "cyan"),
                Text(f"from {one_line(b.parent)}" if b.parent else "-"),
                Text(first_line(b.description) if b.description else ""),
            ]
            for b in branches
        ]
    )


def branch_text(branch: BranchInfo) -> Text:
    """Everything about one branch."""
    head = branch.head
    by = f" by {one_line(head.actor)}" if head.actor else ""
    rows = [
        ("commit", f"{head.id}  {when_text(head.created_at_us)}  {head.kind}{by}"),
        ("version", str(branch.manifest_version)),
        ("parent", one_line(branch.parent) if branch.parent else None),
        ("fork", branch.fork_commit),
        ("created", when_text(branch.created_at_us) if branch.created_at_us else None),
        ("actor", one_line(branch.actor) if branch.actor else None),
    ]
    text = Text.assemble("branch ", (one_line(branch.name), BRANCH_STYLE)) + fact_lines(rows)
    return text.append(indented(branch.description)) if branch.description else text


def branch_changed_text(change: RefChange, branch: BranchInfo, former_name: str | None) -> Text:
    """What was done to a branch."""
    name = (one_line(branch.name), BRANCH_STYLE)
    at = (branch.head.id, ID_STYLE)
    match change:
        case RefChange.CREATED:
            source = f" from {one_line(branch.parent or '-')} at commit "
            return Text.assemble(("Created", "green"), " branch ", name, source, at)
        case RefChange.DELETED:
            last = "; its newest commit was "
            return Text.assemble(("Deleted", "green"), " branch ", name, last, at)
        case RefChange.RENAMED:
            former = f" branch {one_line(former_name or '-')} to "
            return Text.assemble(("Renamed", "green"), former, name)
        case RefChange.DESCRIBED:
            what = first_line(branch.description) if branch.description else "no description"
            return Text.assemble(("Described", "green"), " branch ", name, f": {what}")


def tags_text(tags: Sequence[Tag]) -> Text:
    """One line a tag."""
    if not tags:
        return Text("No tags.")
    return _aligned(
        [
            [
                Text(one_line(t.name), TAG_STYLE),
                Text(t.commit_id, ID_STYLE),
                Text(when_text(t.created_at_us), QUIET_STYLE),
                Text(one_line(t.actor) if t.actor else "-", "cyan"),
                Text(first_line(t.message) if t.message else ""),
            ]
            for t in tags
        ]
    )


def tag_text(tag: Tag) -> Text:
    """Everything about one tag."""
    rows = [
        ("commit", tag.commit_id),
        ("created", when_text(tag.created_at_us)),
        ("actor", one_line(tag.actor) if tag.actor else None),
    ]
    text = Text.assemble("tag ", (one_line(tag.name), TAG_STYLE)) + fact_lines(rows)
    return text.append(indented(tag.message)) if tag.message else text


def tag_changed_text(change: RefChange, tag: Tag) -> Text:
    """What was done to a tag."""
    between = "; it named commit " if change is RefChange.DELETED else " at commit "
    word = (str(change).capitalize(), "green")
    name = (one_line(tag.name), TAG_STYLE)
    return Text.assemble(word, " tag ", name, between, (tag.commit_id, ID_STYLE))


def reset_text(done: ResetDone) -> Text:
    """Where a branch stands now, and what it left behind."""
    branch = one_line(done.branch)
    if done.commit is None:
        return Text(f"No change: {branch} is at commit {done.target_commit} already")
    return Text.assemble(
        ("Reset", "green"),
        f" {branch} to commit ",
        (done.target_commit, ID_STYLE),
        f"; {left_behind_text(done.left_behind)}\n",
        *commit_line(done.commit),
        "  ",
        *change_parts(done.commit.changes),
    )


def left_behind_text(count: int) -> str:
    """``3 commits are left behind``."""
    if not count:
        return "no commit is left behind"
    return f"{count_text(count, 'commit')} {'is' if count == 1 else 'are'} left behind"


def _aligned(rows: Sequence[Sequence[Text]]) -> Text:
    """Rows with their columns below each other."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    lines: list[Text] = []
    for row in rows:
        line = Text()
        for cell, width in zip(row, widths, strict=True):
            line.append_text(cell).append(" " * (width - cell.cell_len + 2))
        line.rstrip()
        lines.append(line)
    return Text("\n").join(lines)
