"""Documents: text with places where a line may end, and the choice which of them do.

    tokens, comments -> pretty -> [document] -> text

A group stays on one line if it fits and nothing in it insists on a line end; otherwise all its own
places break. This is the well-known scheme of Wadler and Oppen, in its smallest form.
"""

from __future__ import annotations

from collections.abc import Iterable

WIDTH = 100
INDENT = 4


class Doc:
    """A piece of a document. ``hard`` says that it contains a line end in any case."""

    __slots__ = ("hard",)

    def __init__(self, *, hard: bool) -> None:
        self.hard = hard


class Text(Doc):
    """Characters as they are. One with a line end in it, a long string, counts as hard."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        super().__init__(hard="\n" in text)
        self.text = text


class Comment(Doc):
    """A comment, which stood at ``column``; its further lines move along with the first."""

    __slots__ = ("column", "text")

    def __init__(self, text: str, column: int) -> None:
        super().__init__(hard="\n" in text)
        self.text = text
        self.column = column


class Suffix(Doc):
    """Comments at the end of a line: they never make the line too long."""

    __slots__ = ("inner",)

    def __init__(self, inner: Doc) -> None:
        super().__init__(hard=inner.hard)
        self.inner = inner


class Line(Doc):
    """A line end where the group breaks, ``flat`` where it does not."""

    __slots__ = ("flat",)

    def __init__(self, flat: str) -> None:
        super().__init__(hard=False)
        self.flat = flat


class Hard(Doc):
    """A line end in any case, with an empty line if ``blank``."""

    __slots__ = ("blank",)

    def __init__(self, *, blank: bool = False) -> None:
        super().__init__(hard=True)
        self.blank = blank


class Concat(Doc):
    """One after the other."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Doc]) -> None:
        self.parts = tuple(parts)
        super().__init__(hard=any(p.hard for p in self.parts))


class Nest(Doc):
    """Line ends inside are followed by a deeper indent."""

    __slots__ = ("inner",)

    def __init__(self, inner: Doc) -> None:
        super().__init__(hard=inner.hard)
        self.inner = inner


class LayoutGroup(Doc):
    """Breaks at all its places or at none; ``broken`` if it has to."""

    __slots__ = ("broken", "inner")

    def __init__(self, inner: Doc, *, broken: bool = False) -> None:
        super().__init__(hard=inner.hard or broken)
        self.inner = inner
        self.broken = self.hard


class Headed(Doc):
    """A header and its block: a header on several lines has a block on several lines."""

    __slots__ = ("block", "head")

    def __init__(self, head: Doc, block: Doc) -> None:
        super().__init__(hard=head.hard or block.hard)
        self.head = head
        self.block = block


_Job = tuple[int, bool, Doc]
"""Indent, whether places break, and what to print."""


def render(doc: Doc, column: int = 0) -> str:
    """The document as text that starts at a column, without a line end behind it."""
    out: list[str] = []
    jobs: list[_Job] = [(0, True, doc)]
    while jobs:
        indent, breaks, top = jobs.pop()
        match top:
            case Text():
                out.append(top.text)
                column = _column_after(column, top.text)
            case Comment():
                text = _shifted(top.text, column - top.column)
                out.append(text)
                column = _column_after(column, text)
            case Suffix():
                jobs.append((indent, breaks, top.inner))
            case Concat():
                jobs.extend((indent, breaks, part) for part in reversed(top.parts))
            case Nest():
                jobs.append((indent + INDENT, breaks, top.inner))
            case LayoutGroup():
                fits = not top.broken and _fits(WIDTH - column, top.inner, jobs)
                jobs.append((indent, not fits, top.inner))
            case Headed():
                # The block behind it may break, so the header needs room up to its brace only.
                rest = [*jobs, (indent, True, top.block)]
                fits = not top.head.hard and _fits(WIDTH - column, top.head, rest)
                block = (
                    top.block if fits or not isinstance(top.block, LayoutGroup) else top.block.inner
                )
                jobs += [(indent, True, block), (indent, not fits, top.head)]
            case Line() if not breaks:
                out.append(top.flat)
                column += len(top.flat)
            case Line() | Hard():
                blank = isinstance(top, Hard) and top.blank
                out.append(("\n\n" if blank else "\n") + " " * indent)
                column = indent
            case _:
                raise TypeError(f"no document: {top!r}")
    return "".join(out)


def _fits(room: int, doc: Doc, rest: list[_Job]) -> bool:
    """Whether this and what follows up to the next line end have room on the line."""
    jobs: list[tuple[bool, Doc]] = [(False, doc)]
    at = len(rest)
    while room >= 0:
        if not jobs:
            if at == 0:
                return True
            at -= 1
            jobs.append((rest[at][1], rest[at][2]))
        breaks, top = jobs.pop()
        match top:
            case Text() | Comment():
                room -= len(top.text.partition("\n")[0])
                if top.hard:
                    return room >= 0
            case Concat():
                jobs.extend((breaks, part) for part in reversed(top.parts))
            case Nest():
                jobs.append((breaks, top.inner))
            case Headed():
                jobs += [(breaks, top.block), (breaks, top.head)]
            case LayoutGroup():
                # A group behind the one in question can still break at its first place.
                jobs.append((breaks, top.inner))
            case Line() if not breaks:
                room -= len(top.flat)
            case Line() | Hard():
                return True
            case _:
                continue
    return False


def _column_after(column: int, text: str) -> int:
    _, newline, last = text.rpartition("\n")
    return len(last) if newline else column + len(text)


def _shifted(text: str, columns: int) -> str:
    """Further lines of a comment moved as far as its first line was."""
    first, *further = text.split("\n")
    if columns >= 0:
        moved = [" " * columns + line if line else line for line in further]
    else:
        moved = [line[min(-columns, len(line) - len(line.lstrip(" \t"))) :] for line in further]
    return "\n".join([first, *moved])
