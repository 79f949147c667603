"""Branches and tags as people see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.answers import RefChange
from omnigraph.cli.lines import (
    ID_STYLE,
    NAME_STYLE,
    QUIET_STYLE,
    Line,
    TextLook,
    columns,
    fact_lines,
    first_line,
    indented,
    or_dash,
    when_text,
)
from omnigraph.cli.streams import one_line

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.branch.tags import Tag
    from omnigraph.cli.answers import (
        BranchChanged,
        BranchDetails,
        BranchNames,
        TagChanged,
        TagList,
    )

BRANCH_STYLE = "bold green"
TAG_STYLE = "bold magenta"


def branch_names(found: BranchNames, look: TextLook) -> Iterator[Line]:
    """One name a line."""
    for name in found.names:
        yield [one_line(name)]


def branch_details(found: BranchDetails, look: TextLook) -> Iterator[Line]:
    """One line a branch: its newest commit, when and by whom it was made, its parent."""
    return columns(
        [
            [
                (one_line(b.name), BRANCH_STYLE),
                (b.head.id, ID_STYLE),
                (when_text(b.head.created_at_us), QUIET_STYLE),
                (or_dash(b.head.actor), NAME_STYLE),
                f"from {one_line(b.parent)}" if b.parent else "-",
                first_line(b.description),
            ]
            for b in found.branches
        ]
    )


def branch(found: BranchInfo, look: TextLook) -> Iterator[Line]:
    """Everything about one branch."""
    head = found.head
    by = f" by {one_line(head.actor)}" if head.actor else ""
    yield ["branch ", (one_line(found.name), BRANCH_STYLE)]
    yield from fact_lines(
        [
            ("commit", f"{head.id}  {when_text(head.created_at_us)}  {head.kind}{by}"),
            ("version", str(found.manifest_version)),
            ("parent", one_line(found.parent) if found.parent else None),
            ("fork", found.fork_commit),
            ("created", when_text(found.created_at_us) if found.created_at_us else None),
            ("actor", one_line(found.actor) if found.actor else None),
        ]
    )
    yield from indented(found.description)


def branch_changed(done: BranchChanged, look: TextLook) -> Iterator[Line]:
    """What was done to a branch."""
    if look.quiet:
        return
    found = done.branch
    name = (one_line(found.name), BRANCH_STYLE)
    at = (found.head.id, ID_STYLE)
    word = (str(done.change).capitalize(), "green")
    match done.change:
        case RefChange.CREATED:
            yield [word, " branch ", name, f" from {or_dash(found.parent)} at commit ", at]
        case RefChange.DELETED:
            yield [word, " branch ", name, "; its newest commit was ", at]
        case RefChange.RENAMED:
            yield [word, f" branch {or_dash(done.former_name)} to ", name]
        case RefChange.DESCRIBED:
            what = first_line(found.description) if found.description else "no description"
            yield [word, " branch ", name, f": {what}"]


def tag_list(found: TagList, look: TextLook) -> Iterator[Line]:
    """One line a tag."""
    if not found.tags:
        yield ["No tags."]
        return
    yield from columns(
        [
            [
                (one_line(t.name), TAG_STYLE),
                (t.commit_id, ID_STYLE),
                (when_text(t.created_at_us), QUIET_STYLE),
                (or_dash(t.actor), NAME_STYLE),
                first_line(t.message),
            ]
            for t in found.tags
        ]
    )


def tag(found: Tag, look: TextLook) -> Iterator[Line]:
    """Everything about one tag."""
    yield ["tag ", (one_line(found.name), TAG_STYLE)]
    yield from fact_lines(
        [
            ("commit", found.commit_id),
            ("created", when_text(found.created_at_us)),
            ("actor", one_line(found.actor) if found.actor else None),
        ]
    )
    yield from indented(found.message)


def tag_changed(done: TagChanged, look: TextLook) -> Iterator[Line]:
    """What was done to a tag."""
    if not look.quiet:
        between = "; it named commit " if done.change is RefChange.DELETED else " at commit "
        word = (str(done.change).capitalize(), "green")
        name = (one_line(done.tag.name), TAG_STYLE)
        yield [word, " tag ", name, between, (done.tag.commit_id, ID_STYLE)]
