"""Rules about types of properties, and their agreement with interfaces (codes S2xx)."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.findings import SchemaFindings
from omnigraph.schema.resolve import embed_of, property_type
from omnigraph.schema.words import (
    BASE_TYPES,
    TYPE_ALIASES,
    TYPE_SHAPES,
    TYPE_WORDS,
    VECTOR_SIZE_MAX,
)


def check_type(ref: ast.TypeRef, findings: SchemaFindings) -> None:
    """The type exists and has a sensible shape."""
    if ref.form == "enum":
        seen: set[str] = set()
        for value in ref.enum_values:
            if value.text in seen:
                message = f"enum value `{value}` is listed twice"
                findings.add(SchemaCode.DUPLICATE_ENUM_VALUE, value.span, message)
            seen.add(value.text)
    elif ref.form == "vector":
        if not 1 <= ref.size <= VECTOR_SIZE_MAX:
            message = f"a vector cannot have {ref.size} elements"
            expected = f"a size from 1 to {VECTOR_SIZE_MAX}"
            findings.add(SchemaCode.VECTOR_SIZE, ref.span, message, expected=expected)
    elif ref.base.text not in BASE_TYPES:
        message = f"unknown type `{ref.base}`"
        findings.add(SchemaCode.UNKNOWN_TYPE, ref.base.span, message, hint=_unknown_type_hint(ref))
    elif ref.form == "list" and ref.base.text == "Blob":
        message = "a list cannot hold blobs"
        findings.add(SchemaCode.LIST_ELEMENT, ref.span, message, expected="a scalar type")


def _unknown_type_hint(ref: ast.TypeRef) -> str:
    word = ref.base.text.lower()
    if word in TYPE_SHAPES:
        spelling, example = TYPE_SHAPES[word]
        return f"did you mean `{spelling}{ref.arguments or example}`?"
    if word in TYPE_ALIASES:
        return f"use {TYPE_ALIASES[word]}"
    shapes = [spelling + example for spelling, example in TYPE_SHAPES.values()]
    listed = ", ".join(f"`{t}`" for t in (*BASE_TYPES, *shapes))
    return did_you_mean(ref.base.text, TYPE_WORDS) or f"the types are {listed}, and lists `[I32]`"


def check_interface_types(
    node: ast.NodeDecl, interfaces: Mapping[str, ast.InterfaceDecl], findings: SchemaFindings
) -> None:
    """A node's own property, or an earlier interface's, has the type that an interface wants."""
    own = {p.name.text: p for p in node.properties}
    brought: dict[str, tuple[ast.Name, ast.PropertyDecl]] = {}
    for name in node.implements:
        interface = interfaces.get(name.text)
        for wanted in interface.properties if interface else ():
            word = wanted.name.text
            if word in own:
                _compare_with_own(own[word], wanted, name, findings)
                continue
            first, earlier = brought.setdefault(word, (name, wanted))
            if _differ(earlier, wanted) or embed_of(earlier) != embed_of(wanted):
                message = f"interfaces `{first}` and `{name}` declare `{word}` differently"
                hint = "give both the same type, or rename one of the properties"
                findings.add(SchemaCode.INTERFACES_DISAGREE, name.span, message, hint=hint)


def _compare_with_own(
    own: ast.PropertyDecl, wanted: ast.PropertyDecl, interface: ast.Name, findings: SchemaFindings
) -> None:
    if _differ(own, wanted):
        message = f"property `{own.name}` does not have the type interface `{interface}` wants"
        expected = f"`{property_type(wanted.type)}`"
        findings.add(SchemaCode.INTERFACE_TYPE_MISMATCH, own.type.span, message, expected=expected)


def _differ(one: ast.PropertyDecl, other: ast.PropertyDecl) -> bool:
    a, b = property_type(one.type), property_type(other.type)
    # A type that does not exist has been reported where it is written.
    return a is not None and b is not None and a != b
