from __future__ import annotations

import contextlib
import hashlib

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_texts import schema_texts

from omnigraph.errors import CorruptionError, FormatError
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import from_ir, schema_hash, to_ir
from support.examples import examples

TEXT = """
interface Named { name: String @index }
node A implements Named { a: I32 @key  v: Vector(3)? @embed(name, model = "m")  s: enum(x, y)?
  @range(a, 0..9) @check(name, "^x") }
edge E: A -> A @card(0..3) { w: F32 @own(x, y = 1)  @unique(src, w) }
"""


@settings(max_examples=examples(70), deadline=None)
@given(schema_texts())
def test_round_trip_is_exact(text):
    catalog = compile_schema(text)
    ir = to_ir(catalog, text)
    again, source = from_ir(ir)
    assert (again, source) == (catalog, text)
    assert to_ir(again, source) == ir
    assert list(again.nodes) == list(catalog.nodes)


def test_ir_is_deterministic_and_has_what_a_reader_needs():
    ir = to_ir(compile_schema(TEXT), TEXT)
    assert ir == to_ir(compile_schema(TEXT), TEXT)
    document = orjson.loads(ir)
    assert list(document) == sorted(document)
    assert (document["ir_version"], document["source"]) == (1, TEXT)
    assert document["next_id"] == compile_schema(TEXT).next_id


def test_hash_is_sha256_of_the_bytes():
    ir = to_ir(compile_schema(TEXT), TEXT)
    assert schema_hash(ir) == hashlib.sha256(ir).hexdigest()


def test_range_bounds_keep_their_python_type():
    catalog = compile_schema("node A { i: I32 f: F64 @range(i, 1..2) @range(f, 1..2) }")
    again, _ = from_ir(to_ir(catalog, ""))
    assert [type(r.low) for r in again.nodes["A"].ranges] == [int, float]


@pytest.mark.parametrize(
    "ir", [b"", b"{", b"[]", b"null", b"{}", b"5", b'"x"', b"\xff", b'{"ir_version":0}']
)
def test_garbage_is_corruption(ir):
    with pytest.raises(CorruptionError):
        from_ir(ir)


def test_newer_version_is_a_format_error():
    document = orjson.loads(to_ir(compile_schema(TEXT), TEXT)) | {"ir_version": 3}
    with pytest.raises(FormatError, match="version 3"):
        from_ir(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def test_fields_that_say_nothing_are_not_written():
    text = "node A { a: String  b: I32? }  edge E: A -> A"
    document = orjson.loads(to_ir(compile_schema(text), text))
    assert document["nodes"] == [
        {
            "id": 1,
            "incarnation": 2,
            "name": "A",
            "properties": [
                {"id": 3, "name": "a", "type": {"scalar": "String"}},
                {"id": 4, "name": "b", "type": {"scalar": "I32", "nullable": True}},
            ],
        }
    ]
    assert document["edges"] == [
        {"id": 5, "incarnation": 6, "name": "E", "source": "A", "target": "A"}
    ]


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (("nodes", 0), "description", None),
        (("nodes", 0), "unique", []),
        (("nodes", 0, "properties", 0), "annotations", []),
        (("nodes", 0, "properties", 0, "type"), "list", False),
        (("edges", 0), "keyed", False),
        (("edges", 0, "cardinality"), "low", 0),
    ],
)
def test_written_out_default_is_corruption(path, field, value):
    document = orjson.loads(to_ir(compile_schema(TEXT), TEXT))
    entry = document
    for step in path:
        entry = entry[step]
    assert field not in entry
    entry[field] = value
    with pytest.raises(CorruptionError, match="canonical"):
        from_ir(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))


def test_bounds_of_zero_are_no_defaults():
    text = "node A { a: I32 f: F64 @range(a, 0..) @range(f, ..0) @range(a, 0..0) }"
    catalog = compile_schema(text)
    again, _ = from_ir(to_ir(catalog, text))
    assert [(r.low, r.high) for r in again.nodes["A"].ranges] == [(0, None), (None, 0.0), (0, 0)]


def test_other_spelling_of_the_same_document_is_corruption():
    document = orjson.loads(to_ir(compile_schema(TEXT), TEXT))
    with pytest.raises(CorruptionError, match="canonical"):
        from_ir(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
    with pytest.raises(CorruptionError, match="canonical"):
        from_ir(orjson.dumps(document | {"extra": 1}, option=orjson.OPT_SORT_KEYS))


def paths(value, prefix=()):
    yield prefix
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, child in items:
        yield from paths(child, (*prefix, key))


def replaced(document, path, value):
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = replaced(document[path[0]], path[1:], value)
    return copy


DOCUMENT = orjson.loads(to_ir(compile_schema(TEXT), TEXT))


@settings(max_examples=examples(170), deadline=None)
@given(
    st.sampled_from(list(paths(DOCUMENT))),
    st.sampled_from([None, True, -1, 0, 1.5, "", "name", "A", [], ["a"], {}, [[]], 2**63]),
)
def test_changed_value_is_read_as_written_or_refused(path, value):
    ir = orjson.dumps(replaced(DOCUMENT, path, value), option=orjson.OPT_SORT_KEYS)
    with contextlib.suppress(CorruptionError, FormatError):
        assert to_ir(*from_ir(ir)) == ir


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("next_id",), 3),
        (("nodes", 0, "id"), 1),
        (("nodes", 0, "key"), ["gone"]),
        (("nodes", 0, "implements"), ["Gone"]),
        (("nodes", 0, "ranges", 0, "property"), "gone"),
        (("edges", 0, "source"), "Gone"),
        (("edges", 0, "unique"), [["gone"]]),
        (("nodes", 0, "properties", 1, "type", "size"), None),
    ],
)
def test_contradiction_is_corruption(path, value):
    ir = orjson.dumps(replaced(DOCUMENT, path, value), option=orjson.OPT_SORT_KEYS)
    with pytest.raises(CorruptionError):
        from_ir(ir)
