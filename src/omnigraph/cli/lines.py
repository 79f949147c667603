"""An answer as people read it: lines of styled parts, and what several answers have in common.

    value -> texts -> [lines] -> output -> stdout

A part is a text, or a text with a style. Nothing is printed here, and rich is not needed: a style
is a word that only a terminal understands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.show.text import cell_count, one_line, printable

if TYPE_CHECKING:
    from omnigraph.manifest.snapshot import GraphCommit, TableChange

Part = str | tuple[str, str]
"""Text, or text and style."""
Line = list[Part]

ID_STYLE = "yellow"
QUIET_STYLE = "bright_black"
NAME_STYLE = "cyan"
"""Of types and of actors."""
INSERTED, UPDATED, DELETED = "green", "blue", "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLook:
    """What suits the place where an answer is read."""

    width: int | None = None
    """Cells of a line on a terminal; None is a pipe, where nothing is cut."""
    ascii_only: bool = False
    """The stream has no other characters."""
    quiet: bool = False
    """Only what was asked for: not a word about what was done."""

    @property
    def arrow(self) -> str:
        """From one value to another."""
        return "->" if self.ascii_only else "→"

    @property
    def ellipsis(self) -> str:
        """Where something is cut."""
        return "..." if self.ascii_only else "…"

    @property
    def rule(self) -> str:
        """Between the head of a table and its rows."""
        return "-" if self.ascii_only else "─"


# ---------------------------------------------------------------- lines


def plain(line: Line) -> str:
    """The text of a line, without what is blank at its end."""
    # A tab that came with a text is as wide as rich makes it on a terminal.
    text = "".join(part if isinstance(part, str) else part[0] for part in line)
    return text.expandtabs(8).rstrip()


def columns(
    rows: Sequence[Sequence[Part | Line]], *, right: Collection[int] = (), gap: str = "  "
) -> Iterator[Line]:
    """Rows with their cells below each other; ``right`` are the columns that end alike."""
    table = [[cell if isinstance(cell, list) else [cell] for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    for row in table:
        line: Line = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - _width(cell))
            line += [gap] if number else []
            line += [space, *cell] if number in right else [*cell, space]
        yield line


def _width(cell: Line) -> int:
    return sum(cell_count(part if isinstance(part, str) else part[0]) for part in cell)


def fact_lines(facts: Sequence[tuple[str, str | None]]) -> Iterator[Line]:
    """A line for every fact that is known, the values below each other."""
    known = [(f"{label}:", value) for label, value in facts if value is not None]
    width = max((len(label) for label, _ in known), default=0)
    for label, value in known:
        yield [(f"{label:<{width}} ", QUIET_STYLE), value]


def indented(words: str | None) -> Iterator[Line]:
    """A message or a description below the facts, if there is one."""
    if words:
        yield []
        for line in printable(words).split("\n"):
            yield [f"    {line}"]


def type_lines(changes: Mapping[str, TableChange]) -> Iterator[Line]:
    """A line a type: how many of its entities changed."""
    return columns(
        [
            [(f"  {one_line(key.partition(':')[2])}", NAME_STYLE), change_parts({key: change})]
            for key, change in changes.items()
        ]
    )


# ---------------------------------------------------------------- parts of lines


def commit_parts(commit: GraphCommit) -> Line:
    """``commit 01JZ… on main``."""
    return ["commit ", (commit.id, ID_STYLE), f" on {one_line(commit.branch)}"]


def change_parts(changes: Mapping[str, TableChange]) -> Line:
    """``+2 ~1 -3``: inserted, updated, deleted; what is zero is left out."""
    totals = [
        ("+", INSERTED, sum(c.inserted for c in changes.values())),
        ("~", UPDATED, sum(c.updated for c in changes.values())),
        ("-", DELETED, sum(c.deleted for c in changes.values())),
    ]
    parts: Line = []
    for sign, style, count in totals:
        if count:
            parts += [" " if parts else "", (f"{sign}{count:,}", style)]
    return parts


def commit_line(commit: GraphCommit, changes: Mapping[str, TableChange]) -> Line:
    """The commit that was made, and how much it changed."""
    return [*commit_parts(commit), "  ", *change_parts(changes)]


# ---------------------------------------------------------------- words


def first_line(text: str | None) -> str:
    """The beginning of a text of several lines."""
    first, *rest = (text or "").strip().split("\n")
    return one_line(first.rstrip()) + (" …" if rest else "")


def or_dash(text: str | None) -> str:
    """A name that may be missing, on one line."""
    return one_line(text) if text else "-"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """``1 row``, ``2 rows``, ``1,000 entities``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size_text(size: int) -> str:
    """``312 B``, ``4.1 KB``, ``2.0 GB``."""
    units = ("B", "KB", "MB", "GB", "TB")
    power = min((len(str(size)) - 1) // 3, len(units) - 1)
    return f"{size / 1000**power:.1f} {units[power]}" if power else f"{size} B"


def when_text(micros: int) -> str:
    """``2026-11-15 10:30:00Z``."""
    from omnigraph.manifest.snapshot import moment_text

    return moment_text(micros)


def took(elapsed_s: float | None) -> str:
    """`` in 0.21 s``; nothing if times are not shown."""
    return "" if elapsed_s is None else f" in {duration(elapsed_s)}"


def duration(seconds: float) -> str:
    """``0.21 s``, ``12.3 s``, ``3 min 05 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"
