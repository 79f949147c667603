"""A schema with every kind of property, and generated data for it."""

from __future__ import annotations

import io
import json
from datetime import date

import pyarrow as pa
from hypothesis import strategies as st

from omnigraph.ids import SeededIds
from omnigraph.input.loaded_rows import LoadedRows
from omnigraph.input.sources import sort_out
from omnigraph.input.streams import GivenStream
from omnigraph.input.threads import read_input
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog, GraphType, PropertyType, Scalar
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.temporal import DAY_MAX, DAY_MIN, MS_MAX, MS_MIN

SCHEMA = """
node All {
  s: String?  b: Blob?  t: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?
  on: Date?  at: DateTime?  v: Vector(3)?  e: enum(x, y)?
  ss: [String]?  ts: [Bool]?  is: [I32]?  ls: [I64]?  us: [U32]?  ws: [U64]?
  fs: [F32]?  ds: [F64]?  ons: [Date]?  ats: [DateTime]?
}
node Vessel { imo: I64 @key  name: String }
node Named  { id: String @key  rank: I32? }
node Pair   { a: I64  b: String  @key(a, b) }
node Bare   { note: String? }
edge Knows: Bare -> Bare { since: I32?  on: Date?  f: F32? }
edge CallsAt: Vessel -> Bare { @key(@src, @dst) }
"""
CATALOG: Catalog = compile_schema(SCHEMA)
ALL = CATALOG.nodes["All"]


def source(text: str | bytes, name: str = "in.jsonl") -> GivenStream:
    raw = text.encode() if isinstance(text, str) else text
    return GivenStream(name=name, open=lambda: io.BytesIO(raw))


def read(text: str | bytes, catalog: Catalog = CATALOG) -> dict[str, LoadedRows]:
    return read_input(sort_out(source(text)), catalog, SeededIds(7))


def node(name: str, /, **properties: object) -> str:
    return json.dumps({"type": name, "data": properties}) + "\n"


def edge(name: str, src: str, dst: str, /, **properties: object) -> str:
    return json.dumps({"edge": name, "from": src, "to": dst, "data": properties}) + "\n"


# --- generated tables -------------------------------------------------------------------------

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_finite = {"allow_nan": False, "allow_infinity": False}
_ELEMENTS: dict[Scalar, st.SearchStrategy[object]] = {
    Scalar.STRING: texts,
    Scalar.BLOB: st.binary(max_size=20),
    Scalar.BOOL: st.booleans(),
    Scalar.I32: st.integers(-(2**31), 2**31 - 1),
    Scalar.I64: st.integers(-(2**63), 2**63 - 1),
    Scalar.U32: st.integers(0, 2**32 - 1),
    Scalar.U64: st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
    Scalar.F32: st.floats(width=32, **_finite),
    Scalar.F64: st.floats(**_finite),
    Scalar.DATE: st.integers(DAY_MIN, DAY_MAX) | st.sampled_from([DAY_MIN, DAY_MAX, -1]),
    Scalar.DATETIME: st.integers(MS_MIN, MS_MAX) | st.sampled_from([MS_MIN, MS_MAX, -1]),
}


def arrow_values(property_type: PropertyType) -> st.SearchStrategy[object]:
    if property_type.vector_size is not None:
        n = property_type.vector_size
        return st.lists(_ELEMENTS[Scalar.F32], min_size=n, max_size=n)
    one = _ELEMENTS[property_type.scalar]
    return st.lists(one, max_size=3) if property_type.is_list else one


@st.composite
def tables(draw: st.DrawFn, graph_type: GraphType = ALL) -> pa.Table:
    """Rows of an un-keyed type, nulls where they may be."""
    count = draw(st.integers(0, 6))
    columns = []
    for field in table_schema(graph_type):
        prop = graph_type.by_name.get(field.name)
        values = texts if prop is None else arrow_values(prop.type)
        if prop is not None and prop.type.nullable:
            values = st.none() | values
        columns.append(pa.array([draw(values) for _ in range(count)], field.type))
    return pa.Table.from_arrays(columns, schema=table_schema(graph_type))


# --- generated lines, good and bad ------------------------------------------------------------

_DIGITS = st.integers(0, 10**12).map(str)
_NUMBERS = """
0 -0 0.0 -0.0 1.0 1e5 1E+2 1e400 -1e400 1e-400 1e39 3.4028235e38 3.4028236e38 5e-324 1e-46 01 +1 1. .5
1e - NaN Infinity -Infinity nan 0x10 1_000 2147483648 -2147483649 4294967296 18446744073709551615
18446744073709551616 9223372036854775808 16777217 9007199254740993 16777217.0000000000000000000001
0.1 0.3 1.00000017881393432617187499 1.00000017881393432617187501
"""
numbers = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.sampled_from(_NUMBERS.split()),
    st.floats(**_finite).map(repr),
    st.builds(lambda a, b: f"{a}.{b}", _DIGITS, _DIGITS),
    st.just("9" * 5000),
    st.just("9" * 500),
)
raw_strings = st.one_of(
    texts.map(json.dumps),
    texts.map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.sampled_from(
        [
            r'"\u0000"', r'"\ud800"', r'"\udc00"', r'"\ud83d\ude00"', r'"\ude00\ud83d"', r'"\/"',
            r'"\x"', r'"\u12"', '"\x01"', '"\x00"', '"\t"', '"\x7f"', '"', '""', r'"\"', "'a'",
            '"base64:"', '"base64:AA=="', '"base64:AA"', '"base64:A A="', '"base64:AB=="', '"s3://x"',
        ]
    ),
)  # fmt: skip
date_texts = st.one_of(
    st.dates().map(str),
    st.sampled_from(
        ["0000-01-01", "2020-02-30", "2020-1-1", "20200101", "2020-01-01T00:00:00Z", "-001-01-01",
         "2020-01-01 ", " 2020-01-01", "２０２０-01-01", "10000-01-01", "2020-01-01\n", ""]
    ),
)  # fmt: skip


@st.composite
def instant_texts(draw: st.DrawFn) -> str:
    day = draw(date_texts | st.just("2020-02-29"))
    if draw(st.booleans()):
        return day
    clock = draw(
        st.sampled_from(
            ["00:00:00", "23:59:59", "12:30", "24:00:00", "23:59:60", "12", "1230", "123000", "1:2",
             "12:60:00", "12:30:15.", "12:30:15.1", "12:30:15.123", "12:30:15.123000", "12:30.5",
             "12:30:15.1230001", "12:30:15.1234", "12:30:15,5", "12:3015", "12:30:15.123000000000",
             "123000.5", "12:", ""]
        )
    )  # fmt: skip
    zone = draw(
        st.sampled_from(
            ["", "Z", "z", "+00:00", "-00:00", "+01:30", "-2359", "+24:00", "+12:60", "+05", "+5",
             "+1:30", " Z", "UTC", "+0", "+010", "+01:3", "++01", "+01:30:00"]
        )
    )  # fmt: skip
    return day + draw(st.sampled_from(["T", "T", " ", "t", "  "])) + clock + zone


json_scalars = st.one_of(
    numbers,
    raw_strings,
    st.sampled_from(["true", "false", "null", "True", "nul", "", "{}", "[]", "[[1]]", '{"a":1}']),
    date_texts.map(json.dumps),
    instant_texts().map(json.dumps),
    st.just("[" * 3000 + "]" * 3000),
)


@st.composite
def fitting_json(draw: st.DrawFn, property_type: PropertyType) -> str:
    """A value that mostly fits the type, in one of its spellings."""
    if property_type.vector_size is not None or property_type.is_list:
        size = property_type.vector_size
        length = draw(st.sampled_from([0, 1, 2, size or 3, size or 3, size or 3]))
        one = PropertyType(scalar=Scalar.F32 if size else property_type.scalar)
        return "[" + ",".join(draw(fitting_json(one)) for _ in range(length)) + "]"
    if draw(st.integers(0, 30)) == 0:
        return draw(json_scalars)
    scalar = property_type.scalar
    if scalar in (Scalar.STRING,):
        return draw(texts.map(json.dumps) | texts.map(lambda s: json.dumps(s, ensure_ascii=False)))
    if scalar is Scalar.BLOB:
        return draw(st.sampled_from(['"base64:"', '"base64:AAE="', '"base64:/+8="']))
    if scalar is Scalar.DATE:
        return draw(st.dates().map(lambda d: f'"{d}"') | st.integers(-800000, 3000000).map(str))
    if scalar is Scalar.DATETIME:
        return draw(
            instant_texts().map(json.dumps)
            | st.datetimes().map(lambda d: f'"{d.replace(microsecond=0).isoformat()}Z"')
            | st.integers(-(10**14), 3 * 10**14).map(str)
        )
    if scalar is Scalar.BOOL:
        return draw(st.sampled_from(["true", "false"]))
    if scalar.is_float:
        return draw(numbers | st.floats(width=32, **_finite).map(repr))
    return draw(_ELEMENTS[scalar].map(str))


def day(text: str) -> date:
    return date.fromisoformat(text)
