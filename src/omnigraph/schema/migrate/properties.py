"""The steps of one type's properties.

type before, type after -> properties by number -> [properties] -> steps
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from omnigraph.schema.catalog import Backfill, GraphType, InterfaceType, Property, Scalar
from omnigraph.schema.migrate.desired import Desired
from omnigraph.schema.migrate.steps import DropMode, Effect, LintCode, Step, StepKind, StepSubject
from omnigraph.schema.migrate.type_changes import TypeChange, keeps_text, type_change

Owner = GraphType | InterfaceType

MANY = 1 << 62
"""How many rows a type is taken to have while they are not counted."""


def refused(step: Step, reason: str) -> Step:
    """The same change as one that cannot be done."""
    return replace(
        step,
        kind=StepKind.UNSUPPORTED_CHANGE,
        change=step.kind,
        effect=Effect.NONE,
        checked=False,
        reason=reason,
    )


def harmless(step: Step) -> Step:
    """A drop of what no row has: it hides nothing."""
    return replace(step, effect=Effect.RESHAPE, code=None, mode=None)


def _may_break(prop: Property, fill: Backfill | None) -> bool:
    """Whether a copied value may be none that the property can have."""
    copied = fill is not None and fill.copy_of is not None
    return copied and (not prop.type.nullable or prop.type.is_enum)


class PropertySteps:
    """What happens to the properties of a type that goes on."""

    def __init__(
        self,
        desired: Desired,
        before: Owner,
        after: Owner,
        *,
        row_count: int,
        drop_mode: DropMode = DropMode.SOFT,
    ) -> None:
        self._backfills = desired.backfills
        self._before = before
        self._after = after
        self._row_count = row_count
        self._stored = isinstance(after, GraphType)
        self._drop_mode = drop_mode
        self._keys = set(before.key) if isinstance(before, GraphType) else set[str]()

    def steps(self) -> Iterator[Step]:
        """All of them: by declaration, dropped ones last."""
        old = {p.id: p for p in self._before.properties}
        for after in self._after.properties:
            before = old.pop(after.id, None)
            if before is None:
                yield self._added(after)
            else:
                yield from self._changed(before, after)
        for gone in old.values():
            yield self._dropped(gone)

    def _step(self, prop: Property, kind: StepKind, **parts: Any) -> Step:
        if not self._stored:
            # An interface has no rows; what it brings into nodes is a step of these.
            parts = {k: v for k, v in parts.items() if k in ("before", "after")}
        return Step(kind=kind, of=StepSubject.named(self._after, prop), **parts)

    def _rows(self) -> str:
        if self._row_count == 1:
            return "1 row has"
        return "rows have" if self._row_count == MANY else f"{self._row_count:,} rows have"

    def _backfill(self, prop: Property) -> Backfill | None:
        return self._backfills.get(prop.id) if self._stored else None

    def _added(self, prop: Property) -> Step:
        fill = self._backfill(prop)
        required = not prop.type.nullable
        step = self._step(
            prop,
            StepKind.ADD_PROPERTY,
            after=str(prop.type),
            effect=Effect.WRITE if fill is not None else Effect.RESHAPE,
            checked=_may_break(prop, fill),
            backfill=fill.text if fill is not None else None,
            code=LintCode.REQUIRED_PROPERTY if required else None,
        )
        if required and fill is None and self._stored and self._row_count:
            lack = f"{self._rows()} no value for it"
            return refused(step, f"{lack}: add `@backfill(…)`, or make it nullable")
        return step

    def _dropped(self, prop: Property) -> Step:
        is_vector = prop.type.scalar is Scalar.VECTOR
        step = self._step(
            prop,
            StepKind.DROP_PROPERTY,
            before=str(prop.type),
            effect=Effect.HIDE,
            code=LintCode.DROP_VECTOR if is_vector else LintCode.DROP_PROPERTY,
            mode=self._drop_mode,
        )
        return step if self._row_count else harmless(step)

    def _changed(self, before: Property, after: Property) -> Iterator[Step]:
        if before.name != after.name:
            yield self._renamed(before, after)
        yield from self._retyped(before, after)
        if before.type.nullable != after.type.nullable:
            yield self._nullability(before, after)
        if before.embed != after.embed and not self._renamed_source(before, after):
            yield self._embedded(before, after)
        if (before.description, before.annotations) != (after.description, after.annotations):
            yield self._step(after, StepKind.UPDATE_PROPERTY_METADATA)

    def _renamed(self, before: Property, after: Property) -> Step:
        step = self._step(
            after,
            StepKind.RENAME_PROPERTY,
            before=before.name,
            after=after.name,
            effect=Effect.RESHAPE,
        )
        if self._stored and "id" in (before.name, after.name) and self._row_count:
            return refused(step, "a property called id is the id of the entity itself")
        return step

    def _retyped(self, before: Property, after: Property) -> Iterator[Step]:
        change = type_change(before.type, after.type)
        parts = {
            "before": str(replace(before.type, nullable=False)),
            "after": str(replace(after.type, nullable=False)),
        }
        match change:
            case TypeChange.SAME:
                return
            case TypeChange.EXTENDED:
                step = self._step(after, StepKind.EXTEND_ENUM, **parts)
            case TypeChange.NARROWED:
                step = self._step(
                    after, StepKind.NARROW_ENUM, checked=True, code=LintCode.NARROWED_ENUM, **parts
                )
            case TypeChange.WIDENED | TypeChange.OTHER:
                step = self._step(
                    after,
                    StepKind.CHANGE_PROPERTY_TYPE,
                    effect=Effect.WRITE,
                    code=LintCode.TYPE_CHANGED,
                    **parts,
                )
        if self._row_count and self._stored:
            if change is TypeChange.OTHER:
                lack = f"{self._rows()} values that cannot be kept"
                step = refused(step, f"{lack}: add another property, and drop this one later")
            elif before.name in self._keys and not keeps_text(before.type, after.type):
                step = refused(step, "it is part of the key, and ids would be written otherwise")
        yield step

    def _nullability(self, before: Property, after: Property) -> Step:
        fill = None if after.type.nullable else self._backfill(after)
        tightened = before.type.nullable
        return self._step(
            after,
            StepKind.CHANGE_NULLABILITY,
            before="nullable" if before.type.nullable else "required",
            after="nullable" if after.type.nullable else "required",
            effect=Effect.WRITE if fill is not None else Effect.RESHAPE,
            checked=tightened and (fill is None or fill.copy_of is not None),
            backfill=fill.text if fill is not None else None,
            code=LintCode.REQUIRED_NOW if tightened else None,
        )

    def _embedded(self, before: Property, after: Property) -> Step:
        step = self._step(
            after,
            StepKind.CHANGE_EMBED,
            before=_embed(before),
            after=_embed(after),
            code=LintCode.EMBED_CHANGED if before.embed and after.embed else None,
        )
        if self._stored and before.embed and after.embed and self._row_count:
            why = "stored vectors were made from something else: add a new vector instead"
            return refused(step, why)
        return step

    def _renamed_source(self, before: Property, after: Property) -> bool:
        """Whether it is the same source under another name."""
        if before.embed is None or after.embed is None or before.embed.model != after.embed.model:
            return False
        old = next((p.id for p in self._before.properties if p.name == before.embed.source), None)
        new = next((p.id for p in self._after.properties if p.name == after.embed.source), None)
        return old == new


def _embed(prop: Property) -> str | None:
    if prop.embed is None:
        return None
    model = f', model="{prop.embed.model}"' if prop.embed.model else ""
    return f"@embed({prop.embed.source}{model})"
