"""The value of an expression in every row at once.

    typed expression, columns, parameters -> [evaluate] -> an Arrow column, or which rows hold

Conditions are three-valued: a comparison with null is unknown, and ``holds`` keeps only what is
surely true. What needs more than columns (blocks, full text, scores) is asked from ``Columns``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol, TypeAlias, cast

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.query.exec import lists, numbers, texts
from omnigraph.query.exec.truth import Mask, Truth, from_arrow, valid_mask
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Scalar
from omnigraph.schema.property_values import nearest_f32
from omnigraph.schema.temporal import day_number, instant_ms

Column: TypeAlias = pa.Array | pa.ChunkedArray


class Columns(Protocol):
    """The rows that an expression is evaluated over."""

    @property
    def length(self) -> int:
        """How many rows."""
        ...

    def column(self, prop: typed.Prop) -> Column:
        """A property's values; text may be dictionary-encoded."""
        ...

    def present(self, variable: str) -> pa.BooleanArray:
        """Where a variable is bound."""
        ...

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        """Whether, or how often, an inner block has a solution."""
        ...

    def text(self, expr: typed.TextMatch) -> pa.Array:
        """The answer of a full-text test."""
        ...

    def score(self, expr: typed.Score) -> pa.Array:
        """The rank's measure."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """What a query is run with."""

    params: Mapping[str, Any]
    """Bound parameters: str, int, float, bool, date, datetime (UTC), tuple, None."""
    now: datetime
    """In UTC; one moment for the whole query, in whole milliseconds."""

    def of(self, expr: typed.Expr) -> Any:
        """The value of a constant, a parameter or ``now()``."""
        kind = type(expr)
        if kind is typed.Const:
            return cast("typed.Const", expr).value
        if kind is typed.Param:
            param = cast("typed.Param", expr)
            if param.name not in self.params:
                raise InternalError(f"parameter ${param.name} was not bound")
            value = self.params[param.name]
            return value if param.type.scalar is not Scalar.F32 else _single(value)
        if kind is typed.Now:
            return self.now.replace(microsecond=self.now.microsecond // 1000 * 1000)
        raise InternalError(f"not a constant: {expr}")


def _single(value: Any) -> Any:
    """A parameter that was declared as F64 and is compared with an F32; see ``check.constants``."""
    if isinstance(value, tuple):
        return tuple(map(_single, cast("tuple[Any, ...]", value)))
    if not isinstance(value, float):
        return value
    single = nearest_f32(value)
    return single if math.isfinite(single) else value


def evaluate(expr: typed.Expr, rows: Columns, values: Values) -> pa.Array | pa.Scalar:
    """The expression's value in each row, or one scalar where it is the same in all."""
    if is_constant(expr):
        return pa.scalar(_listed(values.of(expr)), arrow_type(cast("typed.Const", expr).type))
    return _array(_Evaluation(rows, values).column(expr))


def holds(expr: typed.Expr, rows: Columns, values: Values) -> Mask:
    """Where a condition is true: neither false nor unknown."""
    return _Evaluation(rows, values).sure(expr)


def is_constant(expr: typed.Expr) -> bool:
    """Whether the value is the same in every row, without looking at any."""
    return type(expr) in _CONSTANTS


def number_of(value: Any) -> int | float:
    """A number, truth value, day or instant as the number that its column holds."""
    if isinstance(value, datetime):
        ms = instant_ms(value)
        if ms is None:
            raise InternalError(f"{value} is not an instant of whole milliseconds")
        return ms
    return day_number(value) if isinstance(value, date) else value


_CONSTANTS = (typed.Const, typed.Param, typed.Now)
_HEAVY = (typed.Exists, typed.CountOf, typed.TextMatch)
SCORES = (typed.Bm25, typed.Nearest, typed.Rrf)


class _Evaluation:
    """One expression over one set of rows."""

    def __init__(self, rows: Columns, values: Values) -> None:
        self._rows = rows
        self._values = values
        self._length = rows.length

    def sure(self, expr: typed.Expr) -> Mask:
        """Where a condition is true. Under ``and`` and ``or`` unknown is as good as false."""
        if not isinstance(expr, (typed.And, typed.Or)):
            return self.truth(expr).sure
        both = isinstance(expr, typed.And)
        mask = None
        for operand in _light_first(expr.operands):
            one = self.sure(operand)
            mask = one if mask is None else mask & one if both else mask | one
            if not mask.any() if both else mask.all():
                break  # What is left cannot change it.
        return mask if mask is not None else np.full(self._length, both)

    def truth(self, expr: typed.Expr) -> Truth:
        """A condition in three values."""
        make = _TRUTHS.get(type(expr))
        if make is not None:
            return make(self, expr)
        if is_constant(expr):
            return Truth.constant(self._values.of(expr), self._length)
        return from_arrow(self.column(expr))

    def column(self, expr: typed.Expr) -> Column:
        """Anything that differs from row to row."""
        kind = type(expr)
        if kind is typed.Prop:
            return self._rows.column(cast("typed.Prop", expr))
        if kind in _TRUTHS:
            return self.truth(expr).to_arrow()
        if kind is typed.Exists or kind is typed.CountOf:
            return self._rows.block(cast("typed.Exists", expr))
        if kind is typed.TextMatch:
            return self._rows.text(cast("typed.TextMatch", expr))
        if kind in SCORES:
            return self._rows.score(cast("typed.Score", expr))
        if kind is typed.Entity:
            present = from_arrow(self._rows.present(cast("typed.Entity", expr).variable)).sure
            return Truth(present, np.ones(self._length, np.bool_)).to_arrow()
        raise InternalError(f"this has no value in a row: {expr}")

    def connective(self, expr: typed.And | typed.Or) -> Truth:
        """``and``, ``or``; what is expensive is asked last, or not at all once all is decided."""
        both = isinstance(expr, typed.And)
        found = Truth.constant(both, self._length)
        for number, operand in enumerate(_light_first(expr.operands)):
            one = self.truth(operand)
            found = one if not number else found & one if both else found | one
            if not found.possible.any() if both else found.sure.all():
                break
        return found

    def negation(self, expr: typed.Not) -> Truth:
        """``not``."""
        return ~self.truth(expr.operand)

    def is_null(self, expr: typed.IsNull) -> Truth:
        """``is null``; of an entity: it is not bound."""
        operand = expr.operand
        if is_constant(operand):
            return Truth.constant(self._values.of(operand) is None, self._length)
        if isinstance(operand, typed.Entity):
            return ~from_arrow(self._rows.present(operand.variable))
        column = self.column(operand)
        if not column.null_count:
            return Truth.constant(False, self._length)
        return _by_chunk(column, _null_rows)

    def comparison(self, expr: typed.Compare) -> Truth:
        """``= != < <= > >=``."""
        op, left, right = expr.op, expr.left, expr.right
        if is_constant(left):
            if is_constant(right):
                return self._constants(op, self._values.of(left), self._values.of(right))
            op, left, right = numbers.MIRRORED[op], right, left
        if not is_constant(right):
            return _between(op, _array(self.column(left)), _array(self.column(right)))
        value = self._values.of(right)
        if value is None:
            return Truth.constant(None, self._length)
        return _by_chunk(self.column(left), lambda part: _with_constant(op, part, value))

    def _constants(self, op: typed.CompareOp, left: Any, right: Any) -> Truth:
        unknown = left is None or right is None
        return Truth.constant(None if unknown else numbers.COMPARE[op](left, right), self._length)

    def contains(self, expr: typed.Contains) -> Truth:
        """A list has an element; never unknown."""
        return Truth.known(self._membership(expr.item, expr.values).sure)

    def in_list(self, expr: typed.InList) -> Truth:
        """A value is in a list; unknown as in SQL."""
        return self._membership(expr.item, expr.values)

    def _membership(self, item: typed.Expr, values: typed.Expr) -> Truth:
        if not is_constant(values):
            if is_constant(item):
                wanted = self._values.of(item)
                return _by_chunk(self.column(values), lambda part: _in_lists(part, wanted))
            return _own_in_lists(_array(self.column(values)), _array(self.column(item)))
        listed = self._values.of(values)
        if listed is None:
            return Truth.constant(None, self._length)
        known, has_null = lists.distinct(listed)
        if is_constant(item):
            return Truth.constant(_in_tuple(self._values.of(item), known, has_null), self._length)
        found = _by_chunk(self.column(item), lambda part: _among(part, known))
        return Truth(found.sure, np.ones(self._length, np.bool_)) if has_null else found

    def text_test(self, expr: typed.TextTest) -> Truth:
        """``contains`` and ``starts_with`` on text; never unknown."""
        text = self._values.of(expr.text) if is_constant(expr.text) else ""
        part = self._values.of(expr.part) if is_constant(expr.part) else ""
        if text is None or part is None:
            return Truth.constant(False, self._length)
        if not is_constant(expr.part):
            parts = _array(self.column(expr.part))
            given = text if is_constant(expr.text) else _array(self.column(expr.text))
            return texts.has_parts(expr.kind, given, parts)
        if is_constant(expr.text):
            found = part in text if expr.kind == "contains" else text.startswith(part)
            return Truth.constant(found, self._length)
        return _by_chunk(self.column(expr.text), lambda c: texts.has_part(expr.kind, c, part))


_TRUTHS: dict[type, Callable[[_Evaluation, Any], Truth]] = {
    typed.And: _Evaluation.connective,
    typed.Or: _Evaluation.connective,
    typed.Not: _Evaluation.negation,
    typed.IsNull: _Evaluation.is_null,
    typed.Compare: _Evaluation.comparison,
    typed.Contains: _Evaluation.contains,
    typed.InList: _Evaluation.in_list,
    typed.TextTest: _Evaluation.text_test,
}


# ---------------------------------------------------------------- one array at a time


def _by_chunk(column: Column, test: Callable[[pa.Array], Truth]) -> Truth:
    """A test of a column, chunk by chunk: joining its answers is cheaper than joining chunks."""
    if isinstance(column, pa.ChunkedArray):
        return Truth.joined([test(chunk) for chunk in column.chunks])
    return test(column)


def _array(column: Column) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    joined = column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        raise InternalError("more than 2 GiB of text in one column")
    return joined


def _null_rows(column: pa.Array) -> Truth:
    valid = valid_mask(column)
    return Truth.constant(False, len(column)) if valid is None else Truth.known(~valid)


def _with_constant(op: typed.CompareOp, column: pa.Array, value: Any) -> Truth:
    """A column against a value that is not null."""
    if isinstance(value, str):
        return texts.with_constant(op, column, value)
    if numbers.is_plain(column.type):
        return numbers.with_constant(op, column, number_of(value))
    if pa.types.is_null(column.type):
        return Truth.constant(None, len(column))
    raise InternalError(f"a column of {column.type} has no comparison with {value!r}")


def _between(op: typed.CompareOp, left: pa.Array, right: pa.Array) -> Truth:
    if numbers.is_plain(left.type) and numbers.is_plain(right.type):
        return numbers.between(op, left, right)
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return Truth.constant(None, len(left))
    return texts.between(op, left, right)


def _among(column: pa.Array, known: list[Any]) -> Truth:
    """Whether each value is among those known; unknown for null."""
    if pa.types.is_null(column.type):
        return Truth.constant(None, len(column))
    if not numbers.is_plain(column.type):
        return texts.among(column, known)
    return numbers.among(column, [number_of(v) for v in known])


def _in_tuple(item: Any, known: list[Any], has_null: bool) -> bool | None:
    if item is None:
        return None
    return True if item in known else None if has_null else False


def _in_lists(column: pa.Array, item: Any) -> Truth:
    """Whether each list has the item."""
    if item is None:
        return Truth.constant(None, len(column))
    found = lists.has_equal(column, lambda elements: _with_constant("=", elements, item))
    return _unless_null(found, column)


def _own_in_lists(column: pa.Array, items: pa.Array) -> Truth:
    """Whether each list has the item of its row."""
    found = lists.has_equal_to(column, items, lambda a, b: _between("=", a, b))
    truth, valid = _unless_null(found, column), valid_mask(items)
    return truth if valid is None else Truth(truth.sure, truth.possible | ~valid)


def _unless_null(found: Mask, column: pa.Array) -> Truth:
    """Not found is unknown where the list, or an element of it, is null."""
    valid, gaps = valid_mask(column), lists.has_null(column)
    if valid is None and not gaps.any():
        return Truth.known(found)
    return Truth(found, found | gaps if valid is None else found | gaps | ~valid)


def _light_first(operands: tuple[typed.Expr, ...]) -> tuple[typed.Expr, ...]:
    """What reads columns before what runs blocks and searches; else in the order written."""
    heavy = [o for o in operands if _is_heavy(o)]
    if not heavy or len(heavy) == len(operands):
        return operands
    return (*(o for o in operands if not _is_heavy(o)), *heavy)


def _is_heavy(expr: typed.Expr) -> bool:
    if isinstance(expr, _HEAVY):
        return True
    if isinstance(expr, typed.Not):
        return _is_heavy(expr.operand)
    if isinstance(expr, typed.Compare):
        return isinstance(expr.left, _HEAVY) or isinstance(expr.right, _HEAVY)
    if isinstance(expr, (typed.And, typed.Or)):
        return any(_is_heavy(o) for o in expr.operands)
    return False


def _listed(value: Any) -> Any:
    return list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
