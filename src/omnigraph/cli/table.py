"""The rows of a query as a table for reading.

    QueryResult -> [table] -> lines

On a terminal it fits: long values are cut with an ellipsis, columns that find no place are counted,
and after a thousand rows it ends. In a pipe nothing is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from rich.cells import cell_len, set_cell_size

from omnigraph.cli.result_bytes import visible_text

ROWS_MAX = 1_000
"""So many rows are shown on a terminal."""
WIDTH_MIN = 8
"""No column is made narrower than this."""
GAP = "  "
_ROWS_PER_PIECE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which columns are shown, and how wide."""

    widths: tuple[int, ...]
    """Of the columns that are shown, from the first on."""
    cut: bool
    """Whether a value may be longer than its column."""


def fit(natural: Sequence[int], numeric: Sequence[bool], width: int | None) -> Layout:
    """Widths for columns that would like to be ``natural`` wide. Numbers are never cut."""
    if width is None or _total(natural) <= width:
        return Layout(widths=tuple(natural), cut=False)
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
        return Layout(widths=tuple(widths), cut=widths != list(natural[:shown]))
    return Layout(widths=(), cut=False)


def layout_of(table: pa.Table, width: int | None) -> Layout:
    """How the columns are laid out on a terminal of this width; None is a pipe."""
    numeric = [_is_number(field.type) for field in table.schema]
    natural = [_width(name) for name in table.column_names]
    for piece in _pieces(table):
        natural = [
            max(w, max(map(_width, cells), default=0))
            for w, cells in zip(natural, piece, strict=True)
        ]
    return fit(natural, numeric, width)


def table_lines(table: pa.Table, layout: Layout, *, ellipsis: str, rule: str) -> Iterator[str]:
    """The head, a rule, and a line a row."""
    widths = layout.widths
    right = [_is_number(field.type) for field in table.schema][: len(widths)]
    yield _line(table.column_names, widths, right, ellipsis)
    yield rule * max(1, _total(widths))
    for piece in _pieces(table):
        for cells in zip(*piece[: len(widths)], strict=True):
            yield _line(cells, widths, right, ellipsis)


def _pieces(table: pa.Table) -> Iterator[list[list[str]]]:
    """The cells column by column, a part of the rows at a time."""
    for batch in table.to_batches(max_chunksize=_ROWS_PER_PIECE):
        if batch.num_rows:
            yield [visible_text(values).to_pylist() for values in batch.columns]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool], ellipsis: str) -> str:
    return GAP.join(
        _cell(text, width, to_right, ellipsis)
        for text, width, to_right in zip(cells, widths, right, strict=False)
    ).rstrip()


def _cell(text: str, width: int, to_right: bool, ellipsis: str) -> str:
    taken = _width(text)
    if taken > width:
        return set_cell_size(text, max(0, width - len(ellipsis))) + ellipsis[:width]
    space = " " * (width - taken)
    return space + text if to_right else text + space


def _width(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)
