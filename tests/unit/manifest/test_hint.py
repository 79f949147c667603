"""The hint has the rows of its version, or says that it has none; never other ones."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from omnigraph.manifest.hint import PACKED_BYTES_MAX, Hint

ROWS = pa.table(
    {"object_id": ["schema", "graph_head:main"], "table_version": [None, 7]},
    schema=pa.schema(
        [pa.field("object_id", pa.string(), nullable=False), pa.field("table_version", pa.int64())],
        metadata={"omnigraph.format": "3"},
    ),
)


def test_rows_come_back_with_their_schema() -> None:
    found = Hint.decode(Hint(version=7, rows=ROWS).encode())
    assert found is not None and found.rows is not None
    assert found.version == 7
    assert found.rows.equals(ROWS, check_metadata=True)


def test_a_release_that_knows_no_rows_reads_the_number() -> None:
    assert json.loads(Hint(version=7, rows=ROWS).encode())["version"] == 7
    assert Hint.decode(b'{"version":7}') == Hint(version=7)


@pytest.mark.parametrize("place", range(0, 600, 7))
def test_rows_that_were_damaged_are_none(place: int) -> None:
    fields = json.loads(Hint(version=7, rows=ROWS).encode())
    packed: str = fields["rows"]
    place %= len(packed)
    other = "A" if packed[place] != "A" else "B"
    fields["rows"] = packed[:place] + other + packed[place + 1 :]
    assert Hint.decode(json.dumps(fields).encode()) == Hint(version=7)


@pytest.mark.parametrize("rows", ["", "é", 5, None, "~~~~~"])
def test_what_is_no_packed_text_is_none(rows: object) -> None:
    content = json.dumps({"version": 7, "rows": rows, "sha256": ""}).encode()
    assert Hint.decode(content) == Hint(version=7)


def test_many_rows_are_left_to_the_version() -> None:
    ids = [f"graph_commit:{number * 0x9E3779B97F4A7C15 % (1 << 64):x}" for number in range(2_000)]
    rows = pa.table({"object_id": ids, "table_version": range(2_000)})
    content = Hint(version=7, rows=rows).encode()
    assert len(content) < PACKED_BYTES_MAX
    assert Hint.decode(content) == Hint(version=7)
