"""Values as text: what JSON says about them is what they are."""

from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_cases import ALL, tables

from omnigraph.schema.json_text import (
    NotJsonError,
    content,
    json_objects,
    json_text,
    pieces,
    plain_text,
    write_all,
)

NODE = pa.struct(
    [("@id", pa.string()), ("on", pa.date32()), ("n", pa.uint64()), ("tags", pa.list_(pa.string()))]
)


@given(tables(ALL))
def test_objects_are_what_a_json_library_reads(rows: pa.Table) -> None:
    for batch in rows.to_batches():
        for text, row in zip(json_objects(batch).to_pylist(), batch.to_pylist(), strict=True):
            told = json.loads(text)
            assert list(told) == batch.schema.names
            for name, value in row.items():
                assert (told[name] is None) == (value is None)
                if isinstance(value, str | bool | int):
                    assert told[name] == value


def test_nodes_lists_and_nulls() -> None:
    values = pa.array(
        [
            {"@id": 'a"', "on": date(2026, 1, 2), "n": 2**64 - 1, "tags": ["x", None]},
            None,
            {"@id": "b", "on": None, "n": None, "tags": []},
        ],
        NODE,
    )
    expected = [
        '{"@id":"a\\"","on":"2026-01-02","n":18446744073709551615,"tags":["x",null]}',
        None,
        '{"@id":"b","on":null,"n":null,"tags":[]}',
    ]
    assert json_text(values).to_pylist() == expected
    assert json_text(values.slice(1)).to_pylist() == expected[1:]
    assert plain_text(values).to_pylist() == expected


def test_plain_text_has_no_quotes() -> None:
    at = pa.array([datetime(2026, 1, 2, 3, 4, 5, 678000, UTC), None], pa.timestamp("ms", "UTC"))
    assert plain_text(at).to_pylist() == ["2026-01-02T03:04:05.678Z", None]
    assert json_text(at).to_pylist() == ['"2026-01-02T03:04:05.678Z"', None]
    assert plain_text(pa.array(['a"b'])).to_pylist() == ['a"b']
    assert plain_text(pa.array([date(1, 1, 1)])).to_pylist() == ["0001-01-01"]
    assert plain_text(pa.array([True, None])).to_pylist() == ["true", None]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_numbers_that_are_not_finite(kind: pa.DataType) -> None:
    values = pa.array([float("nan"), float("inf"), float("-inf"), None, 0.5], kind)
    assert json_text(values).to_pylist() == ['"NaN"', '"Infinity"', '"-Infinity"', None, "0.5"]
    assert plain_text(values).to_pylist() == ["NaN", "Infinity", "-Infinity", None, "0.5"]
    with pytest.raises(NotJsonError):
        json_text(values, finite=True)
    with pytest.raises(NotJsonError):
        json_text(pa.array([values.to_pylist()], pa.list_(kind)), finite=True)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_floats_read_back_as_the_same_value_of_their_width(numbers: list[float]) -> None:
    values = pa.array(numbers, pa.float32())
    read = pa.array([float(json.loads(t)) for t in json_text(values).to_pylist()], pa.float32())
    assert read.equals(values)


def test_pieces_are_all_of_it() -> None:
    batch = pa.record_batch({"a": ["x" * (1 << 20)] * 20})
    found = list(pieces(batch))
    assert len(found) > 1
    assert sum(p.num_rows for p in found) == 20
    assert list(pieces(batch.slice(0, 0))) == []


def test_content_of_slices() -> None:
    lines = pa.array(["a", "bc", None, "d"], pa.large_string())
    assert bytes(content(lines.slice(1))) == b"bcd"
    assert bytes(content(pa.array([], pa.large_string()))) == b""


def test_a_stream_that_takes_a_part_at_a_time() -> None:
    class Slow(io.BytesIO):
        def write(self, part: object) -> int:
            return super().write(bytes(part)[:3])  # type: ignore[call-overload]

    out = Slow()
    write_all(out, memoryview(b"abcdefgh"))
    assert out.getvalue() == b"abcdefgh"
