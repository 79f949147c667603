"""Records of CSV text: where they end, which lines they begin on, and their cells.

    bytes -> [records] -> places of records (numpy) -> csv (whole columns) | cells of one record

RFC 4180: a cell is quoted as a whole or not at all, a quote inside is doubled, and a newline inside
quotes is text. Under these rules a newline ends a record exactly if the number of quotes before it
is even, so records are found without a loop. A quote in any other place is refused, never guessed
at: where a record ends would depend on the guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from omnigraph.input.problems import Problem

_NEWLINE, _RETURN, _QUOTE = (ord(c) for c in '\n\r"')

Places = npt.NDArray[np.int64]


class CsvRecords:
    """Ends of records: newlines outside of quotes."""

    def last(self, text: bytes) -> int:
        """The last end, -1 when there is none."""
        ends = record_ends(text)
        return int(ends[-1]) if len(ends) else -1

    def first(self, text: bytes, at: int) -> int:
        """The first end at this place or after it, -1 when there is none."""
        ends = record_ends(text)
        place = int(np.searchsorted(ends, at))
        return int(ends[place]) if place < len(ends) else -1


def record_ends(text: bytes) -> Places:
    """Places of the newlines that end records, in a text that begins with a record."""
    raw = np.frombuffer(text, dtype=np.uint8)
    newlines = np.flatnonzero(raw == _NEWLINE)
    if b'"' not in text:
        return newlines
    quotes = np.flatnonzero(raw == _QUOTE)
    return newlines[np.searchsorted(quotes, newlines) % 2 == 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRecords:
    """The records of a block that are not blank."""

    text: bytes
    starts: Places
    stops: Places
    """Exclusive, without the newline and a carriage return before it."""
    lines: Places
    """The line of the block, from 1, that each begins on."""
    line_count: int
    closed: bool
    """False: the last record ends within quotes."""

    def raw(self, index: int) -> bytes:
        """One record as it stands in the text."""
        return self.text[self.starts[index] : self.stops[index]]


def cut_records(text: bytes) -> CutRecords:
    """A block of whole records, cut. What follows the last end is a record that is not closed."""
    ends = record_ends(text)
    closed = bool(len(ends)) and int(ends[-1]) == len(text) - 1
    if not closed:
        ends = np.append(ends, len(text) - 1)
    raw = np.frombuffer(text, dtype=np.uint8)
    newlines = np.flatnonzero(raw == _NEWLINE)
    starts = np.concatenate([[0], ends[:-1] + 1]).astype(np.int64)
    stops = ends.copy()
    # Where a record is empty this looks at a neighbour's byte, and the record is blank anyway.
    stops[(raw[stops - 1] == _RETURN) & (stops > starts)] -= 1
    filled = stops > starts
    return CutRecords(
        text=text,
        starts=starts[filled],
        stops=stops[filled],
        lines=np.searchsorted(newlines, starts[filled]) + 1,
        line_count=len(newlines),
        closed=closed,
    )


def quotes_are_regular(text: bytes, delimiter: str) -> bool:
    """Whether every quote opens a cell, closes one, or is doubled inside of one."""
    raw = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(raw == _QUOTE)
    if not len(quotes):
        return True
    if len(quotes) % 2:
        return False
    before = np.concatenate([[_NEWLINE], raw])[quotes]
    after = np.concatenate([raw, [_NEWLINE]])[quotes + 1]
    limits = (ord(delimiter), _NEWLINE, _QUOTE)
    opens = np.isin(before[0::2], limits)
    # A carriage return closes only together with the newline, which the caller has made sure of.
    closes = np.isin(after[1::2], (*limits, _RETURN))
    return bool(opens.all() and closes.all())


def has_lone_returns(text: bytes) -> bool:
    """Whether a carriage return stands without a newline: Arrow would end a record there."""
    return b"\r" in text and text.count(b"\r") != text.count(b"\r\n")


@lru_cache
def _cell_pattern(delimiter: str) -> re.Pattern[str]:
    return re.compile(rf'"((?:[^"]|"")*)"|([^"{re.escape(delimiter)}]*)')


@dataclass(frozen=True, slots=True)
class Cell:
    """One value of a record."""

    text: str
    quoted: bool


def cells_of(record: str, delimiter: str) -> list[Cell] | Problem:
    """The cells of one record, or where its quotes are wrong (column: character, from 1)."""
    pattern = _cell_pattern(delimiter)
    cells: list[Cell] = []
    at = 0
    while True:
        found = pattern.match(record, at)
        if found is None or (at < len(record) and record[at] == '"' and found[1] is None):
            return Problem(message="not valid CSV: the quote is never closed", column=at + 1)
        quoted = found[1] is not None
        cells.append(Cell(found[1].replace('""', '"') if quoted else found[2], quoted))
        at = found.end()
        if at == len(record):
            return cells
        if record[at] != delimiter:
            what = (
                "text after a closing quote"
                if quoted
                else "a quote within a value that does not begin with one"
            )
            hint = "quote the whole value and double the quotes inside"
            return Problem(message=f"not valid CSV: {what} ({hint})", column=at + 1)
        at += 1
