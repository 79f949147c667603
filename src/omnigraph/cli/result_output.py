"""Printing the rows of a query, in any of the formats.

QueryResult -> [result_output] -> table_output | result_bytes -> stdout
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from omnigraph.cli.formats import Format
from omnigraph.cli.interrupts import answered
from omnigraph.cli.result_bytes import (
    Chunk,
    csv_chunks,
    json_chunks,
    jsonl_chunks,
    kv_chunks,
    write_arrow,
)
from omnigraph.cli.streams import is_terminal, printable, stdout_writer
from omnigraph.results import QueryResult


def print_result(
    result: QueryResult, form: Format, *, pinned: bool, elapsed_s: float | None, quiet: bool
) -> None:
    """Print all rows; the table on a terminal ends after the first thousand."""
    match form:
        case Format.TABLE:
            # rich takes long to import; only the table needs it.
            from omnigraph.cli.table_output import print_table

            print_table(result, elapsed_s, quiet=quiet)
        case Format.ARROW:
            with stdout_writer() as writer:
                write_arrow(result, writer)
        case Format.JSON:
            _print_chunks(json_chunks(result, pinned))
        case Format.JSONL:
            _print_chunks(jsonl_chunks(result, pinned))
        case Format.CSV:
            _print_chunks(csv_chunks(result))
        case Format.KV:
            _print_chunks(kv_chunks(result))
    answered()


def _print_chunks(chunks: Iterable[Chunk]) -> None:
    shown = is_terminal(sys.stdout)
    with stdout_writer() as writer:
        for chunk in chunks:
            # On a terminal nobody parses it, and what the data holds must not steer it.
            safe = printable(bytes(chunk).decode()).encode() if shown else chunk
            writer.write(safe)
