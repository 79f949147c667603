"""Rules about groups (`@key`, `@unique`, `@index`) and bounds (`@range`, `@check`, `@card`)."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence

from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.catalog import INTEGER_RANGES, PropertyType, Scalar
from omnigraph.schema.codes import SchemaCode, SchemaFindings
from omnigraph.schema.resolve import (
    ExpandedNode,
    Group,
    as_name,
    bound_value,
    member_names,
    node_groups,
)
from omnigraph.schema.words import CARD_MAX, ENDPOINTS, GROUPS

Types = Mapping[str, PropertyType | None]
"""Types of a declaration's properties by name; None for one that does not exist."""


def check_group_arguments(owner: ast.NodeDecl | ast.EdgeDecl, findings: SchemaFindings) -> None:
    """Members are names; ``@src`` and ``@dst`` open the key of an edge and stand nowhere else."""
    for c in owner.constraints:
        if c.word.text not in GROUPS:
            continue
        on_edge = isinstance(owner, ast.EdgeDecl)
        arguments = c.arguments
        if on_edge and c.word.text == "key":
            arguments = _check_edge_key(c, findings)
        for a in arguments:
            if isinstance(a, ast.EndpointRef):
                hint = f"write `{a.name}`" if on_edge else "only edges have endpoints"
                message = f"`@{a.name}` may only open the key of an edge"
                findings.add(SchemaCode.ENDPOINT_OUTSIDE_KEY, a.span, message, hint=hint)
            elif as_name(a) is None:
                message = f"`@{c.word}` takes names of properties"
                hint = f"write `@{c.word}(name)`, or `@{c.word}` alone behind a property"
                findings.add(SchemaCode.CONSTRAINT_ARGUMENTS, a.span, message, hint=hint)


def _check_edge_key(
    key: ast.ConstraintDecl, findings: SchemaFindings
) -> Sequence[ast.ConstraintArgument]:
    opening = [a.name.text if isinstance(a, ast.EndpointRef) else "" for a in key.arguments[:2]]
    if opening == list(ENDPOINTS):
        for name in member_names(key):
            if name.text in ENDPOINTS:
                message = f"`{name}` is a member of this `@key` twice"
                findings.add(SchemaCode.REPEATED_MEMBER, name.span, message)
        return key.arguments[2:]
    further = [n.text for n in member_names(key) if n.text not in ENDPOINTS]
    findings.add(
        SchemaCode.EDGE_KEY_ENDPOINTS,
        key.span,
        "the key of an edge does not start with its endpoints",
        hint=f"write `@key({', '.join(['@src', '@dst', *dict.fromkeys(further)])})`",
    )
    return [a for a in key.arguments if not isinstance(a, ast.EndpointRef)]


def check_members(
    owner: ast.Name,
    groups: Iterable[Group],
    types: Types,
    findings: SchemaFindings,
    *,
    on_edge: bool,
) -> None:
    """Members exist, stand once, and are of a kind that the constraint can be kept on."""
    for group in groups:
        # Where endpoints stand in a key is the business of `check_group_arguments`.
        endpoints = ENDPOINTS if on_edge else ()
        seen: set[str] = set()
        for member in group.members:
            if member.text in seen:
                message = f"`{member}` is a member of this `@{group.word}` twice"
                findings.add(SchemaCode.REPEATED_MEMBER, member.span, message)
            seen.add(member.text)
            if member.text in types:
                _check_member(group, member, types[member.text], findings)
            elif member.text not in endpoints:
                report_unknown(owner, member, (*types, *endpoints), findings)


def _check_member(
    group: Group, member: ast.Name, found: PropertyType | None, findings: SchemaFindings
) -> None:
    if found is None:
        return
    # Where the constraint is a body line the member is underlined, else the annotation.
    span = member.span if group.span.start < member.span.start else group.span
    vector = found.scalar is Scalar.VECTOR and group.word != "index"
    if found.is_list or found.scalar is Scalar.BLOB or vector:
        message = f"`@{group.word}` is not possible on `{member}` of type `{found}`"
        findings.add(SchemaCode.TYPE_NOT_CONSTRAINABLE, span, message)
    if group.word == "key" and found.nullable:
        message = f"key member `{member}` may not be nullable"
        findings.add(SchemaCode.NULLABLE_KEY, span, message, hint="remove the `?` of its type")


def report_unknown(
    owner: ast.Name, member: ast.Name, known: Iterable[str], findings: SchemaFindings
) -> None:
    """A constraint names a property that is not there."""
    message = f"`{owner}` has no property `{member}`"
    hint = did_you_mean(member.text, known)
    findings.add(SchemaCode.UNKNOWN_PROPERTY, member.span, message, hint=hint)


def check_single_key(
    owner: ast.Name, groups: Iterable[Group], findings: SchemaFindings, *, on_edge: bool
) -> None:
    """At most one key among the groups a declaration writes itself."""
    keys = [g for g in groups if g.word == "key"]
    for second in keys[1:]:
        members = list(dict.fromkeys(n for k in keys for n in k.names))
        several = f"for one key of several members write `@key({', '.join(members)})` in the body"
        findings.add(
            SchemaCode.SECOND_KEY,
            second.span,
            f"`{owner}` has a second key",
            hint=several if len(members) > 1 and not on_edge else "remove one of them",
        )


def check_inherited_key(node: ExpandedNode, findings: SchemaFindings) -> None:
    """A key from an interface must not meet another key in the node."""
    own = [g for g in node_groups(node.decl) if g.word == "key"]
    inherited = [g for g in node.inherited_groups if g.word == "key"]
    if inherited and len(own) + len(inherited) > 1:
        names = [n for g in (*own, *inherited) for n in g.names]
        findings.add(
            SchemaCode.SECOND_KEY,
            node.decl.name.span,
            f"`{node.decl.name}` gets more than one key: {', '.join(names)}",
            hint="declare an inherited key property in the node, without `@key`, to leave it out",
        )


# -- bounds ----------------------------------------------------------------------------------------
# Rules about ``@range``, ``@check`` and ``@card``.
#
# Whatever could never be satisfied or never be evaluated is refused now, not at the first write.


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
    if scalar in INTEGER_RANGES:
        low, high = INTEGER_RANGES[scalar]
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
