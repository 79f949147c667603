"""A desired schema with the identities that it continues.

    accepted catalog, .pg text -> [desired] -> catalog with stable numbers, hints -> plan

A declaration with the name of an accepted one *is* it. One with ``@rename_from("old")`` is what was
called so. Everything else is new, and what no declaration continues is gone for good: the same name
later is another life. Hints are read from the text and are not part of the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

from omnigraph.errors import Diagnostic, InternalError
from omnigraph.lang.source import Source
from omnigraph.lang.suggest import did_you_mean
from omnigraph.schema import ast
from omnigraph.schema.build import build
from omnigraph.schema.catalog import (
    Backfill,
    Catalog,
    EntityKind,
    GraphType,
    InterfaceType,
    Property,
)
from omnigraph.schema.codes import HintCode, SchemaFindings
from omnigraph.schema.compile import parse_schema
from omnigraph.schema.migrate.type_changes import TypeChange, can_copy, type_change
from omnigraph.schema.resolve import annotation, expand, literal_value, property_type


@dataclass(frozen=True, kw_only=True)
class Desired:
    """A schema that a graph is to get."""

    catalog: Catalog
    source: str
    backfills: Mapping[int, Backfill] = field(default_factory=dict[int, Backfill])
    """By the stable number of the property."""
    warnings: tuple[Diagnostic, ...] = ()
    numbers_from: int = 0
    numbers_used: int = 0
    """How many numbers from ``numbers_from`` on are new."""


def resolve(
    accepted: Catalog, text: str, *, source_name: str = "schema.pg", numbers_from: int | None = None
) -> Desired:
    """Read a desired schema against an accepted one.

    New declarations get numbers from ``numbers_from`` on, the accepted catalog's next free one if
    it is left out. Raises ``SchemaError`` with all findings of the text and its hints.
    """
    schema = parse_schema(text, source_name=source_name)
    first = max(accepted.next_id, numbers_from or 0)
    source = Source(name=source_name, text=text)
    numbering = _Continued(accepted, schema, source, first)
    catalog = replace(build(schema, numbering), aliases=accepted.aliases)
    numbering.findings.raise_if_any()
    used = numbering.next_free - first
    return Desired(
        catalog=catalog,
        source=text,
        backfills=numbering.backfills,
        warnings=numbering.warnings.diagnostics,
        numbers_from=first,
        numbers_used=used,
    )


Owner = GraphType | InterfaceType
T = TypeVar("T", bound=GraphType | Property)


@dataclass(frozen=True, kw_only=True)
class _Names(Generic[T]):
    """The types of a kind, or the properties of an owner."""

    known: Mapping[str, T]
    """What the accepted schema has, by name."""
    declared: set[str]
    """Names of the desired schema."""
    taken: set[int] = field(default_factory=set[int])
    """What was renamed."""


class _Continued:
    """A ``Numbering`` that continues an accepted catalog."""

    def __init__(
        self, accepted: Catalog, schema: ast.SchemaDecl, source: Source, first: int
    ) -> None:
        self._accepted = accepted
        self._first = self.next_free = first
        self._interfaces = {i.name.text: i for i in schema.interfaces}
        self._types: dict[EntityKind, _Names[Any]] = {
            "node": _Names(known=accepted.nodes, declared={n.name.text for n in schema.nodes}),
            "edge": _Names(known=accepted.edges, declared={e.name.text for e in schema.edges}),
        }
        self._owners: dict[int, tuple[Owner | None, _Names[Property]]] = {}
        self.findings = SchemaFindings(source)
        self.warnings = SchemaFindings(source)
        self.backfills: dict[int, Backfill] = {}
        """What this change fills rows with."""
        self._remembered: dict[int, Backfill] = {}
        """What earlier changes did, for rows that a merge may still bring."""

    @property
    def next_id(self) -> int:
        # Without anything new the counter stays where it is.
        return self.next_free if self.next_free > self._first else self._accepted.next_id

    def interface_id(self, decl: ast.InterfaceDecl) -> int:
        return self._own(self._accepted.interfaces.get(decl.name.text), decl.properties)

    def type_ids(self, kind: EntityKind, decl: ast.NodeDecl | ast.EdgeDecl) -> tuple[int, int]:
        hint = annotation(decl, "rename_from")
        unknown = partial(self._report_unknown_type, kind)
        found = self._continued(self._types[kind], decl.name, hint, f"{kind} type", unknown)
        is_node = isinstance(decl, ast.NodeDecl)
        properties = expand(decl, self._interfaces).properties if is_node else decl.properties
        number = self._own(found, properties)
        return number, found.incarnation if found is not None else self._new()

    def property_id(self, owner_id: int, decl: ast.PropertyDecl) -> int:
        owner, names = self._owners[owner_id]
        hint = annotation(decl, "rename_from")
        unknown = partial(self._report_unknown_property, owner, decl)
        found = self._continued(names, decl.name, hint, "property", unknown)
        number = found.id if found is not None else self._new()
        self._read_backfill(number, owner, found, decl)
        if found is not None and found.backfill is not None and _holds_on(found, decl):
            self._remembered[number] = found.backfill
        return number

    def backfill(self, property_id: int) -> Backfill | None:
        return self.backfills.get(property_id) or self._remembered.get(property_id)

    def _new(self) -> int:
        self.next_free += 1
        return self.next_free - 1

    def _own(self, found: Owner | None, declared: Iterable[ast.PropertyDecl]) -> int:
        number = found.id if found is not None else self._new()
        known = {} if found is None else {p.name: p for p in found.properties}
        names = _Names(known=known, declared={p.name.text for p in declared})
        self._owners[number] = found, names
        return number

    # -- names -----------------------------------------------------------------------------------

    def _continued(
        self,
        names: _Names[T],
        name: ast.Name,
        hint: ast.AnnotationDecl | None,
        what: str,
        unknown: Callable[[ast.AnnotationDecl, str], None],
    ) -> T | None:
        """What a declaration continues: its name says it, or its ``@rename_from``."""
        same = names.known.get(name.text)
        if same is not None:
            if hint is not None:
                message = "the graph has this name already; the hint says nothing any more"
                self.warnings.add(HintCode.RENAME_USELESS, hint.span, message)
            return same
        if hint is None or hint.value is None:
            return None
        old = hint.value.text
        found = names.known.get(old)
        if found is None:
            unknown(hint, old)
        elif old in names.declared or found.id in names.taken:
            message = f"{what} `{old}` goes on as another declaration"
            self.findings.add(HintCode.RENAME_TAKEN, hint.span, message)
            return None
        else:
            names.taken.add(found.id)
        return found

    def _report_unknown_type(self, kind: EntityKind, hint: ast.AnnotationDecl, old: str) -> None:
        others = self._accepted.edges if kind == "node" else self._accepted.nodes
        if old in others or old in self._accepted.interfaces:
            message = f"`{old}` is no {kind} type of the graph"
            self.findings.add(HintCode.RENAME_OTHER_KIND, hint.span, message)
            return
        message = f"the graph has no {kind} type `{old}`"
        meant = did_you_mean(old, self._types[kind].known)
        self.findings.add(HintCode.RENAME_UNKNOWN, hint.span, message, hint=meant)

    def _report_unknown_property(
        self,
        owner: Owner | None,
        decl: ast.PropertyDecl,
        hint: ast.AnnotationDecl,
        old: str,
    ) -> None:
        if owner is None:
            message = f"`{decl.name}` belongs to a new type and cannot have been `{old}`"
            why = "rename the type with `@rename_from`, or take the hint away"
            self.findings.add(HintCode.RENAME_IN_NEW_TYPE, hint.span, message, hint=why)
            return
        elsewhere = [t.name for t in self._accepted.types() if old in t.by_name]
        names = [p.name for p in owner.properties]
        moved = f"properties stay with their type: {', '.join(elsewhere)}"
        self.findings.add(
            HintCode.RENAME_UNKNOWN,
            hint.span,
            f"`{owner.name}` has no property `{old}` in the graph",
            hint=did_you_mean(old, names) or (moved if elsewhere else None),
        )

    # -- values ----------------------------------------------------------------------------------

    def _read_backfill(
        self, number: int, owner: Owner | None, found: Property | None, decl: ast.PropertyDecl
    ) -> None:
        given, wanted = annotation(decl, "backfill"), property_type(decl.type)
        if given is None or given.value is None:
            return
        if wanted is None:
            raise InternalError(f"type {decl.type.base} passed the check but does not exist")
        if found is not None and (not found.type.nullable or wanted.nullable):
            message = f"`{decl.name}` is in the graph already; the hint says nothing any more"
            self.warnings.add(HintCode.BACKFILL_USELESS, given.span, message)
            return
        value = given.value
        if value.kind != "word":
            literal = literal_value(value, wanted)
            shown = f'"{value.text}"' if value.kind == "string" else value.text
            self.backfills[number] = Backfill(value=literal, text=shown)
            return
        known = {} if owner is None else {p.name: p for p in owner.properties}
        source = known.get(value.text)
        if owner is None:
            return  # A new type has no rows: at first there is nothing to copy, as at init.
        if source is None:
            message = f"`{owner.name}` has no property `{value.text}` in the graph"
            hint = did_you_mean(value.text, known) or "a text is written in quotes"
            self.findings.add(HintCode.BACKFILL_UNKNOWN, value.span, message, hint=hint)
        elif not can_copy(source.type, wanted):
            message = f"a value of `{source.type}` cannot become one of `{wanted}`"
            self.findings.add(HintCode.BACKFILL_TYPE, value.span, message)
        else:
            self.backfills[number] = Backfill(copy_of=source.id, text=value.text)


def _holds_on(found: Property, decl: ast.PropertyDecl) -> bool:
    """Whether a value of a property is one of its type to come, too."""
    wanted = property_type(decl.type)
    return wanted is not None and type_change(found.type, wanted) is not TypeChange.OTHER
