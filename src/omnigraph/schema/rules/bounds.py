"""Rules about ``@range``, ``@check`` and ``@card``.

Whatever could never be satisfied or never be evaluated is refused now, not at the first write.
"""

from __future__ import annotations

import re
import warnings

from omnigraph.schema import ast
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.resolve import INTEGER_LIMITS, as_name, bound_value
from omnigraph.schema.rules.groups import Types, report_unknown
from omnigraph.schema.words import CARD_MAX

_SHAPES = {"range": "@range(property, low..high)", "check": '@check(property, "regex")'}


def check_value_constraints(
    owner: ast.NodeDecl | ast.EdgeDecl, types: Types, findings: SchemaFindings
) -> None:
    """``@range`` and ``@check`` of a declaration."""
    for c in owner.constraints:
        word = c.word.text
        if word not in _SHAPES:
            continue
        if isinstance(owner, ast.EdgeDecl):
            message = f"`@{word}` is not possible on edges"
            findings.add(SchemaCode.CONSTRAINT_ON_EDGE, c.span, message)
            continue
        name = as_name(c.arguments[0])
        second = c.arguments[1] if len(c.arguments) == 2 else None
        if name is not None and word == "range" and isinstance(second, ast.RangeValue):
            if _known(owner, name, types, findings):
                _check_range(name, second, types[name.text], findings)
        elif name is not None and word == "check" and _is_string(second):
            if _known(owner, name, types, findings):
                _check_check(name, types[name.text], findings)
            _check_pattern(second, findings)
        else:
            message = f"`@{word}` does not have the right arguments"
            expected = f"`{_SHAPES[word]}`"
            findings.add(SchemaCode.CONSTRAINT_ARGUMENTS, c.span, message, expected=expected)


def _is_string(argument: ast.ConstraintArgument | None) -> bool:
    return isinstance(argument, ast.Value) and argument.kind == "string"


def _known(owner: ast.NodeDecl, name: ast.Name, types: Types, findings: SchemaFindings) -> bool:
    if name.text not in types:
        report_unknown(owner.name, name, types, findings)
    return name.text in types


def _check_range(
    name: ast.Name, bounds: ast.RangeValue, found: PropertyType | None, findings: SchemaFindings
) -> None:
    if found is None:
        return
    if found.is_list or not found.scalar.is_numeric:
        message = f"`@range` is not possible on `{name}` of type `{found}`"
        findings.add(SchemaCode.RANGE_TYPE, name.span, message, expected="a single number")
        return
    low, high = (
        None if b is None else bound_value(b, found.scalar) for b in (bounds.low, bounds.high)
    )
    if (low is None) != (bounds.low is None) or (high is None) != (bounds.high is None):
        message = f"`{name}` is `{found.scalar}`, and a bound is no such value"
        findings.add(SchemaCode.RANGE_BOUND, bounds.span, message, hint=_bound_hint(found.scalar))
    elif low is not None and high is not None and low > high:
        message = f"no value is between {low} and {high}"
        findings.add(
            SchemaCode.RANGE_EMPTY, bounds.span, message, hint="the lower bound comes first"
        )


def _bound_hint(scalar: Scalar) -> str:
    if scalar in INTEGER_LIMITS:
        low, high = INTEGER_LIMITS[scalar]
        return f"bounds of `{scalar}` are whole numbers from {low} to {high}"
    largest = "3.4e+38" if scalar is Scalar.F32 else "1.8e+308"
    return f"the largest `{scalar}` is about {largest}; leave a bound out to have none"


def _check_check(name: ast.Name, found: PropertyType | None, findings: SchemaFindings) -> None:
    if found is not None and (found.is_list or found.scalar is not Scalar.STRING):
        message = f"`@check` is not possible on `{name}` of type `{found}`"
        findings.add(SchemaCode.CHECK_TYPE, name.span, message, expected="a single `String`")


def _check_pattern(pattern: ast.ConstraintArgument | None, findings: SchemaFindings) -> None:
    if not isinstance(pattern, ast.Value):
        return
    try:
        with warnings.catch_warnings():
            # A pattern that Python warns about (nested sets) may change its meaning one day.
            warnings.simplefilter("error")
            re.compile(pattern.text)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        message = f"invalid regular expression: {error}"
        findings.add(SchemaCode.CHECK_PATTERN, pattern.span, message)


def check_card(card: ast.CardDecl, findings: SchemaFindings) -> None:
    """The bounds are in order and can be counted."""
    high = card.high if card.high is not None else card.low
    if card.low > high:
        message = f"no number of edges is between {card.low} and {high}"
        findings.add(SchemaCode.CARD_BOUNDS, card.span, message, hint="the lower bound comes first")
    elif high > CARD_MAX:
        message = f"a bound exceeds {CARD_MAX}"
        findings.add(SchemaCode.CARD_BOUNDS, card.span, message)
