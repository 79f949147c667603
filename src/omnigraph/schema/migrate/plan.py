"""The plan: every difference between an accepted and a desired schema, as ordered steps.

    accepted catalog, desired -> types by number -> [plan] -> steps -> columns, checks, apply

Order: what is new and renamed, by declaration; inside a type renames, properties, rules, texts.
What is dropped comes last. A plan is a value: it says what would happen and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import Diagnostic
from omnigraph.schema.catalog import (
    Catalog,
    EdgeType,
    GraphType,
    InterfaceType,
    NodeType,
)
from omnigraph.schema.migrate.desired import Desired
from omnigraph.schema.migrate.facts import ConstraintRule, covers, key_of, key_text, rules_of
from omnigraph.schema.migrate.properties import MANY, PropertySteps, harmless, refused
from omnigraph.schema.migrate.steps import DropMode, Effect, LintCode, Step, StepKind, StepSubject
from omnigraph.show.shown import ShownAsText


@dataclass(frozen=True, kw_only=True)
class SchemaPlan(ShownAsText):
    """What applying a schema would do."""

    steps: tuple[Step, ...]
    desired: Desired = field(repr=False)
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether every step can be done, as far as that is known without looking at rows."""
        return all(step.supported for step in self.steps)

    @property
    def destructive(self) -> tuple[Step, ...]:
        """The steps after which data is no longer shown."""
        return tuple(step for step in self.steps if step.destructive)

    @property
    def unsupported(self) -> tuple[Step, ...]:
        """The steps that cannot be done."""
        return tuple(step for step in self.steps if not step.supported)

    def __bool__(self) -> bool:
        return bool(self.steps)

    def __str__(self) -> str:
        from omnigraph.schema.migrate.steps import plan_text

        return plan_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``schema plan --json``."""
        return {
            "supported": self.supported,
            "step_count": len(self.steps),
            "steps": [step.to_dict() for step in self.steps],
            "warnings": [w.to_dict() for w in self.warnings],
        }


def make_plan(
    accepted: Catalog,
    accepted_source: str,
    desired: Desired,
    *,
    rows: Mapping[int, int] | None = None,
    drop_mode: DropMode = DropMode.SOFT,
) -> SchemaPlan:
    """Compare. ``rows`` counts the rows of accepted types by number; what allows anything on an
    empty type is refused while rows are not counted."""
    steps = list(_Planner(accepted, desired, rows, drop_mode).steps())
    if not steps and accepted_source != desired.source:
        whole = StepSubject(entity_kind="schema", type_name="schema", type_id=0)
        steps = [Step(kind=StepKind.UPDATE_SOURCE, of=whole)]
    return SchemaPlan(steps=tuple(steps), desired=desired, warnings=desired.warnings)


class _Planner:
    def __init__(
        self,
        accepted: Catalog,
        desired: Desired,
        rows: Mapping[int, int] | None,
        drop_mode: DropMode,
    ) -> None:
        self._accepted = accepted
        self._desired = desired
        self._rows = rows
        self._drop_mode = drop_mode

    def steps(self) -> Iterator[Step]:
        old_interfaces = {i.id: i for i in self._accepted.interfaces.values()}
        for interface in self._desired.catalog.interfaces.values():
            before = old_interfaces.pop(interface.id, None)
            if before is None:
                yield self._added(interface)
            else:
                yield from PropertySteps(self._desired, before, interface, row_count=0).steps()
        old = {(t.id, t.incarnation): t for t in self._accepted.types()}
        for after in self._desired.catalog.types():
            was = old.pop((after.id, after.incarnation), None)
            yield from (self._added(after),) if was is None else self._changed(was, after)
        # Edges before the nodes that they run between.
        for gone in sorted(old.values(), key=lambda t: t.kind == "node"):
            yield self._dropped(gone)
        for gone in old_interfaces.values():
            yield Step(kind=StepKind.DROP_TYPE, of=StepSubject.named(gone))

    # -- whole types -----------------------------------------------------------------------------

    @staticmethod
    def _added(after: GraphType | InterfaceType) -> Step:
        return Step(
            kind=StepKind.ADD_TYPE,
            of=StepSubject.named(after),
            after=f"{after.source} -> {after.target}" if isinstance(after, EdgeType) else None,
        )

    def _dropped(self, gone: GraphType) -> Step:
        is_node = gone.kind == "node"
        rows = self._counted(gone)
        step = Step(
            kind=StepKind.DROP_TYPE,
            of=StepSubject.named(gone),
            effect=Effect.HIDE,
            code=LintCode.DROP_NODE if is_node else LintCode.DROP_EDGE,
            mode=self._drop_mode,
            rows=rows,
        )
        return harmless(step) if rows == 0 else step

    def _counted(self, graph_type: GraphType) -> int | None:
        return self._rows.get(graph_type.id, 0) if self._rows is not None else None

    # -- one type --------------------------------------------------------------------------------

    def _changed(self, before: GraphType, after: GraphType) -> Iterator[Step]:
        counted = self._counted(before)
        row_count = MANY if counted is None else counted
        if before.name != after.name:
            yield self._step(after, StepKind.RENAME_TYPE, before=before.name, after=after.name)
        if isinstance(before, EdgeType) and isinstance(after, EdgeType):
            yield from self._endpoints(before, after)
        yield from PropertySteps(
            self._desired, before, after, row_count=row_count, drop_mode=self._drop_mode
        ).steps()
        yield from self._key(before, after, row_count)
        yield from self._rules(before, after)
        if isinstance(before, EdgeType) and isinstance(after, EdgeType):
            yield from self._cardinality(before, after)
        if isinstance(before, NodeType) and isinstance(after, NodeType):
            yield from self._implements(before, after)
        yield from self._texts(before, after)

    @staticmethod
    def _step(owner: GraphType, kind: StepKind, **parts: Any) -> Step:
        return Step(kind=kind, of=StepSubject.named(owner), **parts)

    def _endpoints(self, before: EdgeType, after: EdgeType) -> Iterator[Step]:
        old = [self._accepted.nodes[n].id for n in (before.source, before.target)]
        new = [self._desired.catalog.nodes[n].id for n in (after.source, after.target)]
        if old != new:
            yield self._step(
                after,
                StepKind.CHANGE_ENDPOINTS,
                before=f"{before.source} -> {before.target}",
                after=f"{after.source} -> {after.target}",
                checked=True,
                code=LintCode.ENDPOINTS,
            )

    def _key(self, before: GraphType, after: GraphType, row_count: int) -> Iterator[Step]:
        if key_of(before) == key_of(after):
            return
        step = self._step(
            after,
            StepKind.ADD_CONSTRAINT if key_of(after)[0] else StepKind.DROP_CONSTRAINT,
            before=key_text(before),
            after=key_text(after),
            code=LintCode.KEY_CHANGED,
        )
        reason = "every id follows from the key, and edges refer to ids"
        yield refused(step, reason) if row_count else step

    def _rules(self, before: GraphType, after: GraphType) -> Iterator[Step]:
        old, new = rules_of(before), rules_of(after)
        for rule in old:
            if rule not in new:
                yield self._step(after, StepKind.DROP_CONSTRAINT, before=rule.text(before))
        for rule in new:
            if rule not in old:
                checked = needs_check(rule, old)
                yield self._step(
                    after,
                    StepKind.ADD_CONSTRAINT,
                    after=rule.text(after),
                    checked=checked,
                    code=LintCode.NEW_RULE if checked else None,
                )

    def _cardinality(self, before: EdgeType, after: EdgeType) -> Iterator[Step]:
        if before.cardinality == after.cardinality:
            return
        checked = stricter(before, after)
        yield self._step(
            after,
            StepKind.CHANGE_CARDINALITY,
            before=_card(before),
            after=_card(after),
            checked=checked,
            code=LintCode.NEW_RULE if checked else None,
        )

    def _implements(self, before: NodeType, after: NodeType) -> Iterator[Step]:
        names = {i.id: i.name for i in self._accepted.interfaces.values()}
        old = {self._accepted.interfaces[n].id for n in before.implements}
        new = {self._desired.catalog.interfaces[n].id for n in after.implements}
        if old != new:
            yield self._step(
                after,
                StepKind.CHANGE_INTERFACES,
                before=", ".join(sorted(names[n] for n in old)) or None,
                after=", ".join(sorted(after.implements)) or None,
            )

    def _texts(self, before: GraphType, after: GraphType) -> Iterator[Step]:
        old, new = ((t.description, t.instruction, t.annotations) for t in (before, after))
        if old != new:
            yield self._step(after, StepKind.UPDATE_TYPE_METADATA)


def needs_check(rule: ConstraintRule, old: Sequence[ConstraintRule]) -> bool:
    """Whether rows that keep the old rules may break this one."""
    if rule.word == "index":
        return False
    if rule.word == "range":
        return not any(o.word == "range" and covers(rule, o) for o in old)
    # A group that contains a unique one is unique.
    members = set(rule.members)
    return not any(o.word == rule.word == "unique" and set(o.members) <= members for o in old)


def stricter(before: EdgeType, after: EdgeType) -> bool:
    """Whether a number of edges that was allowed is not allowed any more."""
    old, new = before.cardinality, after.cardinality
    low = new.low > old.low
    high = new.high is not None and (old.high is None or old.high > new.high)
    return low or high


def _card(edge: EdgeType) -> str:
    low, high = edge.cardinality.low, edge.cardinality.high
    return f"@card({low}..{'' if high is None else high})"
