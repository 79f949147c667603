"""The rows of a query, in any of the formats, piece by piece.

    QueryResult -> [rows] -> Output.show -> stdout

Every format but the table gives all rows, however many there are; no more than a few megabytes of
text are in memory at a time. The table is for reading. On a terminal it fits: long values are cut
with an ellipsis, columns that find no place are counted, and after a thousand rows it ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any

import pyarrow as pa

from omnigraph.cli.answers import Stream
from omnigraph.cli.lines import Line, TextLook, count_text, took
from omnigraph.cli.options import RowFormat
from omnigraph.results import QueryResult
from omnigraph.schema.json_text import content, join, json_objects, pieces
from omnigraph.schema.table_text import csv_header, csv_rows
from omnigraph.show.text import ColumnLayout
from omnigraph.tabular import layout_of, table_lines, visible_text

ROWS_MAX = 1_000
"""So many rows are shown on a terminal."""

Chunk = bytes | memoryview


class QueryRows(Stream):
    """The rows of a query in the format that was asked for."""

    instead = "rows are printed to stdout"

    def __init__(
        self, result: QueryResult, form: RowFormat, *, pinned: bool, elapsed_s: float | None
    ) -> None:
        self._result = result
        self._form = form
        self._pinned = pinned
        """Whether the commit was asked for by its id."""
        self._elapsed_s = elapsed_s
        self._left_out: list[str] = []

    @property
    def for_programs(self) -> bool:
        """Only the table is made for people."""
        return self._form is not RowFormat.TABLE

    def chunks(self) -> Iterator[Chunk]:
        """All rows."""
        match self._form:
            case RowFormat.ARROW:
                return arrow_chunks(self._result)
            case RowFormat.JSONL:
                return jsonl_chunks(self._result, self._pinned)
            case RowFormat.CSV:
                return csv_chunks(self._result)
            case RowFormat.KV:
                return kv_chunks(self._result)
            case _:
                return json_chunks(self._result, self._pinned)

    def lines(self, look: TextLook) -> Iterator[Line]:
        """The table; on a terminal it ends after the first thousand rows."""
        return result_lines(self._result, self._elapsed_s, look, self._left_out)

    def notes(self, look: TextLook) -> Iterator[str]:
        """What the table leaves out, and what the engine has to say."""
        if not look.quiet:
            yield from self._left_out
            for notice in self._result.notices:
                yield f"note: {notice}"


def result_facts(result: QueryResult, pinned: bool) -> dict[str, Any]:
    """What a result says about itself; ``pinned`` if a commit was asked for by its id."""
    facts: dict[str, Any] = {
        "query_name": result.query_name,
        "target": {"branch": result.branch, "commit": result.commit_id if pinned else None},
        "row_count": len(result),
        "columns": result.columns,
        "graph_commit_id": result.commit_id,
    }
    # Only where there is one: a comparison of whole documents finds nothing new.
    notices = [notice.to_dict() for notice in result.notices]
    return facts | ({"notices": notices} if notices else {})


def json_chunks(result: QueryResult, pinned: bool) -> Iterator[Chunk]:
    """One JSON document, a line a row."""
    facts = result_facts(result, pinned)
    last = facts.pop("graph_commit_id")
    lines = [f"  {_json(name)}: {_json(value)},\n" for name, value in facts.items()]
    yield ("{\n" + "".join(lines) + '  "rows": [').encode()
    before = "\n    "
    for batch in _batches(result):
        # The comma stands before each row but the first, so that the last row needs no look-ahead.
        text = content(join(",\n    ", json_objects(batch)))
        if before:
            yield before.encode()
            text = text[len(",\n    ") :]
        yield text
        before = ""
    end = "" if before else "\n  "
    yield f'{end}],\n  "graph_commit_id": {_json(last)}\n}}\n'.encode()


def jsonl_chunks(result: QueryResult, pinned: bool) -> Iterator[Chunk]:
    """A line with the facts, then a line a row."""
    yield f"{_json({'kind': 'metadata'} | result_facts(result, pinned))}\n".encode()
    for batch in _batches(result):
        yield content(join(json_objects(batch), "\n"))


def csv_chunks(result: QueryResult) -> Iterator[Chunk]:
    """RFC 4180: CRLF, quotes where needed. Null is empty, an empty string is `""`."""
    yield csv_header(result.columns)
    for batch in _batches(result):
        yield csv_rows(batch)


def kv_chunks(result: QueryResult) -> Iterator[Chunk]:
    """A block a row, a line a value, a blank line between blocks."""
    first = True
    for batch in _batches(result):
        fragments: list[pa.Array | str] = ["\n"]
        for name, values in zip(result.columns, batch.columns, strict=True):
            fragments += [f"{name}: ", visible_text(values), "\n"]
        text = content(join(*fragments))
        yield text[1:] if first else text
        first = False


def arrow_chunks(result: QueryResult) -> Iterator[Chunk]:
    """An Arrow IPC stream, with the commit in the metadata of its schema."""
    table = result.to_arrow().replace_schema_metadata({"graph_commit_id": result.commit_id})
    return ipc_chunks(table.schema, table.to_batches())


def ipc_chunks(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    """Batches as an Arrow IPC stream, as they come."""
    made = BytesIO()
    with pa.ipc.new_stream(made, schema) as stream:
        yield _taken(made)
        for batch in batches:
            stream.write_batch(batch)
            yield _taken(made)
    yield _taken(made)


def _taken(made: BytesIO) -> bytes:
    content = made.getvalue()
    made.seek(0)
    made.truncate()
    return content


def _batches(result: QueryResult) -> Iterator[pa.RecordBatch]:
    for batch in result.to_arrow().to_batches():
        yield from pieces(batch)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- the table


def result_lines(
    result: QueryResult, elapsed_s: float | None, look: TextLook, left_out: list[str]
) -> Iterator[Line]:
    """The table, how many rows there are and how long it took; ``left_out`` gets what is not."""
    table = result.to_arrow()
    shown = table if look.width is None else table.slice(0, ROWS_MAX)
    layout = layout_of(shown, look.width)
    lines = table_lines(shown, layout, ellipsis=look.ellipsis, rule=look.rule)
    yield [(next(lines), "bold")]
    for line in lines:
        yield [line]
    if not look.quiet:
        yield [f"{count_text(len(result), 'row')}{took(elapsed_s)}"]
    left_out += _notes(result, shown.num_rows, layout)


def _notes(result: QueryResult, shown: int, layout: ColumnLayout) -> Iterator[str]:
    """What a table on a terminal leaves out."""
    if shown < len(result):
        yield (
            f"the first {shown:,} rows are shown: other formats show all of them, "
            "and so does a table in a pipe"
        )
    hidden = len(result.columns) - len(layout.widths)
    if hidden:
        names = count_text(hidden, "more column")
        yield f"{names} found no place: the format kv shows all of them"
    elif layout.cut:
        yield "some values are cut: the format kv shows all of them"
