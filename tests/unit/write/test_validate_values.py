"""Rule 1 of the validator: every value for itself."""

from __future__ import annotations

import math

import pytest
from validate_fixtures import (
    APPEND,
    MERGE,
    OVERWRITE,
    accepted,
    catalog,
    change,
    edge,
    failure,
    fleet,
    messages,
    node,
    prop,
    state,
)

from omnigraph.errors import ErrorKind
from omnigraph.schema.catalog import Check, Range, Scalar

FLEET = fleet()
ALBA = {"imo": 1, "name": "Alba"}


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_a_complete_row_is_accepted_in_every_mode(mode):
    row = ALBA | {"sign": "X", "flag": "NO", "speed": 40.0, "tags": ["a"], "shape": [1, 2]}
    assert accepted(FLEET, change(FLEET, mode, Vessel=[row])).tables["node:Vessel"].rows.num_rows


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_a_required_value_is_missing(mode):
    error = failure(FLEET, change(FLEET, mode, Vessel=[ALBA, {"imo": 2}], lines=True))
    (violation,) = error.violations
    assert violation.message == "missing required value for Vessel.name"
    assert (violation.rule, violation.entity_kind, violation.type_name) == (
        "required",
        "node",
        "Vessel",
    )
    assert (violation.entity_id, violation.property_name) == ("2", "name")
    assert (violation.source, violation.line) == ("in.jsonl", 2)
    assert error.kind is ErrorKind.CONSTRAINT


def test_a_missing_key_member_is_told_once_and_not_again_as_a_missing_id():
    assert messages(FLEET, change(FLEET, Vessel=[{"name": "Alba"}])) == [
        "missing required value for Vessel.imo"
    ]


def test_a_missing_id_of_an_unkeyed_type_is_told():
    assert messages(FLEET, change(FLEET, Port=[{"code": "AAR"}])) == [
        "missing required value for Port.id"
    ]


def test_missing_ends_are_told_as_missing_and_not_as_not_found():
    assert messages(FLEET, change(FLEET, Tows=[{"id": "t"}])) == [
        "missing required value for Tows.src",
        "missing required value for Tows.dst",
    ]


def test_a_keyed_edge_without_source_is_told_once():
    schema = catalog(node("N"), edge("E", "N", "N", keyed=True))
    delta = change(schema, MERGE, N=[{"id": "a"}], E=[{"dst": "a"}])
    assert messages(schema, delta) == ["missing required value for E.src"]


def test_a_declared_id_key_is_told_once():
    schema = catalog(node("N", prop("id", Scalar.STRING, nullable=False), key=("id",)))
    assert messages(schema, change(schema, N=[{}])) == ["missing required value for N.id"]


@pytest.mark.parametrize("speed", [0.0, -0.0, 40.0, None])
def test_range_is_inclusive_and_null_is_exempt(speed):
    accepted(FLEET, change(FLEET, Vessel=[ALBA | {"speed": speed}]))


@pytest.mark.parametrize("speed", [-0.5, 40.00001])
def test_range_refuses_what_is_outside(speed):
    assert messages(FLEET, change(FLEET, Vessel=[ALBA | {"speed": speed}])) == [
        f"@range violation on Vessel.speed: value {speed} not in 0..40"
    ]


def test_nan_breaks_the_range_and_is_no_value():
    error = failure(FLEET, change(FLEET, Vessel=[ALBA | {"speed": math.nan}]))
    assert [(v.rule, v.message) for v in error.violations] == [
        ("range", "@range violation on Vessel.speed: value nan not in 0..40"),
        ("value", "non-finite value for Vessel.speed"),
    ]


@pytest.mark.parametrize(
    ("scalar", "low", "high", "good", "bad"),
    [
        (Scalar.I64, 2**53 + 1, None, 2**53 + 1, 2**53),
        (Scalar.U64, None, 2**63, 2**63, 2**63 + 1),
        (Scalar.I64, None, 2**70, 2**63 - 1, None),
        (Scalar.U32, -5, 7, 0, 8),
        (Scalar.F32, None, 0.1, 0.1, 0.2),
    ],
)
def test_range_is_compared_in_the_propertys_own_type(scalar, low, high, good, bad):
    bounds = Range(property_name="p", low=low, high=high)
    schema = catalog(node("N", prop("p", scalar), ranges=(bounds,)))
    accepted(schema, change(schema, N=[{"id": "a", "p": good}]))
    if bad is not None:
        assert failure(schema, change(schema, N=[{"id": "a", "p": bad}])).total == 1


def test_a_range_beyond_the_type_refuses_every_value_but_null():
    schema = catalog(
        node("N", prop("p", Scalar.I32), ranges=(Range(property_name="p", low=2**40, high=None),))
    )
    error = failure(schema, change(schema, N=[{"id": "a", "p": 1}, {"id": "b"}]))
    assert [v.message for v in error.violations] == [
        f"@range violation on N.p: value 1 not in {2**40}.."
    ]


def test_check_searches_anywhere_and_null_is_exempt():
    schema = catalog(
        node("N", prop("p", Scalar.STRING), checks=(Check(property_name="p", pattern=r"\d$"),))
    )
    rows = [{"id": "a", "p": "x1"}, {"id": "b"}, {"id": "c", "p": "1x"}, {"id": "d", "p": "1x"}]
    assert messages(schema, change(schema, N=rows)) == [
        "@check violation on N.p: value '1x' does not match \"\\d$\"",
        "@check violation on N.p: value '1x' does not match \"\\d$\"",
    ]


def test_enum_values_on_nodes_and_edges():
    schema = catalog(
        node("N", prop("p", Scalar.STRING, enum_values=("a", "b"))),
        edge("E", "N", "N", prop("q", Scalar.STRING, enum_values=("c",))),
    )
    delta = change(
        schema,
        N=[{"id": "1", "p": "a"}, {"id": "2"}, {"id": "3", "p": "z"}],
        E=[{"id": "e", "src": "1", "dst": "2", "q": "a"}],
    )
    assert [(v.rule, v.message) for v in failure(schema, delta).violations] == [
        ("enum", "invalid enum value 'z' for N.p (expected: a, b)"),
        ("enum", "invalid enum value 'a' for E.q (expected: c)"),
    ]


def test_list_elements_are_not_null_but_lists_may_be():
    rows = [
        {"imo": 1, "name": "A"},
        {"imo": 2, "name": "B", "tags": []},
        {"imo": 3, "name": "C", "tags": ["a", None, None]},
    ]
    error = failure(FLEET, change(FLEET, Vessel=rows))
    assert [(v.rule, v.entity_id, v.message) for v in error.violations] == [
        ("value", "3", "null element in Vessel.tags")
    ]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_floats_in_columns_lists_and_vectors_are_finite(bad):
    schema = catalog(
        node(
            "N",
            prop("f", Scalar.F32),
            prop("fs", Scalar.F64, is_list=True),
            prop("v", Scalar.VECTOR, vector_size=2),
        )
    )
    rows = [
        {"id": "0"},
        {"id": "1", "f": bad},
        {"id": "2", "fs": [1.0, bad, bad]},
        {"id": "3", "v": [0.0, bad]},
        {"id": "4", "f": 1.0, "fs": [1.0], "v": [1.0, 2.0]},
        {"id": "5", "v": [None, 1.0]},
    ]
    error = failure(schema, change(schema, N=rows))
    assert [(v.entity_id, v.message) for v in error.violations] == [
        ("1", "non-finite value for N.f"),
        ("2", "non-finite value for N.fs"),
        ("3", "non-finite value for N.v"),
        ("5", "null element in N.v"),
    ]


def test_violations_are_told_by_table_then_rule_then_row_and_all_are_counted():
    rows = [{"imo": i, "name": "a", "speed": 50.0} for i in range(30)]
    delta = change(FLEET, Port=[{"code": "x"}], Vessel=rows, lines=True)
    error = failure(FLEET, delta, violations_max=4)
    assert error.total == 1 + 60
    assert [(v.type_name, v.rule, v.line) for v in error.violations] == [
        ("Port", "required", 1),
        ("Vessel", "range", 1),
        ("Vessel", "check", 1),
        ("Vessel", "range", 2),
    ]
    assert "… and 57 more" in str(error)


def test_long_values_are_cut_in_messages():
    (message,) = messages(FLEET, change(FLEET, Vessel=[{"imo": 1, "name": "a" * 5000}]))
    assert len(message) < 250


def test_values_are_checked_without_any_read():
    committed = state(FLEET, Vessel=[ALBA])
    failure(FLEET, change(FLEET, OVERWRITE, Vessel=[{"imo": 1}], fresh=("Vessel",)), committed)
    assert committed.reads == []


def test_an_empty_delta_is_valid():
    assert accepted(FLEET, change(FLEET)).tables == {}
    assert accepted(FLEET, change(FLEET, Vessel=[])).tables["node:Vessel"].inserted_count == 0
