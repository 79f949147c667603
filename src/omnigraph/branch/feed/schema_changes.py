"""What a commit changed about the schema, as steps that a copy of the graph can follow.

    schemas before and after -> [schema] -> steps, sent before the changes of rows

A program that keeps a copy, by the ids of types, renames, adds and drops in it what the steps say,
and then applies the changes of the same commit. Rows whose values became others by it are among
them, rows that only came under another name are not. All renames of one commit happen at once:
names may be swapped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from omnigraph.branch.changes import type_number
from omnigraph.branch.feed.tokens import ChangeFilter
from omnigraph.branch.types import ColumnPair, ComparedTypes, matched_types
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.schema.catalog import GraphType


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaStep:
    """One thing that is called, typed or there otherwise than before."""

    op: str
    """``add_type``, ``rename_type``, ``renumber_type``, ``drop_type``; ``drop_property``,
    ``rename_property``, ``retype_property``, ``add_property``. A type gets another id where the
    branch takes over a state in which another branch had added it, too."""
    kind: str
    """``node`` or ``edge``."""
    type_id: int
    type_name: str
    """Under the newer schema; of a type that is dropped, under the older one."""
    before: str | None = None
    """The older name, the older type of a property, or the older id of a type."""
    after: str | None = None
    """The newer name, the newer type of a property, or the newer id of a type."""
    property_name: str | None = None
    """Of steps about properties, under the newer schema; of a drop, under the older one."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without what is absent."""
        found = {
            "op": self.op,
            "kind": self.kind,
            "type": {"id": type_number(self.type_id), "name": self.type_name},
            "property": self.property_name,
            "from": self.before,
            "to": self.after,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """Another schema: its text, and what it means for a copy of the rows."""

    hash: str
    source: str
    steps: tuple[SchemaStep, ...]
    """By type; none where only rules or texts changed."""

    def to_dict(self) -> dict[str, Any]:
        """As ``changes poll --json`` shows it."""
        steps = [step.to_dict() for step in self.steps]
        return {"hash": self.hash, "source": self.source, "steps": steps}


def schema_change(
    before: AcceptedSchema, after: AcceptedSchema, chosen: ChangeFilter
) -> SchemaChange | None:
    """What is not the same in two schemas; None if nothing that was asked for is."""
    if before.hash == after.hash:
        return None
    pairs = [p for p in matched_types(before.catalog, after.catalog) if chosen.wants(p.newest)]
    steps = [step for pair in pairs for step in _steps(pair)]
    if not steps and not chosen.is_everything:
        return None
    return SchemaChange(hash=after.hash, source=after.source, steps=tuple(steps))


_ORDER = ("drop_property", "rename_property", "retype_property", "add_property")
"""What goes makes room for names that come."""


def _steps(pair: ComparedTypes) -> Iterator[SchemaStep]:
    newest, old, new = pair.newest, pair.before, pair.after
    step = partial(SchemaStep, kind=pair.kind, type_id=newest.id, type_name=newest.name)
    if old is None or new is None:
        yield step(op="add_type" if old is None else "drop_type")
        return
    if old.id != new.id:
        yield step(op="renumber_type", before=type_number(old.id), after=type_number(new.id))
    if old.name != new.name:
        yield step(op="rename_type", before=old.name, after=new.name)
    columns = [c for c in pair.columns if c.name not in newest.system_columns]
    steps = [
        step(op=op, before=before, after=after, property_name=column.name)
        for column in columns
        for op, before, after in _column_steps(old, new, column)
    ]
    yield from sorted(steps, key=lambda found: _ORDER.index(found.op))


def _column_steps(
    old: GraphType, new: GraphType, column: ColumnPair
) -> Iterator[tuple[str, str | None, str | None]]:
    """What happened to a column: the operation, and its name or type before and after."""
    was, now = old.by_name.get(column.before or ""), new.by_name.get(column.after or "")
    if was is None and now is not None:
        yield "add_property", None, str(now.type)
    elif now is None and was is not None:
        yield "drop_property", str(was.type), None
    elif was is not None and now is not None:
        if was.name != now.name:
            yield "rename_property", was.name, now.name
        if was.type != now.type:
            yield "retype_property", str(was.type), str(now.type)
