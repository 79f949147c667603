"""The fast path is an optimisation: it accepts nothing that the exact path refuses, and gives equal
rows. Both directions are compared on generated lines, good and bad."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from load_cases import CATALOG, fitting_json, json_scalars, raw_strings, texts

from omnigraph.input import jsonl_exact as exact
from omnigraph.input.jsonl_blocks import read_block
from omnigraph.input.jsonl_fast import header_of, parse_group
from omnigraph.input.record_shape import RecordShape
from omnigraph.schema.catalog import EdgeType, GraphType
from support.examples import examples

_SPACE = st.sampled_from(["", "", "", "", " ", "\t", "  ", "\r"])


@st.composite
def _properties(draw: st.DrawFn, graph_type: GraphType) -> str:
    names = [p.name for p in graph_type.properties] or ["id"]
    chosen = draw(st.lists(st.sampled_from(names), max_size=4, unique=draw(st.integers(0, 9)) > 0))
    if graph_type.name != "Named":
        chosen += draw(st.sampled_from([[], [], ["id"]]))
    members = []
    for name in chosen:
        if name == "id":
            value = draw(texts.map(json.dumps) | st.sampled_from(["null", "1", '"5"']))
        else:
            value = draw(st.just("null") | fitting_json(graph_type.by_name[name].type))
        label = json.dumps(name)
        if draw(st.integers(0, 25)) == 0:
            label = '"' + "".join(f"\\u{ord(c):04x}" for c in name) + '"'
        members.append(f"{label}{draw(_SPACE)}:{draw(_SPACE)}{value}")
    if draw(st.integers(0, 25)) == 0:
        members.append(f"{draw(raw_strings)}:{draw(json_scalars)}")
    return "{" + ("," + draw(_SPACE)).join(members) + "}"


@st.composite
def _line(draw: st.DrawFn, graph_type: GraphType) -> str:
    gap = draw(_SPACE)
    word = "edge" if isinstance(graph_type, EdgeType) else "type"
    members = [f'"{word}":{gap}"{graph_type.name}"']
    if isinstance(graph_type, EdgeType):
        for end in ("from", "to"):
            value = draw(texts.map(json.dumps) if draw(st.integers(0, 20)) else json_scalars)
            members.append(f'"{end}":{value}')
    if draw(st.integers(0, 8)):
        data = draw(_properties(graph_type)) if draw(st.integers(0, 20)) else draw(json_scalars)
        members.append(f'"data":{gap}{data}')
    oddity = draw(st.integers(0, 40))
    if oddity == 0:
        members.append(draw(st.sampled_from(members)))
    elif oddity == 1:
        members.reverse()
    elif oddity == 2:
        members.append(f"{draw(raw_strings)}:{draw(json_scalars)}")
    elif oddity == 3:
        members.append("")
    line = "{" + f",{gap}".join(members) + "}"
    if oddity == 4:
        line += draw(st.sampled_from([" ", "x", "{}", line, "}", "\x0c", "\x00", ",", "\r"]))
    elif oddity == 5:
        line = draw(st.sampled_from([" ", "\ufeff", "\x00", "[", "x"])) + line
    elif oddity == 6:
        cut = draw(st.integers(0, len(line)))
        line = line[:cut] + draw(st.sampled_from(["", "\n", "\\", '"', "}", "\x00"])) + line[cut:]
    return line


def _bytes(lines: list[str], cut: int | None) -> bytes:
    raw = "\n".join(lines).encode() + b"\n"
    # A byte that is no UTF-8, somewhere.
    return raw if cut is None else raw[:cut] + b"\xff" + raw[cut + 1 :]


@st.composite
def _blocks(draw: st.DrawFn) -> bytes:
    kinds = draw(st.lists(st.sampled_from(list(CATALOG.types())), min_size=1, max_size=2))
    lines = draw(st.lists(st.sampled_from(kinds).flatmap(_line), min_size=1, max_size=5))
    raw = _bytes(lines, None)
    if draw(st.integers(0, 25)) == 0:
        position = draw(st.integers(0, len(raw) - 2))
        raw = (
            raw[:position]
            + draw(st.sampled_from([b"\xff", b"\xed\xa0\x80", b"\xc0\x80"]))
            + raw[position:]
        )
    return raw


def _exactly(raw: bytes):
    lines = [(i, line) for i, line in enumerate(raw.split(b"\n")[:-1], 1) if line.strip(b" \t\r")]
    return exact.read_lines(lines, RecordShape(CATALOG))


def assert_same_rows(left: pa.Table, right: pa.Table) -> None:
    assert left.schema.equals(right.schema)
    for name in left.column_names:
        a, b = left[name].combine_chunks(), right[name].combine_chunks()
        # Text comparison, because -0.0 equals 0.0.
        assert a.equals(b) and str(a.to_pylist()) == str(b.to_pylist()), name
    left.validate(full=True)


@settings(max_examples=examples(130))
@given(_blocks())
def test_a_block_reads_as_the_exact_path_reads_it(raw: bytes):
    parts, problems = _exactly(raw)
    result = read_block(raw, CATALOG, RecordShape(CATALOG))
    assert result.problems == problems
    if problems:
        return
    by_key = {p.type.table_key: p for p in result.parts}
    assert set(by_key) == {p.type.table_key for p in parts}
    for part in parts:
        same = by_key[part.type.table_key]
        assert same.lines.tolist() == part.lines.tolist()
        assert_same_rows(same.rows, part.rows)


@settings(max_examples=examples(130))
@given(st.sampled_from(list(CATALOG.types())).flatmap(_line))
def test_the_fast_path_accepts_nothing_that_the_exact_path_refuses(line: str):
    raw = line.encode() + b"\n"
    header = header_of(raw, CATALOG)
    if header is None or raw.count(b"\n") > 1 or not raw.endswith(b"}\n"):
        return
    rows = parse_group(header, raw, np.array([0]), np.array([len(raw)]))
    if rows is not None:
        parts, problems = _exactly(raw)
        assert not problems
        assert_same_rows(rows, parts[0].rows)
