"""Comments between two tokens, sorted by how they stand: behind, on lines of their own, in front.

    comments -> [remarks] -> pretty

    a = 1  // behind
    // on a line of its own
    /* in front */ b = 2

A text that is laid out again keeps each comment in its sort, so doing it twice changes nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.lang.layout import Comment, Concat, Doc, Text
from omnigraph.lang.source import Source, Span

_EMPTY_LINE = re.compile(r"\n[ \t\r]*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Comments of one line."""

    doc: Doc
    blank_before: bool
    """Whether an empty line separates it from what stands before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarks:
    """All comments between two tokens."""

    behind: Remark | None
    """On the line of the token before, with a line end behind it."""
    own: tuple[Remark, ...]
    front: Remark | None
    """On the line of the token that follows."""
    blank_after: bool
    """Whether an empty line separates the line of the token that follows from what is before."""

    @property
    def end_line(self) -> bool:
        """Whether a line has to end here."""
        return self.behind is not None or bool(self.own)


class RemarkFinder:
    """Finds the comments of a text by place."""

    def __init__(self, source: Source, comments: Sequence[Span]) -> None:
        self._source = source
        self._text = source.text
        self._comments = comments
        self._starts = [c.start for c in comments]

    def any_between(self, start: int, end: int) -> bool:
        """Whether a comment starts between these offsets."""
        return bisect_left(self._starts, start) < bisect_left(self._starts, end)

    def between(self, start: int, end: int, *, token_before: bool = True) -> Remarks:
        """The comments from the end of one token, or the start of the text, to the next token.

        Only white space, comments and commas stand between these offsets. The end of the text
        counts as a line end.
        """
        first, last = bisect_left(self._starts, start), bisect_left(self._starts, end)
        groups: list[tuple[str, list[Span]]] = []
        at = start
        for comment in self._comments[first:last]:
            space = self._text[at : comment.start]
            if "\n" in space or not groups:
                groups.append((space, [comment]))
            else:
                groups[-1][1].append(comment)
            at = comment.end
        space_after = self._text[at:end]
        remarks = [self._remark(group, space) for space, group in groups]
        behind = front = None
        blank_after = _EMPTY_LINE.search(space_after) is not None
        if remarks and "\n" not in space_after and end < len(self._text):
            front = remarks.pop()
            blank_after = front.blank_before
        if remarks and "\n" not in groups[0][0] and token_before:
            behind = remarks.pop(0)
        return Remarks(behind=behind, own=tuple(remarks), front=front, blank_after=blank_after)

    def _remark(self, comments: Sequence[Span], space_before: str) -> Remark:
        parts: list[Doc] = []
        for comment in comments:
            if parts:
                parts.append(Text(" "))
            _, column = self._source.position(comment.start)
            lines = self._text[comment.start : comment.end].split("\n")
            parts.append(Comment("\n".join(line.rstrip() for line in lines), column - 1))
        blank_before = _EMPTY_LINE.search(space_before) is not None
        return Remark(doc=Concat(parts), blank_before=blank_before)
