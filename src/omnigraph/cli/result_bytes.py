"""The rows of a query as bytes for other programs, piece by piece.

    QueryResult -> [result_bytes] -> chunks -> stdout

Every format but the table gives all rows, however many there are; no more than a few megabytes of
text are in memory at a time.
"""

# pyarrow.compute fills itself with functions when it is imported; a type checker sees none of them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import json
from collections.abc import Iterator
from io import RawIOBase
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.cli.streams import Writer, one_line
from omnigraph.results import QueryResult
from omnigraph.schema.json_text import TEXT, content, join, json_objects, pieces, plain_text

NULL = "null"
"""What a missing value is called where a person reads it."""
_STEERING = r"[\x00-\x1f\x7f-\x{9f}\x{2028}-\x{202e}\x{2066}-\x{2069}]"
"""The characters that ``one_line`` makes visible."""
_CSV_QUOTED = '[",\r\n]'

Chunk = bytes | memoryview


def result_facts(result: QueryResult, pinned: bool) -> dict[str, Any]:
    """What a result says about itself; ``pinned`` if a commit was asked for by its id."""
    facts: dict[str, Any] = {
        "query_name": result.query_name,
        "target": {"branch": result.branch, "commit": result.commit_id if pinned else None},
        "row_count": len(result),
        "columns": result.columns,
        "graph_commit_id": result.commit_id,
    }
    # Only where there is one: who compares whole documents is not surprised.
    told = [notice.to_dict() for notice in result.notices]
    return facts | ({"notices": told} if told else {})


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
    names = pa.array(result.columns, TEXT)
    yield (",".join(_csv_cells(names).to_pylist()) + "\r\n").encode()
    for batch in _batches(result):
        fragments: list[pa.Array | str] = []
        for values in batch.columns:
            fragments += ["," if fragments else "", pc.fill_null(_csv_cells(values), "")]
        yield content(join(*fragments, "\r\n"))


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


def visible_text(values: pa.Array) -> pa.Array:
    """Every value on one line as a person reads it; nothing of it can steer a terminal."""
    text = pc.fill_null(plain_text(values), NULL)
    unsafe = pc.match_substring_regex(text, _STEERING)
    if not pc.any(unsafe, min_count=0).as_py():
        return text
    shown = [one_line(t) for t in text.filter(unsafe).to_pylist()]
    return pc.replace_with_mask(text, unsafe, pa.array(shown, TEXT))


def write_arrow(result: QueryResult, writer: Writer) -> None:
    """An Arrow IPC stream, with the commit in the metadata of its schema."""
    table = result.to_arrow().replace_schema_metadata({"graph_commit_id": result.commit_id})
    sink = pa.PythonFile(Sink(writer), mode="w")
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


class Sink(RawIOBase):
    """A writer as Arrow wants it."""

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer

    def writable(self) -> bool:
        """It is there for nothing else."""
        return True

    def write(self, content: Any) -> int:
        """Write all of it."""
        return self._writer.write(content)


def _batches(result: QueryResult) -> Iterator[pa.RecordBatch]:
    for batch in result.to_arrow().to_batches():
        yield from pieces(batch)


def _csv_cells(values: pa.Array) -> pa.Array:
    text = plain_text(values)
    empty = pc.equal(text, "")
    quoted = pc.or_(pc.match_substring_regex(text, _CSV_QUOTED), empty)
    if not pc.any(quoted, min_count=0).as_py():
        return text
    doubled = join('"', pc.replace_substring(text, '"', '""'), '"')
    return pc.if_else(quoted, doubled, text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
