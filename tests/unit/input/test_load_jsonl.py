from __future__ import annotations

import io
import json
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pytest
from load_cases import CATALOG, day, edge, node, read, source

from omnigraph.errors import ErrorKind, InputError, NotFoundError
from omnigraph.ids import SeededIds
from omnigraph.input import jsonl_blocks as blocks
from omnigraph.input.sources import sort_out
from omnigraph.input.threads import read_input
from omnigraph.schema.arrow import table_schema
from support import places


def _message(text: str | bytes) -> str:
    with pytest.raises(InputError) as caught:
        read(text)
    return caught.value.message


def _one(name: str, **properties: object) -> object:
    """The single property of a single row, after loading."""
    rows = read(node(name, **properties))[f"node:{name}"].rows
    return rows[next(iter(properties))][0].as_py()


# --- what is accepted -------------------------------------------------------------------------


def test_types_come_in_order_of_first_mention_with_their_origins():
    text = edge("Knows", "a", "b", id="k") + "\n" + node("Bare", id="a") + node("Bare", id="b")
    loaded = read(text)
    assert list(loaded) == ["edge:Knows", "node:Bare"]
    bare = loaded["node:Bare"]
    assert bare.rows["id"].to_pylist() == ["a", "b"]
    assert [bare.origins.at(i) for i in range(2)] == [("in.jsonl", 3), ("in.jsonl", 4)]


def test_rows_have_exactly_the_schema_of_the_table():
    for name in ("All", "Bare"):
        rows = read(node(name))[f"node:{name}"].rows
        assert rows.schema.equals(table_schema(CATALOG.nodes[name]), check_metadata=True)


def test_several_sources_count_their_own_lines():
    sources = [source(node("Bare"), "a"), source("\n" + node("Bare") + node("Bare"), "b")]
    origins = read_input(sort_out(sources), CATALOG, SeededIds(1))["node:Bare"].origins
    assert [origins.at(i) for i in range(3)] == [("a", 1), ("b", 2), ("b", 3)]


@pytest.mark.parametrize("text", ["", "\n\n  \n\t\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_nothing_in_gives_nothing(text):
    assert read(text) == {}


def test_bom_crlf_and_a_missing_last_newline_do_not_matter():
    text = b"\xef\xbb\xbf" + b'{"type":"Bare","data":{"note":"a"}}\r\n' * 2 + b'{"type":"Bare"}'
    assert read(text)["node:Bare"].rows["note"].to_pylist() == ["a", "a", None]


def test_fresh_ids_fill_the_gaps_in_ascending_order():
    text = node("Bare") + node("Bare", id="x") + node("Bare")
    first, given, last = read(text)["node:Bare"].rows["id"].to_pylist()
    assert given == "x" and len(first) == len(last) == 26 and first < last


def test_ids_of_keyed_types_are_canonical():
    text = node("Vessel", imo=100) + node("Vessel", imo=7, id="7") + node("Pair", a=1, b='x"')
    loaded = read(text + edge("callsat", "7", "b"))
    assert loaded["node:Vessel"].rows["id"].to_pylist() == ["100", "7"]
    assert loaded["node:Pair"].rows["id"].to_pylist() == ['["1","x\\""]']
    assert loaded["edge:CallsAt"].rows["id"].to_pylist() == ['["7","b"]']


def test_a_missing_key_or_required_value_is_left_to_the_validator():
    rows = read(node("Vessel", name=None) + node("Vessel", id="5"))["node:Vessel"].rows
    assert rows["id"].to_pylist() == [None, None] and rows["name"].null_count == 2


def test_a_declared_id_is_the_id():
    assert _one("Named", id="n") == "n"
    assert read(node("Named", rank=1))["node:Named"].rows["id"].to_pylist() == [None]


def test_edge_names_in_any_case_and_without_data():
    text = '{"edge":"KNOWS","from":"a","to":"b"}\n{"edge":"knows","from":"c","to":"d"}\n'
    rows = read(text)["edge:Knows"].rows
    assert rows["src"].to_pylist() == ["a", "c"] and rows["dst"].to_pylist() == ["b", "d"]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("on", "2026-01-02", day("2026-01-02")),
        ("on", 0, day("1970-01-01")),
        ("at", "2026-01-02T03:04:05.678Z", datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)),
        ("at", "2026-01-02T03:04:05.678000000", datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)),
        ("at", "2026-01-02 03:04+01:00", datetime(2026, 1, 2, 2, 4, tzinfo=UTC)),
        ("at", "2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("at", 1000, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
        ("w", 2**64 - 1, 2**64 - 1),
        ("d", 1, 1.0),
        ("v", [1, 2.5, -3], [1.0, 2.5, -3.0]),
        ("b", "base64:AAE=", b"\x00\x01"),
        ("ss", [], []),
        ("e", "not a member", "not a member"),
    ],
)
def test_values(name, value, expected):
    assert _one("All", **{name: value}) == expected


def test_f32_is_rounded_once():
    # Half way between two singles after rounding to a double, but just above it in truth.
    text = "1.00000017881393432617187501"
    rows = read(
        f'{{"type":"All","data":{{"f":{text}}}}}' + "\n" + f'{{"data":{{"f":{text}}},"type":"All"}}'
    )
    low, high = np.float32(1.0000001), np.nextafter(np.float32(1.0000001), np.float32(2))
    assert low < high
    assert rows["node:All"].rows["f"].to_pylist() == [float(high)] * 2


def test_a_mix_of_usual_and_unusual_lines_keeps_the_order():
    usual, unusual = (
        '{{"type":"Bare","data":{{"note":"{0}"}}}}',
        '{{"data":{{"note":"{0}"}},"type":"Bare"}}',
    )
    lines = [(unusual if i % 3 == 1 else usual).format(i) for i in range(2000)]
    loaded = read("\n".join(lines))["node:Bare"]
    assert loaded.rows["note"].to_pylist() == [str(i) for i in range(2000)]
    assert places.lines(loaded.origins) == list(range(1, 2001))


def test_few_unusual_lines_do_not_make_the_others_slow(monkeypatch):
    exactly: list[int] = []
    plain = blocks.exact.read_lines
    monkeypatch.setattr(
        blocks.exact,
        "read_lines",
        lambda lines, shape, **more: plain(
            ((exactly.append(n) or (n, x)) for n, x in lines), shape, **more
        ),
    )
    lines = [node("All", w=i).replace("{}", "") for i in range(5000)]
    lines[1234] = node("All", w=0).replace("0", "-0")
    assert read("".join(lines))["node:All"].rows.num_rows == 5000
    assert 1235 in exactly and len(exactly) < 512


def test_many_types_and_spellings_in_one_block():
    text = "".join(
        f'{{"type":{" " * (i % 40)}"Bare","data":{{"id":"{i}"}}}}\n' + node("Vessel", imo=i)
        for i in range(400)
    )
    loaded = read(text)
    assert loaded["node:Bare"].rows["id"].to_pylist() == [str(i) for i in range(400)]
    assert loaded["node:Vessel"].rows["imo"].to_pylist() == list(range(400))


def test_blocks_are_put_back_into_order(monkeypatch):
    monkeypatch.setattr(blocks.cut_blocks, "__defaults__", (4096,))
    text = "".join(node("Bare", id=str(i)) for i in range(3000))
    seen: list[int] = []
    loaded = read_input(sort_out(source(text)), CATALOG, SeededIds(1), progress=seen.append)[
        "node:Bare"
    ]
    assert loaded.rows["id"].to_pylist() == [str(i) for i in range(3000)]
    assert places.lines(loaded.origins) == list(range(1, 3001))
    assert seen == sorted(seen) and seen[-1] == len(text) and len(seen) > 10


def test_a_stream_that_gives_few_bytes_at_a_time_is_read_in_whole_blocks():
    text = "".join(node("Bare", id=str(i)) for i in range(100)).encode()

    class Drip(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 7, 7))

    assert list(blocks.cut_blocks(Drip(text), 1000))[-1].endswith(b"\n")
    got = read_input(sort_out(Drip(text)), CATALOG, SeededIds(1))
    assert got["node:Bare"].rows.num_rows == 100


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1]", "in.jsonl:1: expected a JSON object, got an array"),
        ('{"type":"Bare"', "in.jsonl:1:15: not valid JSON"),
        ('{"type":"Bare"} x', "in.jsonl:1:17: not valid JSON: text after the end of the object"),
        ('{"type":"Bare"}{"type":"Bare"}', "not valid JSON: text after the end of the object"),
        ("{}", 'exactly one of the members "type" and "edge", here are neither'),
        ('{"type":"Bare","edge":"Knows"}', "here are both"),
        ('{"type":7}', '"type" must be a string, got 7'),
        ('{"type":"Vesel"}', "unknown node type \"Vesel\" (did you mean 'Vessel'?)"),
        ('{"type":"Knows"}', 'Knows is an edge type: write "edge"'),
        ('{"edge":"Bare"}', 'Bare is a node type: write "type"'),
        ('{"type":"Bare","note":"x"}', 'unexpected member "note" (properties belong into "data")'),
        ('{"type":"Bare","from":"x"}', 'unexpected member "from" (allowed are type, data)'),
        ('{"type":"Bare","data":[]}', '"data" must be an object, got an array'),
        ('{"type":"Bare","data":null}', '"data" must be an object, got null'),
        ('{"type":"Bare","data":{"nott":"x"}}', "Bare has no property \"nott\" (did you mean 'note'?)"),
        ('{"type":"Bare","data":{"_tombstone":true}}', 'no property "_tombstone"'),
        ('{"type":"Bare","data":{"id":7}}', "Bare.id: expected String, got 7"),
        ('{"type":"Bare","type":"Bare"}', 'member "type" occurs twice'),
        ('{"type":"Bare","data":{"note":"a","n\\u006fte":"b"}}', 'member "note" occurs twice'),
        ('{"type":"Bare","data":{"note":{"a":1,"a":2}}}', 'member "a" occurs twice'),
        ('{"type":"Bare","data":{"note":"\\ud800"}}', "half of a surrogate pair"),
        ('{"edge":"Knows","from":"a"}', 'an edge needs the member "to"'),
        ('{"edge":"Knows","from":1,"to":"b"}', '"from" is the id of a node: expected String, got 1 (write "1")'),
        ('{"edge":"Knows","from":"a","to":"b","data":{"src":"a"}}', 'the endpoints are the members "from" and "to"'),
        ('{"type":"Vessel","data":{"imo":1,"id":"2"}}', 'id "2" is not the id that the key gives ("1")'),
        ('{"type":"All","data":{"i":1.0}}', "All.i: expected I32, got 1.0"),
        ('{"type":"All","data":{"i":2147483648}}', "All.i: 2147483648 is out of range for I32"),
        ('{"type":"All","data":{"u":-1}}', "All.u: -1 is out of range for U32"),
        ('{"type":"All","data":{"i":true}}', "All.i: expected I32, got true"),
        ('{"type":"All","data":{"l":"1"}}', 'All.l: expected I64, got "1"'),
        ('{"type":"All","data":{"t":1}}', "All.t: expected Bool, got 1"),
        ('{"type":"All","data":{"s":1}}', "All.s: expected String, got 1"),
        ('{"type":"All","data":{"d":NaN}}', "NaN is not a number of JSON"),
        ('{"type":"All","data":{"d":1e400}}', "All.d: 1e400 is out of range for F64"),
        ('{"type":"All","data":{"f":1e39}}', "All.f: 1e39 is out of range for F32"),
        ('{"type":"All","data":{"on":"2026-01-02T00:00:00Z"}}', "is not a Date (YYYY-MM-DD"),
        ('{"type":"All","data":{"on":"2026-02-30"}}', "is not a Date"),
        ('{"type":"All","data":{"at":"2026-01-02T00:00:00.0001Z"}}', "is not a DateTime"),
        ('{"type":"All","data":{"v":[1,2]}}', "All.v: expected Vector(3), got 2 numbers"),
        ('{"type":"All","data":{"v":[1,2,null]}}', "All.v: element 2 of the list is null"),
        ('{"type":"All","data":{"ss":["a",null]}}', "All.ss: element 1 of the list is null"),
        ('{"type":"All","data":{"b":"s3://x/y"}}', "external blobs are not enabled for this graph"),
        ('{"type":"All","data":{"b":"base64:A"}}', "All.b: not valid base64"),
        (b'{"type":"Bare","data":{"note":"\xff"}}', "not valid UTF-8: byte 0xff at byte 32"),
        ("[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_refusals_name_the_place_and_the_reason(line, message):
    assert message in _message(line)


def test_problems_are_collected_and_bounded():
    text = node("Bare") + node("Bare", x=1) + "\n" + node("Bare", y=1, z=2)
    with pytest.raises(InputError) as caught:
        read(text)
    problems = caught.value.details["problems"]
    assert [(p["source"], p["line"]) for p in problems] == [("in.jsonl", n) for n in (2, 4, 4)]
    assert caught.value.details["problem_count"] == 3
    with pytest.raises(InputError) as caught:
        read(node("Bare", x=1) * 100)
    assert caught.value.details["problem_count"] == 20
    assert caught.value.message.endswith("stopped reading after 20 problems")


def test_lines_are_numbered_through_all_blocks(monkeypatch):
    monkeypatch.setattr(blocks.cut_blocks, "__defaults__", (4096,))
    text = "".join(node("Bare", id=str(i)) for i in range(3000)) + "oops\n"
    assert _message(text).startswith("in.jsonl:3001:1: not valid JSON")


def test_a_line_beyond_the_limit_is_refused(monkeypatch):
    monkeypatch.setattr(blocks, "LINE_BYTES_MAX", 5000)
    fits = node("Bare", note="x" * (5000 - len(node("Bare", note="")) + 1))
    assert len(fits) == 5001 and read(fits)["node:Bare"].rows.num_rows == 1
    assert "in.jsonl:2: the line is longer than" in _message(node("Bare") + "x" * 5001)
    monkeypatch.setattr(blocks.cut_blocks, "__defaults__", (1024,))
    assert "in.jsonl:2: the line is longer than" in _message(node("Bare") + fits[:-2] + "x" * 9000)


def test_files(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(node("Bare"))
    assert sort_out(path).size_bytes == path.stat().st_size
    assert read_input(sort_out(path), CATALOG, SeededIds(1))["node:Bare"].rows.num_rows == 1
    with pytest.raises(NotFoundError, match=r"no\.jsonl: no such file") as missing:
        read_input(sort_out(tmp_path / "no.jsonl"), CATALOG, SeededIds(1))
    assert missing.value.kind is ErrorKind.FILE_NOT_FOUND
    assert read_input(sort_out(tmp_path), CATALOG, SeededIds(1))["node:Bare"].rows.num_rows == 1


def test_equal_property_names_of_different_types_do_not_clash():
    loaded = read(node("All", f=1.5, on="2020-01-01") + edge("Knows", "a", "b", f=2, on=3))
    assert loaded["edge:Knows"].rows["on"].type == pa.date32()
    assert json.dumps(loaded["node:All"].rows["f"].to_pylist()) == "[1.5]"


def test_unusual_starts_do_not_slow_usual_lines_of_the_same_block(monkeypatch):
    exactly: list[int] = []
    plain = blocks.exact.read_lines
    monkeypatch.setattr(
        blocks.exact,
        "read_lines",
        lambda lines, shape, **more: plain(
            ((exactly.append(n) or (n, x)) for n, x in lines), shape, **more
        ),
    )
    odd = [
        '{"type":"Bare"}\n',
        '{"data":{"note":"%d"},"type":"Bare"}\n',
        '{"edge":"KNOWS" , "from":"a","to":"b"}\n',
    ]
    text = "".join(
        (o % i if "%" in o else o) + edge("Knows", "a", "b", since=i)
        for i in range(50)
        for o in odd
    )
    loaded = read(text)
    assert len(exactly) == 100
    assert loaded["edge:Knows"].rows.num_rows == 200
    assert places.lines(loaded["node:Bare"].origins)[:4] == [1, 3, 7, 9]


def test_edges_with_and_without_data_share_a_block():
    lines = [
        '{"edge":"Knows","from":"a","to":"b"}',
        '{"edge":"Knows","from":"a","to":"b","data":{"since":null}}',
    ]
    assert read("\n".join(lines * 3))["edge:Knows"].rows.num_rows == 6
    assert '"data" must be an object' in _message(
        "\n".join([*lines, lines[0][:-1] + ',"data":null}'])
    )
