"""Commits as people see them: in a list, one by one, in a graph of lanes, after a reset.

The graph is drawn like `git log --graph`. Each line of development is a lane, which stays in its
column from where it begins to where it ends; an empty column is used again. A commit with two
parents, and two lines that come from one commit, are drawn as a row of their own between commits:

    * m        m has the parents b and c
    ├─╮
    │ * c
    * │ b
    ├─╯        both come from a
    * a
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from omnigraph.cli.answers import RefChange
from omnigraph.cli.lines import (
    ID_STYLE,
    NAME_STYLE,
    QUIET_STYLE,
    Line,
    TextLook,
    change_parts,
    columns,
    commit_line,
    count_text,
    fact_lines,
    first_line,
    indented,
    or_dash,
    type_lines,
    when_text,
)
from omnigraph.cli.streams import one_line

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.branch.history import LoggedCommit
    from omnigraph.branch.tags import Tag
    from omnigraph.cli.answers import (
        BranchChanged,
        BranchDetails,
        BranchNames,
        CommitList,
        CommitLog,
        ResetDone,
        TagChanged,
        TagList,
    )
    from omnigraph.manifest.snapshot import GraphCommit


COMMIT: Final = "*"
_ASCII = str.maketrans("│─├┤┼╮╯", "|-+++\\/")
_COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
"""Of lanes, over and over again."""


def commit_list(found: CommitList, look: TextLook) -> Iterator[Line]:
    """One line a commit, like `git log --oneline`."""
    if not found.commits:
        yield ["No commits match."]
        return
    yield from columns(
        [
            [
                (c.id, ID_STYLE),
                (when_text(c.created_at_us), QUIET_STYLE),
                (or_dash(c.actor), NAME_STYLE),
                str(c.kind),
                change_parts(c.changes),
                first_line(c.message),
            ]
            for c in found.commits
        ]
    )


def commit(found: GraphCommit, look: TextLook) -> Iterator[Line]:
    """Everything about one commit."""
    yield ["commit ", (found.id, ID_STYLE)]
    yield from fact_lines(
        [
            ("branch", one_line(found.branch)),
            ("version", str(found.manifest_version)),
            ("parent", found.parent_id or "- (the first commit)"),
            ("merged", found.merged_parent_id),
            ("actor", or_dash(found.actor)),
            ("date", when_text(found.created_at_us)),
            ("kind", found.kind),
        ]
    )
    yield from indented(found.message)
    if found.changes:
        yield []
        yield from type_lines(found.changes)


def commit_log(found: CommitLog, look: TextLook) -> Iterator[Line]:
    """One line a commit, drawn behind the lanes if that is asked for."""
    if not found.drawn:
        yield from map(_logged, found.log)
        return
    entries = {entry.commit.id: entry for entry in found.log}
    history = [(entry.commit.id, entry.parents) for entry in found.log]
    for row in draw(history, ascii_only=look.ascii_only):
        line = _lanes(row)
        if row.commit_id is not None:
            line += [" ", *_logged(entries[row.commit_id])]
        yield line


def _lanes(row: LaneRow) -> Line:
    return [
        (character, _COLOURS[colour % len(_COLOURS)]) if colour >= 0 else character
        for character, colour in zip(row.text, row.colours, strict=True)
    ]


def _logged(entry: LoggedCommit) -> Line:
    commit = entry.commit
    line: Line = [(commit.id, ID_STYLE)]
    names = [(one_line(name), BRANCH_STYLE) for name in entry.branches]
    names += [(f"tag: {one_line(name)}", TAG_STYLE) for name in entry.tags]
    for number, name in enumerate(names):
        line += [", " if number else " (", name]
    line.append(")" if names else "")
    line.append((f"  {when_text(commit.created_at_us)}", QUIET_STYLE))
    if commit.actor:
        line.append((f"  {one_line(commit.actor)}", NAME_STYLE))
    line.append(f"  {commit.kind}")
    if change := change_parts(commit.changes):
        line += ["  ", *change]
    if commit.message:
        line.append(f"  {first_line(commit.message)}")
    return line


def reset_done(done: ResetDone, look: TextLook) -> Iterator[Line]:
    """Where a branch stands now, and what it left behind."""
    branch = one_line(done.branch)
    if done.commit is None:
        yield [f"No change: {branch} is at commit {done.target_commit} already"]
        return
    target = (done.target_commit, ID_STYLE)
    yield [("Reset", "green"), f" {branch} to commit ", target, f"; {_left(done.left_behind)}"]
    yield commit_line(done.commit, done.commit.changes)


def _left(count: int) -> str:
    if not count:
        return "no commit is left behind"
    return f"{count_text(count, 'commit')} {'is' if count == 1 else 'are'} left behind"


# ---------------------------------------------------------------- lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRow:
    """One line of the drawing."""

    text: str
    colours: tuple[int, ...]
    """Which line of development each character belongs to, by a number; -1 is none."""
    commit_id: str | None = None
    """The commit that stands in this line, if one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lane:
    """A line of development on its way down."""

    waits_for: str
    """The next commit in it."""
    colour: int


def draw(
    history: Iterable[tuple[str, Sequence[str]]], *, ascii_only: bool = False
) -> list[LaneRow]:
    """Rows for commits in an order that has each before its parents; parents may be left out."""
    return list(_Drawing(ascii_only).rows(history))


class _Drawing:
    """The lanes as they are between two commits; None is an empty column."""

    def __init__(self, ascii_only: bool) -> None:
        self._lanes: list[_Lane | None] = []
        self._begun = 0
        self._ascii_only = ascii_only

    def rows(self, history: Iterable[tuple[str, Sequence[str]]]) -> Iterator[LaneRow]:
        for commit_id, parents in history:
            column = self._column_of(commit_id)
            if column is None:
                column = self._begin(commit_id, after=-1)
            yield self._row({column: COMMIT}, commit_id=commit_id)
            yield from self._go_on(column, list(dict.fromkeys(parents)))

    def _go_on(self, column: int, parents: Sequence[str]) -> Iterator[LaneRow]:
        """From a commit to its parents."""
        lane = self._lanes[column]
        if not parents or lane is None:
            self._end(column)
            return
        for merged in parents[1:]:
            other = self._column_of(merged)
            if other is None:
                other = self._begin(merged, after=column)
                yield self._bridge(column, other, "╮")
            else:
                yield self._bridge(column, other, "┤")
        first = self._column_of(parents[0])
        self._lanes[column] = _Lane(waits_for=parents[0], colour=lane.colour)
        if first is not None:
            # Two lanes lead to one commit: the one further left goes on.
            left, right = sorted((first, column))
            yield self._bridge(left, right, "╯")
            self._end(right)

    def _column_of(self, commit_id: str) -> int | None:
        for column, lane in enumerate(self._lanes):
            if lane is not None and lane.waits_for == commit_id:
                return column
        return None

    def _begin(self, commit_id: str, *, after: int) -> int:
        """A new lane in the first empty column behind another one."""
        lane = _Lane(waits_for=commit_id, colour=self._begun)
        self._begun += 1
        for column in range(after + 1, len(self._lanes)):
            if self._lanes[column] is None:
                self._lanes[column] = lane
                return column
        self._lanes.append(lane)
        return len(self._lanes) - 1

    def _end(self, column: int) -> None:
        self._lanes[column] = None
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()

    def _bridge(self, one: int, other: int, corner: str) -> LaneRow:
        """A row that joins two lanes; ``corner`` is drawn where the right one is."""
        left, right = sorted((one, other))
        drawn = {left: "├", right: corner}
        for column in range(left + 1, right):
            drawn[column] = "─" if self._lanes[column] is None else "┼"
        # The lane that begins, ends or is joined gives the colour.
        lane = self._lanes[max(one, other)]
        return self._row(drawn, between=(left, right), colour=lane.colour if lane else -1)

    def _row(
        self,
        drawn: dict[int, str],
        *,
        between: tuple[int, int] = (0, 0),
        colour: int = -1,
        commit_id: str | None = None,
    ) -> LaneRow:
        characters: list[str] = []
        colours: list[int] = []
        left, right = between
        for column, lane in enumerate(self._lanes):
            if column:
                inside = left < column <= right
                characters.append("─" if inside else " ")
                colours.append(colour if inside else -1)
            passing = " " if lane is None else "│"
            characters.append(drawn.get(column, passing))
            own = -1 if lane is None else lane.colour
            colours.append(colour if drawn.get(column) == "─" else own)
        text = "".join(characters)
        return LaneRow(
            text=text.translate(_ASCII) if self._ascii_only else text,
            colours=tuple(colours),
            commit_id=commit_id,
        )


# -- branches --------------------------------------------------------------------------------------
# Branches and tags as people see them.


BRANCH_STYLE = "bold green"
TAG_STYLE = "bold magenta"


def branch_names(found: BranchNames, look: TextLook) -> Iterator[Line]:
    """One name a line."""
    for name in found.names:
        yield [one_line(name)]


def branch_details(found: BranchDetails, look: TextLook) -> Iterator[Line]:
    """One line a branch: its newest commit with time and actor, its parent."""
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
    between = "; it named commit " if done.change is RefChange.DELETED else " at commit "
    word = (str(done.change).capitalize(), "green")
    name = (one_line(done.tag.name), TAG_STYLE)
    yield [word, " tag ", name, between, (done.tag.commit_id, ID_STYLE)]
