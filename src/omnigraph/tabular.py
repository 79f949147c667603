"""What every result with rows has in common: how it is shown, and how other libraries read it.

    Arrow -> [tabular] -> print, notebooks, pandas, polars, DuckDB, anything that speaks Arrow

A class that has ``to_arrow`` becomes such a result by inheriting ``Tabular``. What is large gives
its first rows in ``_head`` and its batches in ``_batches``, so that it is never in memory as a
whole only because it is looked at.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.errors import UsageError
from omnigraph.schema.json_text import TEXT, plain_text
from omnigraph.show import html
from omnigraph.show.text import ColumnLayout, cell_count, fit, grid_lines, one_line

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

HTML_ROWS_MAX = 100
TEXT_ROWS_MAX = 40
TEXT_WIDTH = 120
"""Cells of a line that ``print`` shows: the same everywhere, whatever the terminal is."""
NULL = "null"
"""What a missing value is called where a person reads it."""
_STEERING = r"[\x00-\x1f\x7f-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"
"""The characters that ``one_line`` makes visible."""
_ROWS_PER_PIECE = 10_000


class Tabular(ABC):
    """Rows that show themselves and that other libraries read."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """As an Arrow table."""

    def to_pandas(self) -> pd.DataFrame:
        """As a pandas DataFrame (needs pandas: ``pip install omnigraph[pandas]``)."""
        optional("pandas", install="pip install 'omnigraph[pandas]'")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """As a polars DataFrame (needs polars: ``pip install polars``)."""
        return optional("polars").from_arrow(self.to_arrow())

    def to_dicts(self) -> list[dict[str, Any]]:
        """As plain dicts."""
        return self.to_arrow().to_pylist()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's PyCapsule interface: polars, DuckDB, pandas 3 and others read it directly."""
        return self._stream().__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """The interchange protocol that pandas 2 reads (``pandas.api.interchange``)."""
        return self.to_arrow().__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)

    def __str__(self) -> str:
        rows, total = self._head(TEXT_ROWS_MAX)
        lines = list(text_table(rows, TEXT_WIDTH))
        return "\n".join([*lines, row_count_text(total, shown=rows.num_rows)])

    def to_html(self, title: str | None = None) -> str:
        """The first rows as an HTML table, as a notebook shows them."""
        rows, total = self._head(HTML_ROWS_MAX)
        shown = self._title() if title is None else title
        return html_table(rows, more=total - rows.num_rows, title=shown)

    def _repr_html_(self) -> str:
        return self.to_html()

    def _title(self) -> str:
        """What stands above the table in a notebook."""
        return ""

    def _head(self, rows_max: int) -> tuple[pa.Table, int]:
        """The first rows, and how many there are."""
        table = self.to_arrow()
        return table.slice(0, rows_max), table.num_rows

    def _stream(self) -> pa.RecordBatchReader:
        return self.to_arrow().to_reader()


def optional(name: str, *, install: str | None = None) -> Any:
    """A library that is used where it is installed, and named where it is not."""
    try:
        return import_module(name)
    except ImportError as e:
        raise UsageError(f"{name} is not installed", hint=install or f"pip install {name}") from e


def row_count_text(total: int, *, shown: int) -> str:
    """The line below a table: how many rows there are, or how many more."""
    if shown < total:
        more = total - shown
        return f"… and {more:,} more {'row' if more == 1 else 'rows'}"
    return f"{total:,} {'row' if total == 1 else 'rows'}"


# -- as text -------------------------------------------------------------------------------------


def text_table(table: pa.Table, width: int | None) -> Iterator[str]:
    """A table as lines of text; what finds no place is counted."""
    layout = layout_of(table, width)
    yield from table_lines(table, layout, ellipsis="…", rule="─")
    if hidden := table.num_columns - len(layout.widths):
        yield f"… and {hidden} more {'column' if hidden == 1 else 'columns'}"


def layout_of(table: pa.Table, width: int | None) -> ColumnLayout:
    """How the columns are laid out on a terminal of this width; None is a pipe."""
    numeric = [_is_number(field.type) for field in table.schema]
    natural = [cell_count(one_line(name)) for name in table.column_names]
    for piece in _pieces(table):
        natural = [
            max(w, max(map(cell_count, cells), default=0))
            for w, cells in zip(natural, piece, strict=True)
        ]
    return fit(natural, numeric, width)


def table_lines(
    table: pa.Table, layout: ColumnLayout, *, ellipsis: str, rule: str
) -> Iterator[str]:
    """The head, a rule, and a line a row."""
    shown = len(layout.widths)
    right = [_is_number(field.type) for field in table.schema][:shown]
    rows = (cells for piece in _pieces(table) for cells in zip(*piece[:shown], strict=True))
    head = [one_line(name) for name in table.column_names]
    return grid_lines(head, rows, layout, right, ellipsis=ellipsis, rule=rule)


def visible_text(values: pa.Array) -> pa.Array:
    """Every value on one line as a person reads it; nothing of it can steer a terminal."""
    text = pc.fill_null(_texts(values), NULL)
    unsafe = pc.match_substring_regex(text, _STEERING)
    if not pc.any(unsafe, min_count=0).as_py():
        return text
    shown = [one_line(t) for t in text.filter(unsafe).to_pylist()]
    return pc.replace_with_mask(text, unsafe, pa.array(shown, TEXT))


def _pieces(table: pa.Table) -> Iterator[list[list[str]]]:
    """The cells column by column, a part of the rows at a time."""
    for batch in table.to_batches(max_chunksize=_ROWS_PER_PIECE):
        if batch.num_rows:
            yield [visible_text(values).to_pylist() for values in batch.columns]


def _texts(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_timestamp(kind) and kind.unit != "ms":  # Of commits: microseconds.
        values = values.cast(pa.timestamp("ms", tz=kind.tz), safe=False)
    return plain_text(values)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


# -- as HTML -------------------------------------------------------------------------------------


def html_table(table: pa.Table, *, more: int = 0, title: str = "") -> str:
    """Rows as an HTML table; nulls are empty, text is escaped."""
    rows: list[tuple[str | None, ...]] = []
    for batch in table.to_batches():
        rows += zip(*(_texts(values).to_pylist() for values in batch.columns), strict=True)
    return html.table(table.column_names, rows, more=more, title=title)
