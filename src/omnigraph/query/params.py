"""Values for the parameters of a query, from Python or from JSON.

    declarations, {name: value} -> [params] -> {name: exact value} -> plan, mutations

Everything is checked before anything runs: missing, unknown, wrong type, out of range. A bound
value is a ``str``, ``int``, ``float``, ``bool``, ``date``, ``datetime`` (UTC, whole milliseconds),
``bytes`` for a Blob, a ``tuple`` of such for lists and vectors, or None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from omnigraph.errors import ParameterError
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query.typed import ParamDecl
from omnigraph.schema.catalog import INTEGER_RANGES, PropertyType, Scalar
from omnigraph.schema.property_values import ValueRefused, converter, is_missing, shown
from omnigraph.schema.strict_json import LineRefused, parse_line
from omnigraph.schema.temporal import day_of, instant_of

Convert = Callable[[Any], Any]
_DECIMAL = re.compile(r"-?[0-9]{1,40}")
"""Longer ones are outside of every integer type."""


def bind(decls: Sequence[ParamDecl], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """A value for every declared parameter. Raises ``ParameterError`` with all that is wrong."""
    values: Mapping[str, Any] = {} if given is None else given
    if not isinstance(values, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ParameterError(f"parameters are given as name and value, not as {shown(values)}")
    bound: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    known = 0
    for decl in decls:
        name, of = decl.name, decl.type
        value = values.get(name)
        known += value is not None or name in values
        try:
            bound[name] = None if value is None else _value(value, of)
        except ValueRefused as refused:
            if not is_missing(value):
                problems.append((name, f"parameter '{name}': {refused}"))
                continue
            bound[name] = None
        if bound[name] is None and not of.nullable:
            absent = f"missing required parameter '{name}' ({of})"
            null = f"parameter '{name}': {of} may not be null"
            problems.append((name, null if name in values else absent))
    if len(values) != known:
        problems += _unknown(decls, values)
    if problems:
        raise _error(problems)
    return bound


def _unknown(decls: Sequence[ParamDecl], values: Mapping[Any, Any]) -> list[tuple[str, str]]:
    known = [d.name for d in decls]
    found: list[tuple[str, str]] = []
    for name in values:
        if name in known:
            continue
        text = name if isinstance(name, str) else shown(name)
        near = did_you_mean(text.removeprefix("$"), known)
        listed = f"the query has {', '.join(known)}" if known else "the query has no parameters"
        found.append((text, f"unknown parameter '{text}' ({near or listed})"))
    return found


def _error(problems: list[tuple[str, str]]) -> ParameterError:
    return ParameterError(
        "\n".join(message for _, message in problems),
        details={"problems": [{"name": n, "message": m} for n, m in problems]},
    )


def parse_params(text: str) -> dict[str, Any]:
    """Parameters from a JSON object. Strict: no member twice, no number rounded on the way."""
    try:
        value = parse_line(text.encode("utf-8", "surrogatepass"))
    except LineRefused as refused:
        place = "" if refused.column is None else f" at character {refused.column}"
        raise ParameterError(f"parameters are {refused.message}{place}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ParameterError(
            f"parameters are a JSON object, not {shown(value)}", hint='write {"name": value}'
        )
    return cast("dict[str, Any]", value)


# ---------------------------------------------------------------- values


def _value(value: Any, of: PropertyType) -> Any:
    if of.vector_size is not None:
        return _vector(value, of)
    if of.is_list:
        return tuple(map(_FINISH.get(of.scalar, _same), _list(value, of)))
    return _SINGLE[of.scalar](value)


def _same(value: Any) -> Any:
    return value


def _list(value: Any, of: PropertyType) -> Any:
    if of.scalar.is_integer and isinstance(value, list | tuple):
        value = [_undecimal(v) for v in cast("Sequence[Any]", value)]
    return converter(of)(value)


def _undecimal(value: Any) -> Any:
    """An integer that was written as text, so that JSON could carry all of its digits."""
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        return int(value)
    return value


def _vector(value: Any, of: PropertyType) -> tuple[float, ...]:
    """A vector of plain floats is the common case and a long one; the rest is exact and slow."""
    if isinstance(value, list | tuple) and len(cast("Sequence[Any]", value)) == of.vector_size:
        floats = cast("Sequence[Any]", value)
        if all(type(x) is float for x in floats):
            with np.errstate(over="ignore"):
                single = np.array(floats, dtype=np.float32)
            if np.isfinite(single).all():
                return tuple(single.tolist())
    return tuple(converter(of)(value))


def _text(value: Any) -> str:
    if type(value) is str and value.isascii():
        return value
    return _TEXT(value)


def _integer(scalar: Scalar) -> Convert:
    low, high = INTEGER_RANGES[scalar]
    exact = converter(PropertyType(scalar=scalar))

    def convert(value: Any) -> int:
        if type(value) is int and low <= value <= high:
            return value
        return exact(_undecimal(value))

    return convert


def _f64(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    return _F64(value)


def _finished(scalar: Scalar, finish: Convert) -> Convert:
    exact = converter(PropertyType(scalar=scalar))
    return lambda value: finish(exact(value))


_TEXT = converter(PropertyType(scalar=Scalar.STRING))
_F64 = converter(PropertyType(scalar=Scalar.F64))
_FINISH: dict[Scalar, Convert] = {Scalar.DATE: day_of, Scalar.DATETIME: instant_of}
"""What loading keeps as numbers of days and milliseconds."""
_SINGLE: dict[Scalar, Convert] = {
    Scalar.STRING: _text,
    Scalar.BLOB: converter(PropertyType(scalar=Scalar.BLOB)),
    Scalar.BOOL: converter(PropertyType(scalar=Scalar.BOOL)),
    Scalar.F32: converter(PropertyType(scalar=Scalar.F32)),
    Scalar.F64: _f64,
    **{scalar: _integer(scalar) for scalar in INTEGER_RANGES},
    **{scalar: _finished(scalar, finish) for scalar, finish in _FINISH.items()},
}
