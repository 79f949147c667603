"""Text of Arrow input that is no UTF-8 never gets in, and messages stay on one line."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from load_cases import ALL, CATALOG, read

from omnigraph.errors import InputError
from omnigraph.ids import SeededIds
from omnigraph.input.problems import Problem
from omnigraph.input.tables import rows_from_table
from omnigraph.schema.property_values import shown

KNOWS = CATALOG.edges["Knows"]


def strings(*parts: bytes, nulls: bytes | None = None) -> pa.Array:
    """A string array over these bytes, checked by nobody."""
    offsets = np.cumsum([0, *(len(p) for p in parts)]).astype(np.int32)
    mask = None if nulls is None else pa.py_buffer(nulls)
    return pa.StringArray.from_buffers(
        len(parts), pa.py_buffer(offsets), pa.py_buffer(b"".join(parts)), mask
    )


_BAD = strings(b"a", b"b", b"\xff", b"\xc3\xa9", b"\xff")
_LISTS = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 5], pa.int32()), _BAD)


def _load(graph_type, table):
    return rows_from_table(graph_type, table, SeededIds(1), source_name="t").rows


def _message(graph_type, table) -> str:
    with pytest.raises(InputError) as caught:
        _load(graph_type, table)
    return caught.value.message


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("s", _BAD),
        ("s", _BAD.cast(pa.large_string())),
        ("s", _BAD.cast(pa.string_view())),
        ("s", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), _BAD)),
        ("s", pa.chunked_array([_BAD.slice(0, 1), _BAD.slice(1)])),
        ("e", _BAD),
        ("id", _BAD),
        ("ss", _LISTS),
        ("ss", _LISTS.cast(pa.large_list(pa.large_string()))),
    ],
)
def test_text_that_is_no_utf8_is_refused_with_its_row(name, array):
    assert _message(ALL, pa.table({name: array})) == (
        f"t:3: column '{name}': the text is not valid UTF-8"
    )


def test_endpoints_are_text_too():
    good = pa.array(["a"] * 5)
    assert "t:3: column 'src': the text" in _message(KNOWS, pa.table({"src": _BAD, "dst": good}))
    assert "t:3: column 'to': the text" in _message(KNOWS, pa.table({"from": good, "to": _BAD}))


@pytest.mark.parametrize("name", ["b", "on", "at"])
def test_text_that_is_read_as_something_else_is_checked_as_well(name):
    bad = strings(b"\xff")
    assert "t:1: column" in _message(ALL, pa.table({name: bad}))
    assert "t:1: column" in _message(ALL, pa.table({name: bad.cast(pa.string_view())}))


def test_characters_that_are_cut_in_two_by_rows_are_no_text():
    assert "t:1: " in _message(ALL, pa.table({"s": strings(b"\xc3", b"\xa9")}))


def test_bytes_below_a_null_are_not_carried_along():
    nulls = strings(b"a", b"\xff", b"b", nulls=b"\x05")
    for array in (nulls, nulls.cast(pa.large_string()), nulls.slice(1)):
        loaded = _load(ALL, pa.table({"s": array}))["s"]
        assert loaded.to_pylist() == array.to_pylist()
        assert all(b"\xff" not in c.buffers()[2].to_pybytes() for c in loaded.chunks)


def test_bytes_outside_of_a_slice_do_not_matter():
    assert _load(ALL, pa.table({"s": _BAD.slice(0, 2)}))["s"].to_pylist() == ["a", "b"]
    assert _load(ALL, pa.table({"ss": _LISTS.slice(0, 2)}))["ss"].to_pylist() == [["a"], ["b"]]


def test_good_text_with_nulls_is_not_copied():
    column = pa.array(["a", None, "é"])
    loaded = _load(ALL, pa.table({"s": column}))["s"].chunk(0)
    assert loaded.buffers()[2].address == column.buffers()[2].address


def test_a_name_of_a_column_that_is_no_utf8():
    table = pa.Table.from_arrays([pa.array(["a"])], schema=pa.schema([pa.field(b"\xff", "string")]))
    assert "the name of a column is not valid UTF-8" in _message(ALL, table)


# --- one finding, one line --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a\nb\t\0", r'"a\nb\t\u0000"'),
        ("\x7f\x85\u2028\u202e", r'"\u007f\u0085\u2028\u202e"'),
        ("\ud800", r'"\ud800"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("grüße …", '"grüße …"'),
        ("x" * 99, '"' + "x" * 59 + "…"),
        pytest.param(10**5000, "an integer of about 5000 digits", id="huge"),
        (-(10**70), "-1" + "0" * 58 + "…"),
    ],
)
def test_values_are_shown_on_one_line(value, expected):
    assert shown(value) == expected


def test_values_that_cannot_be_shown_are_named_by_their_type():
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError("no words")

    class Lines:
        def __repr__(self) -> str:
            return "a\nb"

    assert shown(Mute()) == "a value of type Mute"
    assert shown(Lines()) == r"Lines a\nb"


def test_a_problem_is_one_line():
    problem = Problem(source="a\nb.jsonl", line=1, message="x\ny\x1b[31m")
    assert str(problem) == r"a\nb.jsonl:1: x\ny\u001b[31m"
    assert problem.to_dict()["source"] == "a\nb.jsonl"
    assert "\n" not in _message(ALL, pa.table({"a\nb": [1]}))
    with pytest.raises(InputError) as caught:
        read('{"type":"Vessel","data":{"imo":1,"id":"a\\nb"}}')
    assert caught.value.message.startswith(r'in.jsonl:1: id "a\nb" is not the id')


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"type":"Bare"} x', "1:17: not valid JSON: text after the end of the object"),
        ('{"type":"Bare"}{}', "1:16: not valid JSON: text after the end of the object"),
        ("oops", "1:1: not valid JSON: this is not a JSON value"),
        ('{"type":}', "1:9: not valid JSON: this is not a JSON value"),
        ('{"type":"a\tb"}', "1:11: not valid JSON: a control character must be escaped"),
        ('{"type":"a', "1:9: not valid JSON: the string has no closing quote"),
        ('{"type":"\\x"}', "1:10: not valid JSON: JSON has no such escape"),
        ('{"type":"\\u12"}', "not valid JSON: \\u needs four hexadecimal digits"),
        ("{type:1}", "1:2: not valid JSON: expected the name of a member in double quotes"),
        ('{"type" 1}', "1:9: not valid JSON: expected ':' after the name of a member"),
        ('{"type":"a" 1}', "1:13: not valid JSON: expected ',' or the end of the object or array"),
    ],
)
def test_json_faults_are_told_in_plain_words(line, message):
    with pytest.raises(InputError) as caught:
        read(line)
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ("A A=", "a blank at character 2: blanks and line breaks are not allowed"),
        ("AA\n==", "a line break at character 3: blanks and line breaks are not allowed"),
        ("A-A=", 'character 2 is "-": write + and / instead of - and _'),
        ("Aé==", 'character 2 is "é"'),
        ("A", "its length, 1, is not a multiple of 4"),
        ("A=", "its length, 2, is not a multiple of 4"),
        ("AAAAA", "its length, 5, is not a multiple of 4"),
        ("AA", "its length, 2, is not a multiple of 4 (is the '=' at the end missing?)"),
        ("AA=A", "'=' stands only at the end, once or twice"),
        ("=AAA", "'=' stands only at the end, once or twice"),
        ("A===", "'=' stands only at the end, once or twice"),
    ],
)
def test_base64_faults_are_told_in_plain_words(payload, message):
    table = pa.table({"b": ["base64:" + payload]})
    assert f"t:1: column 'b': not valid base64: {message}" in _message(ALL, table)
