"""Lays out a valid text again: tokens and comments in, the canonical text out.

    tokens, comments, marks -> [pretty] -> document -> text

Knows brackets, lists, blocks of items and comments, and neither language. What the tokens mean to
a language, as far as layout goes, is said by ``TextMarks``.

A block in braces stays on one line if it was written on one and fits; its items stand on lines of
their own otherwise, with at most one empty line between two of them. Lists in parentheses and
brackets break when they do not fit, and nowhere else. Commas stand between items, never behind the
last one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from omnigraph.errors import InternalError
from omnigraph.lang.cursor import Token, TokenKind
from omnigraph.lang.layout import (
    Comment,
    Concat,
    Doc,
    Hard,
    Headed,
    LayoutGroup,
    Line,
    Nest,
    Suffix,
    Text,
    render,
)
from omnigraph.lang.lexer import comments, tokenize
from omnigraph.lang.source import Source, Span

BETWEEN_ITEMS = "  "
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_TIGHT_BEFORE = frozenset({",", ":", ".", "?", ")", "]", ".."})
_TIGHT_BEHIND = frozenset({"(", "[", ".", "@", "-", ".."})


@dataclass(frozen=True, slots=True, kw_only=True)
class TextMarks:
    """What a language says about its tokens, each named by the offset it starts at."""

    items: frozenset[int]
    """First tokens of items: of blocks, and of the text as a whole."""
    separators: Mapping[int, str]
    """What separates the items of the block that opens here, on one line. A comma stays on several
    lines; white space does not. Two spaces if not said."""
    glued: frozenset[int]
    """Tokens without a space before them."""
    plain: frozenset[int]
    """Braces that enclose no items, such as those of hop bounds."""
    breaks: tuple[frozenset[int], ...]
    """Tokens that may start a line inside an item, from the outermost level to the innermost."""
    declarations: bool
    """Whether the items of the text are declarations, with an empty line between two of them."""


def pretty(source: Source, marks: TextMarks) -> str:
    """The canonical layout of a text that its language can read."""
    text = _Printer(source, marks).text()
    if _content(Source(name=source.name, text=text)) != _content(source):
        raise InternalError(f"the layout of {source.name} would lose or change something")
    return text


def _content(source: Source) -> tuple[list[tuple[TokenKind, str]], list[list[str]]]:
    """What no layout may change: all tokens but commas, and the words of all comments."""
    tokens = [(t.kind, t.text) for t in tokenize(source)[0] if not t.is_punct(",")]
    return tokens, [source.text[c.start : c.end].split() for c in comments(source)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Atom:
    """A token, or a bracket with all that it encloses."""

    first: int
    last: int
    doc: Doc
    block: bool = False


class _Printer:
    def __init__(self, source: Source, marks: TextMarks) -> None:
        self.source = source
        self.marks = marks
        self.tokens, _ = tokenize(source)
        self.comment_finder = CommentFinder(source, comments(source))
        self.closer_of = _matching(self.tokens)

    # -- the whole text --------------------------------------------------------------------------

    def text(self) -> str:
        end = len(self.tokens) - 1
        out: list[str] = []
        before: int | None = None
        one_line = False  # Whether the item before is one line long.
        for lo, hi in [*self._items(0, end), (end, end)]:
            notes = self._comments_between(before, lo)
            apart = self.marks.declarations and before is not None
            if notes.behind:
                column = len(out[-1].rpartition("\n")[2]) + 1
                out.append(" " + render(notes.behind.doc, column))
            for place, line in enumerate(notes.own):
                blank = line.blank_before or (apart and place == 0)
                out.append(_line_end(out, blank=blank) + render(line.doc))
            if lo == end:
                break
            shown = render(Concat([*_front(notes), self._item(lo, hi)]))
            # Short declarations that stand directly below each other may stay together.
            together = bool(notes.own) or (one_line and "\n" not in shown)
            blank = notes.blank_after or (apart and not together)
            out.append(_line_end(out, blank=blank) + shown)
            before, one_line = hi - 1, "\n" not in shown
        return "".join(out) + ("\n" if out else "")

    # -- items -----------------------------------------------------------------------------------

    def _items(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """The tokens from ``lo`` up to ``hi`` as items, without the commas between them."""
        starts: list[int] = []
        at = lo
        while at < hi:
            if self.tokens[at].span.start in self.marks.items:
                starts.append(at)
            at = self.closer_of.get(at, at) + 1
        ends = [self._without_comma(start) for start in [*starts[1:], hi]]
        return list(zip(starts, ends, strict=True)) if starts else []

    def _without_comma(self, end: int) -> int:
        while self.tokens[end - 1].is_punct(","):
            end -= 1
        return end

    def _item(self, lo: int, hi: int, *, deeper: bool = True) -> Doc:
        """An item; ``deeper`` says whether its further lines are indented."""
        atoms = self._atoms(lo, hi)
        header = any(self._breaks(atom, 0) for atom in atoms)
        if not (header and atoms[-1].block):
            return self._broken_up(atoms, 0, deeper=deeper)
        # The brace behind a header of several lines gets a line of its own: both break or none.
        head, block = atoms[:-1], atoms[-1]
        heading = self._broken_up(head, 0)
        inner = heading.inner if isinstance(heading, LayoutGroup) else heading
        gap = self._gap(head[-1].last, block.first, Line(" "))
        return Headed(Concat([inner, gap]), block.doc)

    def _broken_up(self, atoms: Sequence[_Atom], level: int, *, deeper: bool = True) -> Doc:
        """Atoms in one group that breaks before those of this level, else of the levels below."""
        if level == len(self.marks.breaks):
            return self._joined(atoms)
        cuts = [i for i, atom in enumerate(atoms) if i and self._breaks(atom, level)]
        if not cuts:
            return self._broken_up(atoms, level + 1, deeper=deeper)
        first, *others = [atoms[a:b] for a, b in zip([0, *cuts], [*cuts, len(atoms)], strict=True)]
        further: list[Doc] = []
        last = first[-1].last
        for part in others:
            further += [self._gap(last, part[0].first, Line(" "))]
            further += [self._broken_up(part, level + 1)]
            last = part[-1].last
        tail = Nest(Concat(further)) if deeper else Concat(further)
        return LayoutGroup(Concat([self._broken_up(first, level + 1), tail]))

    def _breaks(self, atom: _Atom, level: int) -> bool:
        return self.tokens[atom.first].span.start in self.marks.breaks[level]

    def _joined(self, atoms: Sequence[_Atom]) -> Doc:
        """Atoms on one line. Behind a comment that ends the line the rest stands deeper."""
        parts: list[Doc] = [atoms[0].doc]
        deeper: list[Doc] = []
        for one, other in pairwise(atoms):
            gap = self._gap(one.last, other.first, Text(self._space(one.last, other.first)))
            ends_line = self._comments_between(one.last, other.first).end_line
            where = deeper if deeper or ends_line else parts
            where += [gap, other.doc]
        return Concat([*parts, Nest(Concat(deeper))])

    def _atoms(self, lo: int, hi: int) -> list[_Atom]:
        atoms: list[_Atom] = []
        at = lo
        while at < hi:
            token = self.tokens[at]
            closer = self.closer_of.get(at)
            if closer is None or token.span.start in self.marks.plain:
                atoms.append(_Atom(first=at, last=at, doc=self._token(at)))
                at += 1
                continue
            block = token.text == "{"
            doc = self._block(at, closer) if block else self._list(at, closer)
            atoms.append(_Atom(first=at, last=closer, doc=doc, block=block))
            at = closer + 1
        return atoms

    # -- brackets --------------------------------------------------------------------------------

    def _block(self, opener: int, closer: int) -> Doc:
        start, end = self.tokens[opener].span.start, self.tokens[closer].span.end
        separator = self.marks.separators.get(start, BETWEEN_ITEMS)
        comma = separator.rstrip()
        line = Line(separator.removeprefix(comma))
        inside: list[Doc] = []
        last = opener
        for lo, hi in self._items(opener + 1, closer):
            if last == opener:
                inside.append(self._gap(last, lo, Line(" ")))
            else:
                inside += [Text(comma), self._lines(last, lo, line)]
            inside.append(self._item(lo, hi))
            last = hi - 1
        if last == opener and not self.comment_finder.any_between(start, end):
            return Text("{}")
        ending, close = self._ending(last, closer, Line(" "))
        written = [Text("{"), Nest(Concat([*inside, *ending])), close, Text("}")]
        return LayoutGroup(Concat(written), broken="\n" in self.source.text[start:end])

    def _list(self, opener: int, closer: int) -> Doc:
        start, end = self.tokens[opener].span.start, self.tokens[closer].span.end
        parts = self._split(opener + 1, closer)
        inside: list[Doc] = []
        last = opener
        for lo, hi in parts:
            if last != opener:
                inside.append(Text(","))
            inside.append(self._gap(last, lo, Line("" if last == opener else " ")))
            inside.append(self._item(lo, hi, deeper=len(parts) > 1))
            last = hi - 1
        # A single token in brackets gains nothing from a line of its own.
        if last <= opener + 1 and not self.comment_finder.any_between(start, end):
            inside = [self._item(lo, hi) for lo, hi in parts]
            return Concat([self._token(opener), *inside, self._token(closer)])
        ending, close = self._ending(last, closer, Line(""))
        written = [self._token(opener), Nest(Concat([*inside, *ending])), close]
        return LayoutGroup(Concat([*written, self._token(closer)]))

    def _split(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """The parts of a list between its commas."""
        parts: list[tuple[int, int]] = []
        start = at = lo
        while at < hi:
            if self.tokens[at].is_punct(","):
                parts.append((start, at))
                start = at + 1
            at = self.closer_of.get(at, at) + 1
        return [*parts, (start, hi)] if start < hi else parts

    # -- between tokens --------------------------------------------------------------------------

    def _gap(self, before: int, behind: int, separator: Doc) -> Doc:
        """The separator of two tokens with the comments between them; empty lines go."""
        notes = self._comments_between(before, behind)
        parts = [*_behind(notes)]
        for line in notes.own:
            parts += [Hard(), line.doc]
        if notes.end_line:
            parts.append(Hard())
        elif notes.front and isinstance(separator, Text):
            parts.append(Text(separator.text or " "))
        else:
            parts.append(separator)
        return Concat([*parts, *_front(notes)])

    def _lines(self, before: int, behind: int, separator: Line) -> Doc:
        """The same between two items of a block, where one empty line may stay."""
        notes = self._comments_between(before, behind)
        parts = [*_behind(notes)]
        for line in notes.own:
            parts += [Hard(blank=line.blank_before), line.doc]
        if notes.end_line or notes.blank_after:
            parts.append(Hard(blank=notes.blank_after))
        else:
            parts.append(separator)
        return Concat([*parts, *_front(notes)])

    def _ending(self, before: int, closer: int, separator: Line) -> tuple[list[Doc], Doc]:
        """The comments before a closing bracket, and what stands between them and it."""
        notes = self._comments_between(before, closer)
        parts = [*_behind(notes)]
        for number, line in enumerate(notes.own):
            blank = line.blank_before and (number > 0 or self.closer_of.get(before) != closer)
            parts += [Hard(blank=blank), line.doc]
        if notes.front and notes.end_line:
            parts += [Hard(), notes.front.doc]
        elif notes.front:
            # Where the bracket breaks this comment ends a line, and then it has no width either.
            parts.append(Suffix(Concat([Text(" "), notes.front.doc])))
        return parts, Hard() if notes.end_line else separator

    def _comments_between(self, before: int | None, behind: int) -> CommentLines:
        start = 0 if before is None else self.tokens[before].span.end
        end = self.tokens[behind].span.start
        return self.comment_finder.between(start, end, token_before=before is not None)

    def _space(self, before: int, behind: int) -> str:
        one, other = self.tokens[before], self.tokens[behind]
        if other.span.start in self.marks.glued:
            return ""
        if other.kind is TokenKind.PUNCT and other.text in _TIGHT_BEFORE:
            return ""
        return "" if one.kind is TokenKind.PUNCT and one.text in _TIGHT_BEHIND else " "

    def _token(self, index: int) -> Text:
        span = self.tokens[index].span
        return Text(self.source.text[span.start : span.end])


def _line_end(out: Sequence[str], *, blank: bool) -> str:
    if not out:
        return ""
    return "\n\n" if blank else "\n"


def _behind(notes: CommentLines) -> list[Doc]:
    return [Suffix(Concat([Text(" "), notes.behind.doc]))] if notes.behind else []


def _front(notes: CommentLines) -> list[Doc]:
    return [notes.front.doc, Text(" ")] if notes.front else []


def _matching(tokens: Sequence[Token]) -> dict[int, int]:
    """The closing bracket of every opening one; in a valid text all have one."""
    found: dict[int, int] = {}
    stack: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind is TokenKind.PUNCT and token.text in _CLOSERS:
            stack.append(i)
        elif token.kind is TokenKind.PUNCT and token.text in _CLOSERS.values():
            found[stack.pop()] = i
    return found


# -- comments --------------------------------------------------------------------------------------
# Comments between two tokens, sorted by how they stand: behind, on lines of their own, in front.
#
# A text that is laid out again keeps each comment in its sort, so doing it twice changes nothing.


_EMPTY_LINE = re.compile(r"\n[ \t\r]*\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentLine:
    """Comments of one line."""

    doc: Doc
    blank_before: bool
    """Whether an empty line separates it from what stands before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentLines:
    """All comments between two tokens."""

    behind: CommentLine | None
    """On the line of the token before, with a line end behind it."""
    own: tuple[CommentLine, ...]
    front: CommentLine | None
    """On the line of the token that follows."""
    blank_after: bool
    """Whether an empty line separates the line of the token that follows from what is before."""

    @property
    def end_line(self) -> bool:
        """Whether a line has to end here."""
        return self.behind is not None or bool(self.own)


class CommentFinder:
    """Finds the comments of a text by place."""

    def __init__(self, source: Source, comments: Sequence[Span]) -> None:
        self._source = source
        self._text = source.text
        self._comments = comments
        self._starts = [c.start for c in comments]

    def any_between(self, start: int, end: int) -> bool:
        """Whether a comment starts between these offsets."""
        return bisect_left(self._starts, start) < bisect_left(self._starts, end)

    def between(self, start: int, end: int, *, token_before: bool = True) -> CommentLines:
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
        lines = [self._line(group, space) for space, group in groups]
        behind = front = None
        blank_after = _EMPTY_LINE.search(space_after) is not None
        if lines and "\n" not in space_after and end < len(self._text):
            front = lines.pop()
            blank_after = front.blank_before
        if lines and "\n" not in groups[0][0] and token_before:
            behind = lines.pop(0)
        return CommentLines(behind=behind, own=tuple(lines), front=front, blank_after=blank_after)

    def _line(self, comments: Sequence[Span], space_before: str) -> CommentLine:
        parts: list[Doc] = []
        for comment in comments:
            if parts:
                parts.append(Text(" "))
            _, column = self._source.position(comment.start)
            lines = self._text[comment.start : comment.end].split("\n")
            parts.append(Comment("\n".join(line.rstrip() for line in lines), column - 1))
        blank_before = _EMPTY_LINE.search(space_before) is not None
        return CommentLine(doc=Concat(parts), blank_before=blank_before)
