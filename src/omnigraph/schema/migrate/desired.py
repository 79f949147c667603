"""A desired schema with the identities that it continues.

    accepted catalog, .pg text -> [desired] -> catalog with stable numbers, hints -> plan

A declaration with the name of an accepted one *is* it. One with ``@rename_from("old")`` is what was
called so. Everything else is new, and what no declaration continues is gone for good: the same name
later is another life. Hints are read from the text and are not part of the catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
from omnigraph.schema.migrate.types import TypeChange, can_copy, type_change
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


class _Continued:
    """A ``Numbering`` that continues an accepted catalog."""

    def __init__(
        self, accepted: Catalog, schema: ast.SchemaDecl, source: Source, first: int
    ) -> None:
        self._accepted = accepted
        self._first = self.next_free = first
        self._interfaces = {i.name.text: i for i in schema.interfaces}
        self._declared: dict[EntityKind, set[str]] = {
            "node": {n.name.text for n in schema.nodes},
            "edge": {e.name.text for e in schema.edges},
        }
        self._taken_types: set[int] = set()
        self._owners: dict[int, Owner | None] = {}
        self._names: dict[int, set[str]] = {}
        """Property names that each owner declares."""
        self._taken: dict[int, set[int]] = {}
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
        return self._own(
            self._accepted.interfaces.get(decl.name.text),
            {p.name.text for p in decl.properties},
        )

    def type_ids(self, kind: EntityKind, decl: ast.NodeDecl | ast.EdgeDecl) -> tuple[int, int]:
        found = self._continued_type(kind, decl)
        is_node = isinstance(decl, ast.NodeDecl)
        properties = expand(decl, self._interfaces).properties if is_node else decl.properties
        number = self._own(found, {p.name.text for p in properties})
        return number, found.incarnation if found is not None else self._new()

    def property_id(self, owner_id: int, decl: ast.PropertyDecl) -> int:
        owner = self._owners[owner_id]
        found = self._continued_property(owner_id, owner, decl)
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

    def _own(self, found: Owner | None, names: set[str]) -> int:
        number = found.id if found is not None else self._new()
        self._owners[number], self._names[number] = found, names
        self._taken[number] = set()
        return number

    # -- types -----------------------------------------------------------------------------------

    def _continued_type(
        self, kind: EntityKind, decl: ast.NodeDecl | ast.EdgeDecl
    ) -> GraphType | None:
        known = self._accepted.nodes if kind == "node" else self._accepted.edges
        hint = next((a for a in decl.annotations if a.name.text == "rename_from"), None)
        same = known.get(decl.name.text)
        if same is not None:
            self._warn_of_hint(hint)
            return same
        if hint is None or hint.value is None:
            return None
        old = hint.value.text
        found = known.get(old)
        if found is None:
            self._report_unknown_type(kind, hint, old)
        elif old in self._declared[kind] or found.id in self._taken_types:
            message = f"{kind} type `{old}` goes on as another declaration"
            self.findings.add(HintCode.RENAME_TAKEN, hint.span, message)
            return None
        else:
            self._taken_types.add(found.id)
        return found

    def _report_unknown_type(self, kind: EntityKind, hint: ast.AnnotationDecl, old: str) -> None:
        others = self._accepted.edges if kind == "node" else self._accepted.nodes
        if old in others or old in self._accepted.interfaces:
            message = f"`{old}` is no {kind} type of the graph"
            self.findings.add(HintCode.RENAME_OTHER_KIND, hint.span, message)
            return
        known = self._accepted.nodes if kind == "node" else self._accepted.edges
        message = f"the graph has no {kind} type `{old}`"
        self.findings.add(
            HintCode.RENAME_UNKNOWN, hint.span, message, hint=did_you_mean(old, known)
        )

    # -- properties ------------------------------------------------------------------------------

    def _continued_property(
        self, owner_id: int, owner: Owner | None, decl: ast.PropertyDecl
    ) -> Property | None:
        hint = annotation(decl, "rename_from")
        known = {} if owner is None else {p.name: p for p in owner.properties}
        same = known.get(decl.name.text)
        if same is not None:
            self._warn_of_hint(hint)
            return same
        if hint is None or hint.value is None:
            return None
        old = hint.value.text
        found = known.get(old)
        if found is None:
            self._report_unknown_property(owner, decl, hint, old)
        elif old in self._names[owner_id] or found.id in self._taken[owner_id]:
            message = f"property `{old}` goes on as another declaration"
            self.findings.add(HintCode.RENAME_TAKEN, hint.span, message)
            return None
        else:
            self._taken[owner_id].add(found.id)
        return found

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

    def _warn_of_hint(self, hint: ast.AnnotationDecl | None) -> None:
        if hint is not None:
            message = "the graph has this name already; the hint says nothing any more"
            self.warnings.add(HintCode.RENAME_USELESS, hint.span, message)

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
