"""Text that can be shown anywhere: nothing in it steers a terminal, and columns fit a width.

cells -> [text] -> tables of the command line, of print(result)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

WIDTH_MIN = 8
"""No column is made narrower than this."""
GAP = "  "
# Text from data, file names and commit messages reaches a terminal: control characters, direction
# overrides and halves of surrogate pairs are shown instead of sent.
_STEERING = "\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE = re.compile(f"[\x00-\x08{_STEERING}]")
_UNSAFE_IN_LINE = re.compile(f"[\x00-\x0a{_STEERING}]")


def printable(text: str) -> str:
    """The text with everything that could steer a terminal made visible; lines stay lines."""
    return _UNSAFE.sub(_escaped, text)


def one_line(text: str) -> str:
    """The text on one line: also its line breaks and tabs are made visible."""
    return _UNSAFE_IN_LINE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def cell_count(text: str) -> int:
    """How wide a text is on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int, ellipsis: str) -> str:
    """The text, or as much of it as fits with an ellipsis."""
    if cell_count(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, max(0, width - len(ellipsis))) + ellipsis[:width]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLayout:
    """Which columns are shown, and how wide."""

    widths: tuple[int, ...]
    """Of the columns that are shown, from the first on."""
    cut: bool
    """Whether a value may be longer than its column."""


def fit(natural: Sequence[int], numeric: Sequence[bool], width: int | None) -> ColumnLayout:
    """Widths for columns that would like to be ``natural`` wide. Numbers are never cut."""
    if width is None or _total(natural) <= width:
        return ColumnLayout(widths=tuple(natural), cut=False)
    for shown in range(len(natural), 0, -1):
        fixed = numeric[:shown]
        widths = list(natural[:shown])
        least = [w if f else min(w, WIDTH_MIN) for w, f in zip(widths, fixed, strict=True)]
        if _total(least) > width and shown > 1:
            continue
        # The widest give first: one cap for all that are wider than it.
        cap = max(widths)
        while _total(widths) > width and cap > 1:
            cap -= 1
            widths = [max(at_least, min(w, cap)) for w, at_least in zip(widths, least, strict=True)]
            if widths == least:
                break
        widths = [min(w, width) for w in widths]
        return ColumnLayout(widths=tuple(widths), cut=widths != list(natural[:shown]))
    return ColumnLayout(widths=(), cut=False)


def grid_lines(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    layout: ColumnLayout,
    right: Sequence[bool],
    *,
    ellipsis: str,
    rule: str,
) -> Iterator[str]:
    """The head, a rule, and a line a row; ``right`` are the columns that end alike."""
    widths = layout.widths
    yield _line(head, widths, right, ellipsis)
    yield rule * max(1, _total(widths))
    for cells in rows:
        yield _line(cells, widths, right, ellipsis)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], ellipsis: str) -> str:
    return GAP.join(
        _cell(text, width, to_right, ellipsis)
        for text, width, to_right in zip(cells, widths, right, strict=False)
    ).rstrip()


def _cell(text: str, width: int, to_right: bool, ellipsis: str) -> str:
    shown = cut(text, width, ellipsis)
    space = " " * (width - cell_count(shown))
    return space + shown if to_right else shown + space


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
