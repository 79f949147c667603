"""Decisions about conflicts: keep ours, take theirs, go back to the base, or a value of one's own.

    decisions per row -> [resolve] -> the same without the conflicts that a user decided

A resolution file is JSON lines, or one JSON array of the same objects:

    {"node": "Person", "id": "Alice", "take": "theirs"}
    {"edge": "Knows", "id": "01JC…", "take": "ours"}
    {"node": "Person", "id": "Bob", "properties": {"age": {"take": "base"}, "city": {"value": "X"}}}
    {"edge": "Knows", "id": "7", "properties": {"endpoints": {"value": {"from": "a", "to": "b"}}}}
    {"node": "City", "take": "theirs"}
    {"node": "Person", "property": "age", "take": "ours"}

``take`` is ``ours`` (the branch merged into), ``theirs`` (the branch merged) or ``base`` (as it was
before both; a new entity is then left out). For an entity it decides what is in conflict; what is
not stays merged. ``value`` is written as in a load. Where a rule is broken (``orphan_edge`` and
its kin) a line names any of the entities involved: ``ours`` then undoes what theirs did to all of
them, ``theirs`` what ours did. A line without an id is about the schema: a type, or one property of
it. A line for something that is not in conflict is an error, as is a property that the type does
not have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

import pyarrow as pa

from omnigraph.branch.merge.bases import TableSides
from omnigraph.branch.merge.conflicts import EntityName
from omnigraph.branch.merge.images import ENDPOINTS, Choices, MergeImages
from omnigraph.branch.merge.threeway import BASE, GIVEN, OURS, THEIRS, Contested, RowDecision
from omnigraph.errors import InputError, UsageError
from omnigraph.rules.identity import identity_members
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.identity import is_keyed
from omnigraph.schema.property_values import ValueRefused, converter
from omnigraph.schema.property_values import text as text_value
from omnigraph.schema.strict_json import LineRefused, parse_line

_SIDES = {"ours": OURS, "theirs": THEIRS, "base": BASE}


class Take(StrEnum):
    """Whose state to keep."""

    OURS = "ours"
    THEIRS = "theirs"
    BASE = "base"


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyDecision:
    """One property: a side, or a value of one's own."""

    take: Take | None = None
    value: Any = None
    """Counts where ``take`` is None; as a load would take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaName:
    """A type, or a property of it, in a resolution."""

    kind: str
    """``node``, ``edge`` or ``interface``."""
    type_name: str
    property_name: str | None = None

    def __str__(self) -> str:
        if self.property_name is None:
            return f"{self.kind} {self.type_name}"
        return f"{self.type_name}.{self.property_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What the user decided about one entity, or about a type or property."""

    entity: EntityName | SchemaName
    take: Take | None = None
    properties: Mapping[str, PropertyDecision] = field(default_factory=dict[str, PropertyDecision])
    place: str = "resolution"
    """Where it was written, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """Everything that was decided before a merge."""

    prefer: Take | None = None
    """For every conflict that no resolution names."""
    resolutions: Mapping[EntityName, Resolution] = field(
        default_factory=dict[EntityName, Resolution]
    )
    schema: Mapping[SchemaName, Resolution] = field(default_factory=dict[SchemaName, Resolution])

    @staticmethod
    def of(prefer: str | None, resolutions: Iterable[Resolution]) -> Decisions:
        """Check what was asked for."""
        if prefer not in (None, "ours", "theirs"):
            raise UsageError(f"not a side: {prefer!r}", hint="prefer 'ours' or 'theirs'")
        found: dict[EntityName, Resolution] = {}
        schema: dict[SchemaName, Resolution] = {}
        for resolution in resolutions:
            subject = resolution.entity
            if subject in found or subject in schema:
                raise _refused(resolution.place, f"{subject} is decided twice")
            if isinstance(subject, EntityName):
                found[subject] = resolution
            elif resolution.take is None or resolution.take is Take.BASE:
                raise _refused(resolution.place, f"{subject}: take ours or theirs")
            else:
                schema[subject] = resolution
        side = Take(prefer) if prefer else None
        return Decisions(prefer=side, resolutions=found, schema=schema)

    @property
    def any(self) -> bool:
        return self.prefer is not None or bool(self.resolutions) or bool(self.schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedRows:
    """A table after all decisions of the user."""

    decided: RowDecision
    given: MergeImages | None
    """Values that the user gave; the fourth state of ``assemble``."""
    used: frozenset[EntityName]
    """Entities whose resolution was needed."""


def resolve_rows(sides: TableSides, decided: RowDecision, decisions: Decisions) -> ResolvedRows:
    """Apply decisions of the user to a table; what stays ``contested`` is still open."""
    rows = decided.conflicts
    if not len(rows) or not decisions.any:
        return ResolvedRows(decided=decided, given=None, used=frozenset())
    work = _Resolving(sides, decided)
    graph_type, used = sides.type, set[EntityName]()
    for row in rows.tolist():
        entity = EntityName(
            kind=graph_type.kind, type_name=graph_type.name, id=sides.ids[row].as_py()
        )
        resolution = decisions.resolutions.get(entity)
        if resolution is not None:
            used.add(entity)
            work.resolve(row, resolution)
        if decisions.prefer is not None:
            work.prefer(row, decisions.prefer)
    return ResolvedRows(decided=work.result(), given=work.given(), used=frozenset(used))


class _Resolving:
    """The arrays of a ``RowDecision`` while decisions of the user are written into them."""

    def __init__(self, sides: TableSides, decided: RowDecision) -> None:
        self._sides = sides
        self._presence = decided.presence.copy()
        self._choices: dict[str, Choices] = {n: c.copy() for n, c in decided.choices.items()}
        self._disputed = {n: mask.copy() for n, mask in decided.disputed.items()}
        self._contested = decided.contested.copy()
        self._given: dict[str, dict[int, Any]] = {}

    def result(self) -> RowDecision:
        return RowDecision(
            presence=self._presence,
            choices=self._choices,
            contested=self._contested,
            disputed=self._disputed,
        )

    def given(self) -> MergeImages | None:
        if not self._given:
            return None
        count, ours = len(self._sides.ids), self._sides.ours.rows
        columns = [
            pa.array([self._given.get(f.name, {}).get(i) for i in range(count)], f.type)
            for f in ours.schema
        ]
        rows = pa.table(columns, schema=ours.schema)
        return replace(self._sides.ours, rows=rows)

    def prefer(self, row: int, side: Take) -> None:
        """Take a side for whatever is still open."""
        if self._contested[row]:
            self._take(row, side, "")

    def resolve(self, row: int, resolution: Resolution) -> None:
        """Apply what was decided about one entity."""
        if resolution.take is not None:
            self._take(row, resolution.take, resolution.place)
            return
        entity = resolution.entity
        graph_type = self._sides.type
        if self._contested[row] == Contested.DELETE_VS_UPDATE:
            raise _refused(
                resolution.place,
                f"{entity} was deleted on one side: decide about the entity, not its properties",
            )
        for name, decision in resolution.properties.items():
            if name not in self._disputed:
                raise _refused(resolution.place, f"{graph_type.name} has no property '{name}'")
            if not self._disputed[name][row]:
                raise _refused(resolution.place, f"{entity}: '{name}' is not in conflict")
            if decision.take is not None:
                self._take_property(row, name, decision.take, resolution.place)
            else:
                self._give(row, name, decision.value, resolution)
            self._disputed[name][row] = False
        if not any(mask[row] for mask in self._disputed.values()):
            self._contested[row] = Contested.NO

    def _take(self, row: int, side: Take, place: str) -> None:
        number = _SIDES[side]
        whole = self._contested[row] == Contested.DELETE_VS_UPDATE
        if side is Take.BASE and (whole or not self._sides.base.present[row]):
            if self._sides.base.doubtful[row]:
                raise _refused(place, "its base is not known: several common ancestors disagree")
            whole = True
        if whole:
            self._presence[row] = number
        for name, mask in self._disputed.items():
            if whole:
                self._choices[name][row] = number
            elif mask[row]:
                self._take_property(row, name, side, place)
            mask[row] = False
        self._contested[row] = Contested.NO

    def _take_property(self, row: int, name: str, side: Take, place: str) -> None:
        if side is Take.BASE and (
            not self._sides.base.present[row] or self._sides.base.unknown_in(name)[row]
        ):
            raise _refused(place, f"'{name}' has no base value to go back to")
        self._choices[name][row] = _SIDES[side]

    def _give(self, row: int, name: str, value: Any, resolution: Resolution) -> None:
        for column, cell in _cells(self._sides.type, name, value, resolution).items():
            self._given.setdefault(column, {})[row] = cell
        self._choices[name][row] = GIVEN


def _cells(graph_type: GraphType, name: str, value: Any, resolution: Resolution) -> dict[str, Any]:
    """The columns that a given value fills."""
    members = identity_members(graph_type) if is_keyed(graph_type) else ()
    if name in members or (name == ENDPOINTS and "src" in members):
        raise _refused(
            resolution.place, f"{resolution.entity}: '{name}' is part of the key and cannot change"
        )
    try:
        if name == ENDPOINTS:
            if not isinstance(value, dict) or set(cast("dict[str, Any]", value)) != {"from", "to"}:
                raise ValueRefused('expected {"from": id, "to": id}')
            return {"src": text_value(value["from"]), "dst": text_value(value["to"])}
        return {name: None if value is None else converter(graph_type.by_name[name].type)(value)}
    except ValueRefused as e:
        raise _refused(resolution.place, f"{resolution.entity}.{name}: {e}") from None


def leftover(
    decisions: Decisions, used: Iterable[EntityName], named: Iterable[SchemaName] = ()
) -> None:
    """Refuse resolutions of what is not in conflict."""
    entities, subjects = set(used), set(named)
    extra = [(str(e), r.place) for e, r in decisions.resolutions.items() if e not in entities]
    extra += [(str(s), r.place) for s, r in decisions.schema.items() if s not in subjects]
    if extra:
        subject, place = extra[0]
        raise _refused(
            place,
            f"{subject} is not in conflict",
            hint="a dry run lists the conflicts as they are now",
            count=len(extra),
        )


def read_resolutions(content: bytes, name: str = "resolutions") -> tuple[Resolution, ...]:
    """Resolutions from the bytes of a file: JSON lines or a JSON array."""
    if content.lstrip()[:1] == b"[":
        listed = _parsed(content.replace(b"\r", b" ").replace(b"\n", b" "), name)
        items = [(f"{name}: item {i}", item) for i, item in enumerate(listed, 1)]
    else:
        lines = enumerate(content.splitlines(), 1)
        items = [(f"{name}:{i}", _parsed(raw, f"{name}:{i}")) for i, raw in lines if raw.strip()]
    return tuple(_resolution(item, place) for place, item in items)


def _parsed(raw: bytes, place: str) -> Any:
    try:
        return parse_line(raw)
    except LineRefused as e:
        raise _refused(place, e.message) from None


def _resolution(item: Any, place: str) -> Resolution:
    if not isinstance(item, dict):
        raise _refused(place, "expected an object", hint=_SHAPE)
    fields = cast("dict[str, Any]", item)
    if "id" not in fields:
        return _schema_resolution(fields, place)
    kinds = [k for k in ("node", "edge") if k in fields]
    extra = set(fields) - {"node", "edge", "id", "take", "properties"}
    whole, properties = fields.get("take"), fields.get("properties")
    if (
        len(kinds) != 1
        or extra
        or not all(isinstance(fields.get(n), str) for n in (kinds[0], "id"))
        or (whole is None) == (properties is None)
        or not isinstance(properties, dict | None)
        or properties == {}
    ):
        raise _refused(place, "not a resolution", hint=_SHAPE)
    decided = cast("dict[str, Any]", properties or {})
    return Resolution(
        entity=EntityName(kind=kinds[0], type_name=fields[kinds[0]], id=fields["id"]),
        take=_take(whole, place) if whole is not None else None,
        properties={name: _decision(d, place) for name, d in decided.items()},
        place=place,
    )


def _schema_resolution(fields: dict[str, Any], place: str) -> Resolution:
    kinds = [k for k in ("node", "edge", "interface") if isinstance(fields.get(k), str)]
    name = fields.get("property")
    if (
        len(kinds) != 1
        or set(fields) - {*kinds, "property", "take"}
        or not isinstance(name, str | None)
        or "take" not in fields
    ):
        raise _refused(place, "not a resolution", hint=_SHAPE)
    subject = SchemaName(kind=kinds[0], type_name=fields[kinds[0]], property_name=name)
    return Resolution(entity=subject, take=_take(fields["take"], place), place=place)


def _decision(item: Any, place: str) -> PropertyDecision:
    fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
    if set(fields) == {"take"}:
        return PropertyDecision(take=_take(fields["take"], place))
    if set(fields) == {"value"}:
        return PropertyDecision(value=fields["value"])
    raise _refused(place, "a property takes a side or has a value", hint=_SHAPE)


def _take(value: Any, place: str) -> Take:
    if value not in list(Take):
        raise _refused(place, f"not a side: {value!r}", hint="take ours, theirs or base")
    return Take(value)


_SHAPE = (
    'write {"node": TYPE, "id": ID, "take": "ours|theirs|base"}, or with '
    '"properties": {NAME: {"take": …} or {"value": …}} instead of "take"; about the schema '
    '{"node": TYPE, "take": "ours|theirs"}, for one property with "property": NAME'
)


def _refused(place: str, message: str, *, hint: str | None = None, count: int = 1) -> InputError:
    text = f"{place}: {message}" if place else message
    more = f" (and {count - 1} more)" if count > 1 else ""
    return InputError(f"{text}{more}; nothing was published", hint=hint)


def as_resolutions(given: Sequence[Resolution] | bytes | None) -> tuple[Resolution, ...]:
    """Resolutions as values, from values or from the content of a file."""
    if given is None:
        return ()
    return read_resolutions(given) if isinstance(given, bytes) else tuple(given)
