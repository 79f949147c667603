"""Comparisons and constants: exact types, three-valued tests, what cannot be compared."""

from __future__ import annotations

from datetime import UTC, date, datetime
from fractions import Fraction

import pytest
from check_support import CATALOG, diagnostics, filters, match_codes
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.source import Source, Span
from omnigraph.query import ast, typed
from omnigraph.query.check.constants import SINGLE, exactly, fit, in_one_type, nearest_f32, single
from omnigraph.query.check.context import Context
from omnigraph.query.codes import QueryFindings
from omnigraph.schema.catalog import INTEGER_RANGES, Scalar


def right(condition, params=""):
    (test,) = filters(condition, params)
    return test.right


@pytest.mark.parametrize(
    ("condition", "value", "scalar"),
    [
        ("$v.imo = 7", 7, Scalar.I64),
        ("$v.imo = 7.0", 7, Scalar.I64),
        ("$v.imo = -7", -7, Scalar.I64),
        ("$v.imo = 7.5", 7.5, Scalar.F64),
        ("$v.imo = 18446744073709551615", 2**64 - 1, Scalar.U64),
        ("$v.draft = 7", 7.0, Scalar.F32),
        ("$v.draft = 0.5", 0.5, Scalar.F32),
        ("$v.draft = 0.1", 0.10000000149011612, Scalar.F32),  # As it would have been stored.
        ("$v.draft = 16777217", 16777217, Scalar.I64),
        ('$v.built = date("2026-01-02")', date(2026, 1, 2), Scalar.DATE),
        (
            '$v.seen = datetime("2026-01-02T04:04:05.5+01:00")',
            datetime(2026, 1, 2, 3, 4, 5, 500_000, tzinfo=UTC),
            Scalar.DATETIME,
        ),
        ("$v.active = true", True, Scalar.BOOL),
        ('$v.flag = "dk"', "dk", Scalar.STRING),
    ],
)
def test_constants_take_the_columns_type_when_nothing_is_lost(condition, value, scalar):
    found = right(condition)
    assert found == typed.Const(value=value, type=SINGLE[scalar])
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("condition", "value", "scalar"),
    [
        ("$p.berths = 4", 4, Scalar.U32),
        ("$p.berths = -1", -1, Scalar.I64),
        ("$p.berths = 4294967296", 2**32, Scalar.I64),
        ("$p.depth = 9007199254740993", 2**53 + 1, Scalar.I64),
        ("$p.depth = 3", 3.0, Scalar.F64),
        ("count { $v callsAt $p } > 2", 2, Scalar.I64),
    ],
)
def test_other_columns(condition, value, scalar):
    (test,) = filters(f"$v callsAt $p {condition}")
    assert test.right == typed.Const(value=value, type=SINGLE[scalar])


def test_constants_on_the_left_too():
    (test,) = filters("7.0 <= $v.imo")
    assert test.left == typed.Const(value=7, type=SINGLE[Scalar.I64])
    assert test.op == "<="


def test_a_constant_takes_a_parameters_type():
    (test,) = filters("$a = 3", "$a: F32")
    assert test.right == typed.Const(value=3.0, type=SINGLE[Scalar.F32])


numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**53 + 1, 2**24 + 1, 2**63, -0.0, 1e300, 0.1, 2.0**63, 2.0**64, 5e-324]),
)
numeric = st.sampled_from([s for s in Scalar if s.is_numeric])


@given(numbers, numeric)
def test_fitting_never_changes_a_number(value, scalar):
    found = exactly(value, scalar)
    if found is None:
        if scalar.is_integer:
            low, high = INTEGER_RANGES[scalar]
            assert value != int(value) or not low <= value <= high
        else:
            inexact = scalar is Scalar.F32 and nearest_f32(float(value)) != value
            assert inexact or Fraction(float(value)) != Fraction(value)
    else:
        assert Fraction(found) == Fraction(value)
        assert isinstance(found, int if scalar.is_integer else float)


def const(value):
    expr = ast.IntLiteral if isinstance(value, int) else ast.FloatLiteral
    findings = QueryFindings(Source(name="t", text=""))
    found = single(expr(value=value, span=Span(start=0, end=0)), Context(CATALOG, findings))
    assert found is not None
    return found


@given(st.lists(st.one_of(st.none(), numbers), max_size=5), st.one_of(st.none(), numeric))
def test_lists_keep_every_number_and_every_null(values, preferred):
    found = in_one_type([None if v is None else const(v) for v in values], preferred)
    if found is not None:
        scalar, fitted = found
        assert len(fitted) == len(values)
        for before, after in zip(values, fitted, strict=True):
            assert (before is None) == (after is None)
            if before is not None:
                rounded = scalar is Scalar.F32 and isinstance(before, float)
                assert Fraction(nearest_f32(before) if rounded else before) == Fraction(after)
                assert exactly(after, scalar) == after


@given(numbers, numeric)
def test_fit_is_idempotent(value, scalar):
    once = fit(const(value), scalar)
    assert fit(once, scalar) == once


# ---------------------------------------------------------------- tests that are no comparison


def test_membership_and_text_tests():
    kinds = [
        type(f)
        for f in filters('$v.tags contains "a" $v.name contains "a" "a" starts_with $v.name')
    ]
    assert kinds == [typed.Contains, typed.TextTest, typed.TextTest]


def test_in_is_sqls():
    (test,) = filters("$v.imo in [1, null, 2.0]")
    assert test.values.value == (1, None, 2)
    assert test.values.type.scalar is Scalar.I64
    (negated,) = filters("$v.imo not in [1]")
    assert isinstance(negated, typed.Not)
    (empty,) = filters("$v.built in []")
    assert (empty.values.value, empty.values.type.scalar) == ((), Scalar.DATE)


def test_in_with_parameters_is_a_disjunction():
    (test,) = filters("$v.imo in [1, $a, 2, $b]", "$a: I64, $b: F64?")
    assert [type(o) for o in test.operands] == [typed.InList, typed.Compare, typed.Compare]
    (alone,) = filters("$v.imo in [$a]", "$a: I64")
    assert isinstance(alone, typed.Compare)


def test_what_is_not_simple_is_never_copied():
    """A copy for every item, in nested lists, would grow without bound."""
    nested = "$v.active"
    for _ in range(20):
        nested = f"({nested} in [$a, $b, $c])"
    assert set(match_codes(nested, params="$a: Bool, $b: Bool, $c: Bool")) == {"Q220"}
    assert match_codes("count { $v callsAt $p } in [1, $a]", params="$a: I64") == ["Q220"]
    assert match_codes("count { $v callsAt $p } in [1, 2]") == []


def test_enum_constants_are_checked_only_where_equality_is_meant():
    assert match_codes('$v.flag = "xx"') == ["Q212"]
    assert match_codes('"xx" != $v.flag') == ["Q212"]
    assert match_codes('$v.flag > "b"') == []
    assert match_codes('$v.flag starts_with "d"') == []
    assert match_codes("$v.flag = $f", params="$f: String") == []


def test_null_is_tested_by_is_null_only():
    for condition in (
        "$v.flag = null",
        "null != $v.flag",
        "$v.name contains null",
        "null in [1]",
        "null = null",
    ):
        assert match_codes(condition) == ["Q211"], condition
    (test,) = filters("$v.shape is null")
    assert isinstance(test, typed.IsNull)


def test_hints_say_what_to_write():
    def hint(condition):
        (found,) = diagnostics(f"match {{ $v: Vessel {condition} }} return {{ $v.name }}")
        return found.hint

    assert hint('$v.imo = "7"') == "leave the quotes out: `7`"
    assert hint('$v.built = "2026-01-02"') == 'write `date("2026-01-02")`'
    assert hint('$v.seen > "2026-01-02T00:00:00Z"') == 'write `datetime("2026-01-02T00:00:00Z")`'
    assert hint("$v.flag = null") == "write `$v.flag is null`"
    assert hint("$v.flag != null") == "write `$v.flag is not null`"
    assert hint('$v = "7"') == "take a property, or its id: `$v.id`"
    assert hint('name = "x"') == "write `$v.name`"


def test_enormous_numbers_are_refused():
    assert match_codes(f"$v.imo < {'9' * 30}") == ["Q218"]
    assert match_codes(f"$v.draft < {'9' * 350}.0") == ["Q005"]


def test_precedence_and_nesting_of_conditions():
    (test,) = filters("not $v.active or $v.imo = 1 and not ($v.imo = 2 or $v.imo = 3)")
    assert isinstance(test, typed.Or)
    negation, conjunction = test.operands
    assert isinstance(negation, typed.Not)
    assert isinstance(conjunction, typed.And)
