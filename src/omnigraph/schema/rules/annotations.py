"""Rules about annotations: where they stand, how often, with which arguments.

An annotation without a meaning to us is legal everywhere and kept. One that nearly spells a word
with a meaning never gets here: the parser has reported it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.catalog import PropertyType, Scalar
from omnigraph.schema.codes import SchemaCode, SchemaFindings
from omnigraph.schema.resolve import annotation, literal_hint, literal_value, property_type
from omnigraph.schema.words import ANNOTATIONS

Place = Literal["interface property", "node property", "edge property", "node type", "edge type"]

_ON_NODE_PROPERTIES: frozenset[Place] = frozenset({"interface property", "node property"})
_ON_PROPERTIES: frozenset[Place] = _ON_NODE_PROPERTIES.union(("edge property",))
_ON_TYPES: frozenset[Place] = frozenset({"node type", "edge type"})
_PLACES: dict[str, frozenset[Place]] = {
    "key": _ON_NODE_PROPERTIES,
    "unique": _ON_PROPERTIES,
    "index": _ON_PROPERTIES,
    "range": frozenset(),
    "check": frozenset(),
    "embed": _ON_NODE_PROPERTIES,
    "description": _ON_PROPERTIES | _ON_TYPES,
    "instruction": _ON_TYPES,
    "rename_from": _ON_PROPERTIES | _ON_TYPES,
    "backfill": _ON_PROPERTIES,
}
_MISPLACED_HINTS = {
    "key": "a key stands on a node property, or in a body: `@key(a, b)`, `@key(@src, @dst, a)`",
    "unique": "it stands on a property, or in a body: `@unique(a, b)`",
    "index": "it stands on a property, or in a body: `@index(a, b)`",
    "range": "it is a line of a node body: `@range(p, 0..10)`",
    "check": 'it is a line of a node body: `@check(p, "regex")`',
    "embed": "it stands on a vector property of a node",
    "instruction": "it stands on a node or edge type; use `@description` here",
    "backfill": "it stands on a property, and says what rows get that have no value",
}
_TYPE_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
_PROPERTY_NAME = re.compile(r"[a-z_][A-Za-z0-9_]*")


def check_annotations(
    annotations: Iterable[ast.AnnotationDecl], place: Place, findings: SchemaFindings
) -> None:
    """Place, number and arguments of the annotations of one target."""
    seen: set[str] = set()
    for a in annotations:
        word = a.name.text
        _check_arguments(a, place, findings)
        if word not in ANNOTATIONS:
            continue
        if place not in _PLACES[word]:
            message = f"`@{word}` has no meaning on this {place}"
            hint = _MISPLACED_HINTS.get(word)
            findings.add(SchemaCode.ANNOTATION_MISPLACED, a.span, message, hint=hint)
        elif word in seen:
            findings.add(SchemaCode.REPEATED_ANNOTATION, a.span, f"`@{word}` stands here twice")
        seen.add(word)


def _check_arguments(a: ast.AnnotationDecl, place: Place, findings: SchemaFindings) -> None:
    word = a.name.text
    names: set[str] = set()
    for name, _ in a.arguments:
        if name.text in names:
            message = f"argument `{name}` of `@{word}` is given twice"
            findings.add(SchemaCode.ANNOTATION_ARGUMENT, name.span, message)
        names.add(name.text)
    if word not in ("description", "instruction", "rename_from", "embed", "backfill"):
        return
    if a.value is None or (word != "backfill" and not a.value.text.strip()):
        message = f"`@{word}` needs a value that is not blank"
        findings.add(SchemaCode.ANNOTATION_ARGUMENT, a.span, message)
    elif word == "rename_from":
        _check_rename(a.value, place, findings)
    allowed = ("model",) if word == "embed" else ()
    for name, value in a.arguments:
        if name.text not in allowed:
            message = f"`@{word}` has no argument `{name}`"
            hint = did_you_mean(name.text, allowed)
            findings.add(SchemaCode.ANNOTATION_ARGUMENT, name.span, message, hint=hint)
        elif value.kind != "string" or not value.text.strip():
            message = f"argument `{name}` of `@{word}` needs a text that is not blank"
            findings.add(SchemaCode.ANNOTATION_ARGUMENT, value.span, message)


def _check_rename(value: ast.Value, place: Place, findings: SchemaFindings) -> None:
    on_type = place in _ON_TYPES
    if not (_TYPE_NAME if on_type else _PROPERTY_NAME).fullmatch(value.text):
        expected = "the former name of this type" if on_type else "the former name of this property"
        message = "`@rename_from` does not hold a possible name"
        findings.add(SchemaCode.ANNOTATION_ARGUMENT, value.span, message, expected=expected)


def check_backfill(properties: Iterable[ast.PropertyDecl], findings: SchemaFindings) -> None:
    """A literal in ``@backfill`` is a value of its property. Names are looked up in a graph."""
    for p in properties:
        given, own = annotation(p, "backfill"), property_type(p.type)
        if given is None or given.value is None or own is None or given.value.kind == "word":
            continue
        if literal_value(given.value, own) is None:
            findings.add(
                SchemaCode.ANNOTATION_ARGUMENT,
                given.value.span,
                f"`@backfill` of `{p.name}` holds no value of `{own}`",
                hint=literal_hint(own),
            )


def check_embed(
    declared: Iterable[ast.PropertyDecl],
    available: Iterable[ast.PropertyDecl],
    findings: SchemaFindings,
) -> None:
    """``@embed`` stands on a vector and names a text property among the available ones."""
    texts = {p.name.text: property_type(p.type) for p in available}
    for p in declared:
        for a in p.annotations:
            if a.name.text != "embed":
                continue
            own = property_type(p.type)
            if own is not None and own.scalar is not Scalar.VECTOR:
                message = f"`@embed` on `{p.name}`, which is no vector but `{own}`"
                findings.add(SchemaCode.EMBED_TARGET, a.span, message, expected="`Vector(n)`")
            if a.value is not None and a.value.text.strip():
                _check_embed_source(a.value, texts, findings)


def _check_embed_source(
    value: ast.Value, texts: Mapping[str, PropertyType | None], findings: SchemaFindings
) -> None:
    if value.text not in texts:
        message = f"`@embed` names an unknown property `{value.text}`"
        hint = did_you_mean(value.text, texts)
        findings.add(SchemaCode.EMBED_SOURCE, value.span, message, hint=hint)
        return
    found = texts[value.text]
    if found is not None and (found.is_list or found.scalar is not Scalar.STRING):
        message = f"`@embed` names `{value.text}`, which is no text but `{found}`"
        findings.add(SchemaCode.EMBED_SOURCE, value.span, message, expected="a `String` property")
