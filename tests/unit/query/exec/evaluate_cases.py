"""Generated rows and conditions, and the value of a condition spelled out row by row in Python.

The columns have every scalar type, in every physical form that the evaluator must know: plain,
sliced, chunked, dictionary-encoded.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import PropertyType, Scalar

NOW = datetime(2026, 5, 4, 3, 2, 1, 123_000, tzinfo=UTC)
VALUES = Values(params={}, now=NOW)
TEXTS = ["", "a", "ab", "b", "%", "_", "it's", 'say "x"', "a\\b", "ü", "\U0001f600", "a" * 20]
DAYS = [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2026, 5, 4), date(9999, 12, 31)]
INSTANTS = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1),
    NOW,
    datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
]
EDGES = sorted(
    {
        s * (2**e + d)
        for e in (0, 1, 24, 31, 32, 53, 62, 63, 64)
        for d in (-1, 0, 1)
        for s in (1, -1)
    }
)
FLOATS = [
    0.0,
    -0.0,
    0.1,
    0.5,
    2.5,
    -2.5,
    1e-45,
    5e-324,
    3.4e38,
    -1.7e308,
    *(float(e) for e in EDGES),
]
RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
NUMERIC = [*RANGES, Scalar.F32, Scalar.F64]


def _is_single(value: float) -> bool:
    with np.errstate(over="ignore"):
        return float(np.float32(value)) == value


def scalars(scalar: Scalar) -> st.SearchStrategy[Any]:
    """Values of a type, close to where types end and fractions begin."""
    if scalar in RANGES:
        low, high = RANGES[scalar]
        return st.sampled_from([e for e in EDGES if low <= e <= high]) | st.integers(low, high)
    if scalar is Scalar.F32:
        small = st.sampled_from([f for f in FLOATS if _is_single(f)])
        return small | st.floats(width=32, allow_nan=False, allow_infinity=False)
    if scalar is Scalar.F64:
        return st.sampled_from(FLOATS) | st.floats(allow_nan=False, allow_infinity=False)
    pools: dict[Scalar, list[Any]] = {
        Scalar.STRING: TEXTS,
        Scalar.BOOL: [True, False],
        Scalar.DATE: DAYS,
        Scalar.DATETIME: INSTANTS,
    }
    return st.sampled_from(pools[scalar])


COMPARABLE = [*NUMERIC, Scalar.STRING, Scalar.BOOL, Scalar.DATE, Scalar.DATETIME]
COLUMNS = {
    f"{s.lower()}_{n}": PropertyType(scalar=s, nullable=True) for s in COMPARABLE for n in (1, 2)
}
COLUMNS |= {
    f"{s.lower()}s": PropertyType(scalar=s, nullable=True, is_list=True)
    for s in (Scalar.STRING, Scalar.I32, Scalar.U64, Scalar.F64, Scalar.DATE)
}


def prop(name: str, columns: dict[str, PropertyType] = COLUMNS) -> typed.Prop:
    """A column of the only variable."""
    return typed.Prop(variable="p", column=name, type=columns[name])


def const(value: Any, scalar: Scalar, *, is_list: bool = False) -> typed.Const:
    """A literal."""
    return typed.Const(
        value=value, type=PropertyType(scalar=scalar, is_list=is_list, nullable=True)
    )


@dataclass(frozen=True)
class Rows:
    """Rows as Arrow columns, and as Python values."""

    length: int
    values: dict[str, list[Any]]
    columns: dict[str, pa.Array | pa.ChunkedArray]

    def column(self, prop: typed.Prop) -> pa.Array | pa.ChunkedArray:
        return self.columns[prop.column]

    def present(self, variable: str) -> pa.BooleanArray:
        return pa.array([i % 2 == 0 for i in range(self.length)], pa.bool_())

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        raise AssertionError("no block was asked for")

    def text(self, expr: typed.TextMatch) -> pa.Array:
        raise AssertionError("no search was asked for")

    def score(self, expr: typed.Score) -> pa.Array:
        raise AssertionError("no score was asked for")


@st.composite
def physical(draw: st.DrawFn, values: list[Any], kind: PropertyType) -> pa.Array | pa.ChunkedArray:
    """The values as one of the forms in which a column may arrive."""
    form = draw(st.sampled_from(["plain", "sliced", "chunked", "dictionary", "chunked dictionary"]))
    arrow = arrow_type(kind)
    array = pa.array(values, arrow)
    if form == "sliced":
        return pa.array([*values, *values, *values], arrow).slice(len(values), len(values))
    is_text = kind.scalar is Scalar.STRING and not kind.is_list
    if form == "chunked" or (form != "plain" and not is_text):
        cut = draw(st.integers(0, len(values)))
        return pa.chunked_array([array.slice(0, cut), array.slice(cut)], arrow)
    if form == "plain":
        return array
    extra = pa.array([*values, *draw(st.lists(st.sampled_from(TEXTS)))], arrow)
    encoded = extra.dictionary_encode().slice(0, len(values))
    if form == "dictionary":
        return encoded
    cut = draw(st.integers(0, len(values)))
    return pa.chunked_array([encoded.slice(0, cut), encoded.slice(cut)])


@st.composite
def rows(draw: st.DrawFn, columns: dict[str, PropertyType] = COLUMNS) -> Rows:
    """A few rows with nulls everywhere."""
    length = draw(st.integers(0, 12))
    values: dict[str, list[Any]] = {}
    arrays: dict[str, pa.Array | pa.ChunkedArray] = {}
    for name, kind in columns.items():
        one = scalars(kind.scalar)
        if kind.is_list:
            one = st.lists(st.none() | one, max_size=4)
        values[name] = draw(st.lists(st.none() | one, min_size=length, max_size=length))
        arrays[name] = draw(physical(values[name], kind))
    return Rows(length, values, arrays)


def _operands(
    columns: dict[str, PropertyType], group: list[Scalar]
) -> st.SearchStrategy[typed.Expr]:
    names = [n for n, k in columns.items() if k.scalar in group and not k.is_list]
    constants = st.one_of([st.builds(const, st.none() | scalars(s), st.just(s)) for s in group])
    nows = st.just(typed.Now()) if Scalar.DATETIME in group else st.nothing()
    return st.sampled_from([prop(n, columns) for n in names]) | constants | nows


def _lists(columns: dict[str, PropertyType], group: list[Scalar]) -> st.SearchStrategy[typed.Expr]:
    def literal(s: Scalar) -> st.SearchStrategy[typed.Expr]:
        values = st.lists(st.none() | scalars(s), max_size=20).map(tuple)
        return st.builds(const, st.none() | values, st.just(s), is_list=st.just(True))

    found = st.one_of([literal(s) for s in group])
    names = [n for n, k in columns.items() if k.scalar in group and k.is_list]
    return found | st.sampled_from([prop(n, columns) for n in names]) if names else found


def conditions(columns: dict[str, PropertyType] = COLUMNS) -> st.SearchStrategy[typed.Expr]:
    """Conditions of any shape over the columns."""
    groups = [NUMERIC, *([s] for s in COMPARABLE if s not in NUMERIC)]
    leaves: list[st.SearchStrategy[typed.Expr]] = []
    for group in groups:
        group = [s for s in group if any(k.scalar is s for k in columns.values())]
        if not group:
            continue
        one, many = _operands(columns, group), _lists(columns, group)
        ops = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
        leaves += [
            st.builds(typed.Compare, op=ops, left=one, right=one),
            st.builds(typed.InList, item=one, values=many),
            st.builds(typed.Contains, item=one, values=many),
            st.builds(typed.IsNull, operand=one),
        ]
    text = _operands(columns, [Scalar.STRING])
    kinds = st.sampled_from(["contains", "starts_with"])
    leaves.append(st.builds(typed.TextTest, kind=kinds, text=text, part=text))
    leaves.append(st.sampled_from([prop(n, columns) for n in columns if n.startswith("bool_")]))

    def grow(inner: st.SearchStrategy[typed.Expr]) -> st.SearchStrategy[typed.Expr]:
        several = st.lists(inner, min_size=1, max_size=3).map(tuple)
        return (
            st.builds(typed.Not, operand=inner)
            | st.builds(typed.And, operands=several)
            | st.builds(typed.Or, operands=several)
        )

    return st.recursive(st.one_of(leaves), grow, max_leaves=6)


CONDITIONS = conditions()


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rows, typed.Expr]:
    """A condition, and rows with the columns that it speaks of."""
    expr = draw(CONDITIONS)
    used = {e.column for e in typed.walk(expr) if isinstance(e, typed.Prop)}
    return draw(rows({n: k for n, k in COLUMNS.items() if n in used})), expr


# ---------------------------------------------------------------- the meaning, row by row

_OPS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def naive(expr: typed.Expr, row: dict[str, Any], values: Values = VALUES) -> Any:
    """The value in one row. Python compares integers and floats exactly, as we want it."""

    def of(part: typed.Expr) -> Any:
        return naive(part, row, values)

    match expr:
        case typed.Const() | typed.Param() | typed.Now():
            return values.of(expr)
        case typed.Prop(column=column):
            return row[column]
        case typed.Compare(op=op, left=left, right=right):
            a, b = of(left), of(right)
            return None if a is None or b is None else _OPS[op](a, b)
        case typed.IsNull(operand=operand):
            return of(operand) is None
        case typed.Not(operand=operand):
            value = of(operand)
            return None if value is None else not value
        case typed.And(operands=operands):
            found = [of(o) for o in operands]
            return False if False in found else None if None in found else True
        case typed.Or(operands=operands):
            found = [of(o) for o in operands]
            return True if True in found else None if None in found else False
        case typed.Contains(values=listed, item=item):
            many, one = of(listed), of(item)
            return (
                many is not None and one is not None and one in [m for m in many if m is not None]
            )
        case typed.InList(item=item, values=listed):
            many, one = of(listed), of(item)
            if one is None or many is None:
                return None
            if one in [m for m in many if m is not None]:
                return True
            return None if None in many else False
        case typed.TextTest(kind=kind, text=text, part=part):
            a, b = of(text), of(part)
            if a is None or b is None:
                return False
            return b in a if kind == "contains" else a.startswith(b)
        case _:
            raise AssertionError(expr)
