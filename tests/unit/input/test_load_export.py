from __future__ import annotations

import io
import json

import pyarrow as pa
import pytest
from hypothesis import given
from load_cases import ALL, CATALOG, read, tables
from test_load_fast_equals_exact import assert_same_rows

from omnigraph.errors import CorruptionError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.json_text import write_jsonl


def _export(graph_type: GraphType, rows: pa.Table) -> bytes:
    out = io.BytesIO()
    assert write_jsonl(graph_type, rows.to_batches(), out) == rows.num_rows
    return out.getvalue()


@given(tables(ALL))
def test_exported_nodes_load_back_equal(rows: pa.Table):
    loaded = read(_export(ALL, rows))
    if rows.num_rows:
        assert_same_rows(loaded["node:All"].rows, rows)


@given(tables(CATALOG.edges["Knows"]))
def test_exported_edges_load_back_equal(rows: pa.Table):
    loaded = read(_export(CATALOG.edges["Knows"], rows))
    if rows.num_rows:
        assert_same_rows(loaded["edge:Knows"].rows, rows)


@given(tables(ALL))
def test_lines_are_what_a_json_library_would_write(rows: pa.Table):
    for line, row in zip(_export(ALL, rows).splitlines(), rows.to_pylist(), strict=True):
        record = json.loads(line)
        assert list(record) == ["type", "data"]
        assert list(record["data"]) == [n for n in rows.column_names if row[n] is not None]
        assert record["data"]["id"] == row["id"] and record["data"].get("s") == row["s"]


def test_the_spelling_of_a_line():
    schema = table_schema(CATALOG.edges["Knows"])
    rows = pa.Table.from_pylist(
        [{"id": "k\n1", "src": 'a"', "dst": "ö", "since": 2001, "on": None, "f": 0.1}], schema
    )
    assert _export(CATALOG.edges["Knows"], rows).decode() == (
        '{"edge":"Knows","from":"a\\"","to":"ö","data":{"id":"k\\n1","since":2001,"f":0.1}}\n'
    )


def test_dates_and_instants_are_iso():
    rows = read('{"type":"All","data":{"id":"1","on":-1,"at":-1,"ats":[0]}}')["node:All"].rows
    assert _export(ALL, rows).decode() == (
        '{"type":"All","data":{"id":"1","on":"1969-12-31","at":"1969-12-31T23:59:59.999Z",'
        '"ats":["1970-01-01T00:00:00.000Z"]}}\n'
    )


def test_an_id_that_is_a_property_is_written_once():
    rows = read('{"type":"Named","data":{"id":"n","rank":1}}')["node:Named"].rows
    assert _export(CATALOG.nodes["Named"], rows) == b'{"type":"Named","data":{"id":"n","rank":1}}\n'


def test_slices_and_empty_batches_are_written_right():
    rows = read("".join(f'{{"type":"Bare","data":{{"id":"{i}"}}}}\n' for i in range(5)))
    batch = rows["node:Bare"].rows.to_batches()[0]
    out = io.BytesIO()
    assert write_jsonl(CATALOG.nodes["Bare"], [batch.slice(1, 2), batch.slice(0, 0)], out) == 2
    assert [json.loads(x)["data"]["id"] for x in out.getvalue().splitlines()] == ["1", "2"]


def test_a_number_that_json_cannot_carry_is_not_written():
    schema = table_schema(ALL)
    rows = pa.Table.from_pylist([{"id": "1", "d": float("nan")}], schema)
    with pytest.raises(CorruptionError, match=r"All\.d: JSON cannot carry"):
        _export(ALL, rows)
