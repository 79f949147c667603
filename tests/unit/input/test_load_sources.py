"""What people hand to load, sorted out by its kind; everything else is refused in our own words."""

from __future__ import annotations

import io
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from load_cases import CATALOG, edge, node

from omnigraph.errors import InputError, OmnigraphError, UsageError
from omnigraph.ids import SeededIds
from omnigraph.input.sources import Given, sort_out
from omnigraph.input.threads import read_input


def _plan(source: object, type_name: str | None = None) -> Given:
    return sort_out(source, type_name=type_name)


def _load(source: object, type_name: str | None = None):
    return read_input(_plan(source, type_name), CATALOG, SeededIds(1))


def _knows(**columns: object) -> pa.Table:
    return pa.table({"src": ["a"], "dst": ["b"], **columns})


# --- mappings ---------------------------------------------------------------------------------


def test_two_spellings_of_one_edge_type_are_refused():
    with pytest.raises(UsageError, match="Knows") as caught:
        _load({"Knows": _knows(), "knows": _knows()})
    assert "'Knows' and 'knows'" in caught.value.message


def test_mappings_mix_tables_rows_and_batches():
    batch = pa.record_batch({"imo": [1], "name": ["x"]})
    loaded = _load(
        {
            "Bare": [{"note": "a"}, {"id": "b"}],
            "Knows": _knows(),
            "Vessel": [batch, batch.slice(0, 0), batch],
            "callsat": ({"from": str(i), "dst": "b"} for i in range(2)),
            "Named": pd.DataFrame({"id": ["n"]}),
        }
    )
    assert {k: v.rows.num_rows for k, v in loaded.items()} == {
        "node:Bare": 2,
        "edge:Knows": 1,
        "node:Vessel": 2,
        "edge:CallsAt": 2,
        "node:Named": 1,
    }
    assert loaded["node:Bare"].origins.at(1) == ("Bare", 2)
    assert loaded["edge:CallsAt"].rows["src"].to_pylist() == ["0", "1"]


def test_no_dict_rows_mention_no_type():
    assert _load({"Bare": [], "Knows": ()}) == {}
    assert _load([], "Bare") == {}


def test_batches_with_a_type():
    batches = [pa.record_batch({"note": ["a"]}), pa.record_batch({"note": ["b"]})]
    assert _load(batches, "Bare")["node:Bare"].rows["note"].to_pylist() == ["a", "b"]
    with pytest.raises(InputError, match="batches do not have the same columns"):
        _load([*batches, pa.record_batch({"id": ["b"]})], "Bare")


def test_only_what_lasts_is_read_twice():
    reader = pa.RecordBatchReader.from_batches(_knows().schema, _knows().to_batches())
    assert _plan({"Bare": [{"note": "a"}], "Knows": _knows()}).repeatable
    assert not _plan({"Knows": reader}).repeatable
    assert not _plan({"Bare": iter([{"note": "a"}])}).repeatable
    assert not _plan(iter([{"note": "a"}]), "Bare").repeatable


def test_rows_of_a_mapping_are_refused_by_their_type_and_number():
    with pytest.raises(InputError, match="Bare:2: Bare has no property"):
        _load({"Bare": [{"note": "a"}, {"nott": "b"}]})


@pytest.mark.parametrize(
    "source",
    [
        {},
        {1: _knows()},
        {"type": "Bare", "data": {"note": "a"}},
        {"Bare": b"x"},
        {"Bare": {"note": ["a"]}},
        {"Bare": 7},
        {"Bare": None},
    ],
)
def test_mappings_that_are_no_input(source):
    with pytest.raises(UsageError, match="cannot load from this mapping"):
        _load(source)


# --- data frames and their like ---------------------------------------------------------------


@pytest.mark.parametrize("series", [pd.Series(["a"], name="note"), pd.Index(["a"])])
def test_a_series_is_no_table(series):
    for load in (
        lambda: _load(series, "Bare"),
        lambda: _load(series),
        lambda: _load({"Bare": series}),
    ):
        with pytest.raises(UsageError, match="is not a table") as caught:
            load()
        assert "to_frame()" in (caught.value.hint or "")


def test_subclasses_of_data_frames_are_data_frames():
    class Mine(pd.DataFrame):
        pass

    assert _load(Mine({"note": ["a"]}), "Bare")["node:Bare"].rows.num_rows == 1
    with pytest.raises(UsageError, match="a table needs its type"):
        _load(Mine({"note": ["a"]}))


def test_whatever_streams_arrow_is_a_table():
    class Stream:
        def __init__(self, table: object) -> None:
            self.table = table

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return self.table.__arrow_c_stream__(requested_schema)

    assert _load({"Bare": Stream(pa.table({"note": ["a"]}))})["node:Bare"].rows.num_rows == 1
    with pytest.raises(UsageError, match="a table needs its type"):
        _load(Stream(pa.table({"note": ["a"]})))
    with pytest.raises(UsageError, match="Stream is not a table"):
        _load(Stream(pa.chunked_array([["a"]])), "Bare")


# --- streams ----------------------------------------------------------------------------------


class _OnlyRead:
    def __init__(self, content: object) -> None:
        self.content = content

    def read(self, size: int) -> object:
        content, self.content = self.content, b""
        return content


def test_streams_of_the_caller_stay_open():
    stream = io.BytesIO(node("Bare").encode())
    assert _load(stream)["node:Bare"].rows.num_rows == 1
    assert not stream.closed
    bad = io.BytesIO(b"oops")
    with pytest.raises(InputError):
        _load(bad)
    assert not bad.closed


def test_files_that_load_opened_are_closed(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(node("Bare") + edge("Knows", "a", "b"))
    open_before = set(os.listdir("/proc/self/fd"))
    assert len(_load(path)) == 2
    assert set(os.listdir("/proc/self/fd")) == open_before


def test_an_object_that_can_only_read_is_a_stream():
    for kind in (bytes, bytearray, memoryview):
        content = kind(node("Bare").encode())
        assert _load(_OnlyRead(content))["node:Bare"].rows.num_rows == 1


@pytest.mark.parametrize("content", ["text", None, 7])
def test_streams_that_do_not_give_bytes(content):
    with pytest.raises(UsageError, match="does not give bytes"):
        _load(_OnlyRead(content))


def test_streams_that_cannot_be_read():
    class Sizeless:
        def read(self) -> bytes:
            return b""

    closed = io.BytesIO(b"")
    closed.close()
    with pytest.raises(InputError, match="cannot be read: I/O operation on closed file"):
        _load(closed)
    with pytest.raises(InputError, match="cannot be read: "):
        _load(Sizeless())


@pytest.mark.parametrize("source", ["", [""]])
def test_a_file_without_a_name(source):
    with pytest.raises(UsageError, match="the file name is empty"):
        _load(source)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_names_that_no_file_can_have(name):
    with pytest.raises(InputError, match="cannot be read"):
        _load(name)


def test_nothing_else_gets_through():
    for source in (7, 1.5, object(), np.array([1]), b"x", "", [b"x"], [7], {"a"}):
        for type_name in (None, "Bare"):
            with pytest.raises(OmnigraphError):
                _load(source, type_name)
