"""Tables, facts and texts as HTML for notebooks.

    value -> [html] -> _repr_html_

Everything that comes from data is escaped here and nowhere else: callers pass plain text. The
markup carries no style of its own, so that it looks like the rest of the notebook.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

CELL_CHARACTERS_MAX = 500
"""Of a longer value the beginning is shown."""


def table(
    columns: Sequence[str], rows: Iterable[Sequence[str | None]], *, more: int = 0, title: str = ""
) -> str:
    """A table; nulls are empty, and a line says how many rows are not in it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    grid = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    word = "row" if more == 1 else "rows"
    return _title(title) + grid + (f"<p>… and {more:,} more {word}</p>" if more > 0 else "")


def facts(title: str, values: Mapping[str, Any]) -> str:
    """A line for every fact that is known."""
    lines = "".join(
        f"<tr><th>{escape(name)}</th>{_cell(str(value))}</tr>"
        for name, value in values.items()
        if value is not None
    )
    return f"{_title(title)}<table><tbody>{lines}</tbody></table>"


def words(text: str) -> str:
    """Lines as they are."""
    return f"<pre>{escape(text)}</pre>"


def folded(summary: str, inner: str) -> str:
    """HTML that is shown when its summary is clicked."""
    return f"<details><summary>{escape(summary)}</summary>{inner}</details>"


def _title(text: str) -> str:
    return f"<p><strong>{escape(text)}</strong></p>" if text else ""


def _cell(text: str | None) -> str:
    if text is None:
        return "<td></td>"
    shown = text if len(text) <= CELL_CHARACTERS_MAX else text[:CELL_CHARACTERS_MAX] + "…"
    return f"<td>{escape(shown)}</td>"
