"""Printing the rows of a query as a table, to a terminal or into a pipe.

QueryResult -> [table_output] -> table -> stdout
"""

from __future__ import annotations

import sys
from itertools import islice

from rich.text import Text

from omnigraph.cli.rich_output import console, rendered
from omnigraph.cli.streams import encodes, is_terminal, stdout_writer, write_error
from omnigraph.cli.table import ROWS_MAX, Layout, layout_of, table_lines
from omnigraph.cli.text import count_text, took
from omnigraph.results import QueryResult

_LINES_PER_WRITE = 5_000


def print_table(result: QueryResult, elapsed_s: float | None, *, quiet: bool) -> None:
    """The table, how many rows there are and how long it took, and what is left out."""
    table = result.to_arrow()
    width = console(sys.stdout).width if is_terminal(sys.stdout) else None
    shown = table if width is None else table.slice(0, ROWS_MAX)
    layout = layout_of(shown, width)
    plain = not encodes("─…", sys.stdout)
    lines = table_lines(shown, layout, ellipsis="..." if plain else "…", rule="-" if plain else "─")
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    with stdout_writer() as writer:
        head = next(lines)
        if width is not None:
            head = rendered(Text(head, "bold"), sys.stdout).rstrip("\n")
        writer.write(f"{head}\n".encode(encoding, "backslashreplace"))
        while block := list(islice(lines, _LINES_PER_WRITE)):
            writer.write(("\n".join(block) + "\n").encode(encoding, "backslashreplace"))
        if not quiet:
            writer.write(f"{count_text(len(result), 'row')}{took(elapsed_s)}\n".encode())
    if not quiet:
        _print_notes(result, shown.num_rows, layout)


def _print_notes(result: QueryResult, shown: int, layout: Layout) -> None:
    """What a table on a terminal leaves out."""
    if shown < len(result):
        write_error(
            f"the first {shown:,} rows are shown: other formats show all of them, "
            "and so does a table in a pipe\n"
        )
    hidden = len(result.columns) - len(layout.widths)
    if hidden:
        names = count_text(hidden, "more column")
        write_error(f"{names} found no place: the format kv shows all of them\n")
    elif layout.cut:
        write_error("some values are cut: the format kv shows all of them\n")
