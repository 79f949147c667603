"""Values of parameters: exact or refused, all problems at once, before anything runs."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import ErrorKind, ParameterError
from omnigraph.query.params import bind, parse_params
from omnigraph.query.typed import ParamDecl
from omnigraph.schema.catalog import INTEGER_RANGES, PropertyType, Scalar


def of(scalar, **kwargs):
    return PropertyType(scalar=Scalar(scalar), **kwargs)


def value(kind, given_value):
    return bind((ParamDecl(name="x", type=kind),), {"x": given_value})["x"]


def refused(kind, given_value):
    with pytest.raises(ParameterError) as caught:
        value(kind, given_value)
    return caught.value.message


@pytest.mark.parametrize(
    ("scalar", "given_value", "expected"),
    [
        ("String", "é", "é"),
        ("String", "", ""),
        ("Blob", "base64:aGk=", b"hi"),
        ("Blob", b"hi", b"hi"),
        ("Bool", True, True),
        ("I32", -5, -5),
        ("I64", "9223372036854775807", 2**63 - 1),
        ("I64", "-9223372036854775808", -(2**63)),
        ("U64", "18446744073709551615", 2**64 - 1),
        ("U64", 2**64 - 1, 2**64 - 1),
        ("U32", np.uint16(7), 7),
        ("I64", Decimal("7"), 7),
        ("F64", 3, 3.0),
        ("F64", 0.1, 0.1),
        ("F32", 0.1, 0.10000000149011612),
        ("F32", np.float32(0.1), 0.10000000149011612),
        ("Date", "2026-01-02", date(2026, 1, 2)),
        ("Date", 0, date(1970, 1, 1)),
        ("Date", -1, date(1969, 12, 31)),
        ("Date", date(2026, 1, 2), date(2026, 1, 2)),
        ("DateTime", "2026-01-02T03:04:05.006Z", datetime(2026, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)),
        ("DateTime", "2026-01-02T03:04:05+01:00", datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)),
        ("DateTime", 1, datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)),
        ("DateTime", datetime(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
        (
            "DateTime",
            datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))),
            datetime(2026, 1, 1, 22, tzinfo=UTC),
        ),
    ],
)
def test_accepted(scalar, given_value, expected):
    found = value(of(scalar), given_value)
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(found, datetime):
        assert found.tzinfo is UTC


@pytest.mark.parametrize(
    ("scalar", "given_value"),
    [
        ("String", 7),
        ("String", "\ud800"),
        ("Blob", "hi"),
        ("Bool", 1),
        ("Bool", "true"),
        ("I32", 2**31),
        ("I64", 2**63),
        ("U32", -1),
        ("U64", -1),
        ("U64", 2**64),
        ("I64", "7.0"),
        ("I64", " 7"),
        ("I64", "٧"),
        ("I64", "9" * 5000),
        ("I64", 7.0),
        ("I64", True),
        ("F64", "7"),
        ("F64", math.nan),
        ("F64", math.inf),
        ("F64", True),
        ("F32", 1e39),
        ("F32", math.inf),
        ("Date", "2026-01-02T00:00:00Z"),
        ("Date", datetime(2026, 1, 2)),
        ("Date", "2026-02-30"),
        ("Date", 10**9),
        ("DateTime", "yesterday"),
        ("DateTime", datetime(2026, 1, 2, 3, 4, 5, 1)),
        ("DateTime", 1.5),
    ],
)
def test_refused(scalar, given_value):
    message = refused(of(scalar), given_value)
    assert message.startswith("parameter 'x': ")
    assert "\n" not in message


def test_lists_and_vectors():
    assert value(of("I64", is_list=True), ["1", 2]) == (1, 2)
    assert value(of("Date", is_list=True), ("2026-01-02", 0)) == (
        date(2026, 1, 2),
        date(1970, 1, 1),
    )
    assert value(of("String", is_list=True), []) == ()
    assert value(of("DateTime", is_list=True), np.array(["1970-01-01"], "datetime64[ms]")) == (
        datetime(1970, 1, 1, tzinfo=UTC),
    )
    vector = of("Vector", vector_size=3)
    assert value(vector, [0.5, 1.0, 2.0]) == (0.5, 1.0, 2.0)
    assert value(vector, [1, 2, Decimal("0.5")]) == (1.0, 2.0, 0.5)
    assert value(vector, np.array([1, 2, 3], "f4")) == (1.0, 2.0, 3.0)
    assert value(vector, [0.1, 0.1, 0.1]) == (np.float32(0.1),) * 3


@pytest.mark.parametrize(
    ("kind", "given_value"),
    [
        (of("I64", is_list=True), 7),
        (of("I64", is_list=True), "12"),
        (of("I64", is_list=True), [1, None]),
        (of("I64", is_list=True), [1, "x"]),
        (of("Vector", vector_size=3), [1.0, 2.0]),
        (of("Vector", vector_size=2), [1.0, math.nan]),
        (of("Vector", vector_size=2), [1.0, 1e39]),
        (of("Vector", vector_size=2), "ab"),
    ],
)
def test_refused_lists(kind, given_value):
    assert refused(kind, given_value)


def test_null_and_absence():
    nullable = ParamDecl(name="a", type=of("I64", nullable=True))
    required = ParamDecl(name="b", type=of("I64"))
    assert bind((nullable,), None) == {"a": None}
    assert bind((nullable,), {}) == {"a": None}
    assert bind((nullable,), {"a": None}) == {"a": None}
    assert bind((), None) == {}
    with pytest.raises(ParameterError, match="missing required parameter 'b'"):
        bind((nullable, required), {"a": 1})
    with pytest.raises(ParameterError, match="'b': I64 may not be null"):
        bind((required,), {"b": None})


def test_pandas_nulls_are_null():
    pandas = pytest.importorskip("pandas")
    assert value(of("I64", nullable=True), pandas.NA) is None
    assert value(of("DateTime", nullable=True), pandas.NaT) is None
    assert "null" in refused(of("I64"), pandas.NA)


def test_all_problems_are_told_at_once():
    decls = tuple(ParamDecl(name=n, type=of("I64")) for n in "abc")
    with pytest.raises(ParameterError) as caught:
        bind(decls, {"a": "x", "bb": 1, "$c": 2, 7: 1})
    error = caught.value
    assert error.kind is ErrorKind.PARAMETER
    assert [p["name"] for p in error.details["problems"]] == ["a", "b", "c", "bb", "$c", "7"]
    assert "did you mean `c`?" in error.message
    json.dumps(error.to_dict())


def test_only_mappings_name_parameters():
    with pytest.raises(ParameterError):
        bind((), [1])  # pyright: ignore[reportArgumentType]


@given(st.sampled_from(sorted(INTEGER_RANGES)), st.integers())
def test_integers_are_exact_or_refused(scalar, number):
    low, high = INTEGER_RANGES[scalar]
    for written in (number, str(number)):
        if low <= number <= high:
            assert value(of(scalar), written) == number
        else:
            assert refused(of(scalar), written)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_both_ways_of_a_vector_agree(numbers):
    kind = of("Vector", vector_size=len(numbers))
    assert value(kind, numbers) == value(kind, [Decimal(repr(n)) for n in numbers])


@given(st.floats())
def test_both_ways_of_a_number_agree(number):
    for scalar in ("F32", "F64"):
        if math.isfinite(number):
            try:
                alone = value(of(scalar), number)
            except ParameterError:
                assert scalar == "F32"
            else:
                assert (alone,) == value(of(scalar, is_list=True), [number])
        else:
            assert refused(of(scalar), number)


# ---------------------------------------------------------------- JSON


def test_json_numbers_keep_their_digits():
    given_values = parse_params('{"a": 18446744073709551615, "b": 0.1, "c": [1, 2]}')
    decls = (
        ParamDecl(name="a", type=of("U64")),
        ParamDecl(name="b", type=of("F32")),
        ParamDecl(name="c", type=of("F64", is_list=True)),
    )
    assert bind(decls, given_values) == {"a": 2**64 - 1, "b": np.float32(0.1), "c": (1.0, 2.0)}


def test_json_null_is_no_parameters():
    assert parse_params("null") == parse_params("{}") == {}
    assert parse_params('{\n "a": "b"\n}') == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', 'member "a" occurs twice'),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ("{a: 1}", "at character 2"),
        ("[1]", "parameters are a JSON object, not an array"),
        ("7", "parameters are a JSON object, not 7"),
        ("", "not a JSON value"),
        ('{"a": "\\ud800"}', "surrogate"),
        ('{"a": "\ud800"}', "UTF-8"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 1} x', "text after the end"),
    ],
)
def test_json_that_is_refused(text, message):
    with pytest.raises(ParameterError) as caught:
        parse_params(text)
    assert message in str(caught.value)


def test_whole_json_floats_are_no_integers():
    with pytest.raises(ParameterError):
        bind((ParamDecl(name="a", type=of("I64")),), parse_params('{"a": 1.0}'))
