"""Apply a schema to a branch: plan, check, reshape, and publish all of it as one commit.

    .pg text -> plan on the pinned schema -> checks on the pinned rows -> reshaped tables -> PUBLISH

The plan is made on whatever the write machine pins. When others write in between, it is made again
on the newer state; when they changed the schema, on the newer schema. Other branches keep theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from omnigraph.branch.delta import refilled
from omnigraph.errors import (
    ConflictError,
    ErrorKind,
    InternalError,
    MigrationError,
    UsageError,
)
from omnigraph.failpoints import FailPoint, hit
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema, NumberClaim
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot, TableChange
from omnigraph.schema.migrate import (
    Desired,
    DropMode,
    SchemaPlan,
    Step,
    StepKind,
    make_plan,
    resolve,
)
from omnigraph.schema.migrate.steps import headline
from omnigraph.storage.compact import RewriteAll
from omnigraph.upkeep.purge import PurgeReport, hard_drops, purge
from omnigraph.write.conformity import broken_rules
from omnigraph.write.plan import Action
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.reshaping import (
    TypePair,
    continued,
    reshape_of,
)
from omnigraph.write.schema_view import SchemaView
from omnigraph.write.stage import BulkChange, BulkWork
from omnigraph.write.txn import WriteTxn


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaApplyResult:
    """What applying a schema did, or would do."""

    uri: str
    branch: str
    plan: SchemaPlan
    commit: GraphCommit | None
    """None when nothing was published."""
    manifest_version: int
    dry_run: bool = False
    purged: PurgeReport | None = None
    """What became of data that was dropped for good; None if there was none."""

    @property
    def applied(self) -> bool:
        """Whether the branch has another schema now."""
        return self.commit is not None

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``schema apply --json``."""
        return {
            "uri": self.uri,
            "branch": self.branch,
            "applied": self.applied,
            "dry_run": self.dry_run,
            **self.plan.to_dict(),
            "graph_manifest_version": self.manifest_version,
            "commit": self.commit.to_dict() if self.commit is not None else None,
            "purged": self.purged.to_dict() if self.purged is not None else None,
        }


def plan_schema(
    repository: Repository,
    text: str,
    *,
    source_name: str = "schema.pg",
    branch: str = MAIN,
    allow_data_loss: bool = False,
) -> SchemaPlan:
    """What applying a schema to the newest state of a branch would do. Reads no rows."""
    snapshot = repository.head(branch).snapshot
    accepted = repository.schema(snapshot.schema_hash)
    desired = resolve(accepted.catalog, text, source_name=source_name)
    mode = DropMode.HARD if allow_data_loss else DropMode.SOFT
    return _plan(accepted, snapshot, desired, mode)


def schema_apply(
    repository: Repository,
    text: str,
    *,
    source_name: str = "schema.pg",
    branch: str = MAIN,
    actor: str | None = None,
    message: str | None = None,
    confirm: bool = False,
    allow_data_loss: bool = False,
    dry_run: bool = False,
    expected_commit: str | None = None,
) -> SchemaApplyResult:
    """Give a branch another schema, as one commit or not at all.

    ``confirm`` allows steps that hide data; ``allow_data_loss`` does so too, and deletes the data
    right after the publish where nothing else needs it (``upkeep/purge.py``). With ``dry_run``
    everything is checked and nothing is published. Raises
    ``SchemaError``, ``MigrationError`` (a step is not possible, or rows are in the way) and
    ``UsageError`` (a destructive step was not confirmed).
    """
    work = _Apply(
        repository,
        text,
        source_name=source_name,
        confirmed=confirm or allow_data_loss or dry_run,
        drop_mode=DropMode.HARD if allow_data_loss else DropMode.SOFT,
        dry_run=dry_run,
    )
    request = WriteRequest(
        kind="schema_apply",
        branch=branch,
        prepare=work.prepare,
        actor=actor,
        message=message,
        expected_commit=expected_commit,
        requires=Requires.NEWEST_HEAD | Requires.COMMIT,
    )
    commit: GraphCommit | None = None
    with suppress(_Done):
        commit = publish(repository, request).commit
    if work.plan is None or work.snapshot is None:
        raise InternalError("a schema was applied without a plan")
    accepted = repository.schema(work.snapshot.schema_hash).catalog
    dropped = hard_drops(work.plan, accepted, work.snapshot) if commit is not None else ()
    return SchemaApplyResult(
        uri=repository.location.uri,
        branch=branch,
        plan=work.plan,
        commit=commit,
        manifest_version=commit.manifest_version if commit else work.snapshot.version,
        dry_run=dry_run,
        purged=purge(repository, dropped, commit.place) if commit is not None and dropped else None,
    )


class _Done(Exception):
    """Nothing is to be published: no difference, or only a look. Ends a write at its start."""


class _Apply:
    """A schema as a function of the snapshot that it is applied to."""

    def __init__(
        self,
        repository: Repository,
        text: str,
        *,
        source_name: str,
        confirmed: bool,
        drop_mode: DropMode,
        dry_run: bool,
    ) -> None:
        self._repository = repository
        self._text = text
        self._source_name = source_name
        self._confirmed = confirmed
        self._drop_mode = drop_mode
        self._dry_run = dry_run
        self._numbers = NumberClaim(repository.objects)
        self.plan: SchemaPlan | None = None
        self.snapshot: Snapshot | None = None

    def prepare(self, txn: WriteTxn) -> BulkChange:
        """The change on one snapshot. Raises ``_Done`` where there is none to make."""
        desired = resolve(txn.schema.catalog, self._text, source_name=self._source_name)
        plan = _plan(txn.schema, txn.snapshot, desired, self._drop_mode)
        self._refuse_other_steps(plan, txn.snapshot)
        self.plan, self.snapshot = plan, txn.snapshot
        if not plan:
            raise _Done
        _refuse_unsupported(plan)
        if plan.destructive and not self._confirmed:
            raise _unconfirmed(plan.destructive)
        pairs = continued(txn.schema.catalog, desired.catalog)
        # The plan rests on these tables, also on those that it drops or finds empty.
        named = {step.type_id for step in plan.steps}
        txn.consulted.update(t.table_key for t in txn.schema.catalog.types() if t.id in named)
        self._check_rows(txn, plan, desired, pairs)
        if self._dry_run:
            raise _Done
        desired = self._numbered(txn, desired)
        pairs = continued(txn.schema.catalog, desired.catalog)
        accepted = AcceptedSchema.of(desired.catalog, desired.source)
        self._repository.accept(accepted)
        hit(FailPoint.SCHEMA_AFTER_OBJECTS)
        anew = {s.type_id for s in plan.destructive if s.mode is DropMode.HARD}
        return BulkChange(tables=_tables(txn, pairs, desired, anew), schema=accepted)

    def _refuse_other_steps(self, plan: SchemaPlan, snapshot: Snapshot) -> None:
        """What another schema change has just done is not undone by a text that never knew it."""
        if self.plan is None or self.snapshot is None:
            return
        if self.snapshot.schema_hash == snapshot.schema_hash:
            return  # Rows may make another plan of the same text; that is no surprise.
        known = {_said(step) for step in self.plan.steps}
        texts = StepKind.UPDATE_SOURCE
        new = [s for s in plan.steps if s.kind is not texts and _said(s) not in known]
        if new:
            raise ConflictError(
                f"the schema was changed meanwhile, and this would {headline(new[0])}",
                kind=ErrorKind.READ_SET_CONFLICT,
                hint="look at the new schema, then apply a text that knows it",
            )

    def _check_rows(
        self, txn: WriteTxn, plan: SchemaPlan, desired: Desired, pairs: Sequence[TypePair]
    ) -> None:
        checked = {step.type_id for step in plan.steps if step.checked}
        filled = {step.type_id for step in plan.steps if step.backfill is not None}
        asked = [pair for pair in pairs if pair.after.id in checked | filled]
        view = SchemaView.over(txn, desired.catalog, desired.backfills)
        violations, total = broken_rules(view, asked)
        if not total:
            return
        types = {v.type_name for v in violations}
        steps = [
            s for s in plan.steps if s.type_name in types and (s.checked or s.backfill is not None)
        ]
        raise MigrationError(
            f"{total:,} {'row is' if total == 1 else 'rows are'} in the way of the new schema",
            reasons=[_named(step) for step in steps],
            steps=[step.to_dict() for step in steps],
            violations=violations,
            total=total,
            hint="change the rows first, or ask less of them",
        )

    def _numbered(self, txn: WriteTxn, desired: Desired) -> Desired:
        """The same schema with numbers that no other schema has."""
        if not desired.numbers_used:
            return desired
        return resolve(
            txn.schema.catalog,
            self._text,
            source_name=self._source_name,
            numbers_from=self._numbers.first(desired.numbers_from, desired.numbers_used),
        )


def _plan(
    accepted: AcceptedSchema, snapshot: Snapshot, desired: Desired, mode: DropMode
) -> SchemaPlan:
    rows = {pin.type_id: pin.row_count for pin in snapshot.pins.values()}
    return make_plan(accepted.catalog, accepted.source, desired, rows=rows, drop_mode=mode)


def _tables(
    txn: WriteTxn, pairs: Sequence[TypePair], desired: Desired, anew: Collection[int]
) -> Mapping[str, BulkWork]:
    """The tables whose columns change; a type without a table gets its columns with its rows.

    Files of types that are to be written ``anew`` hold nothing of what was dropped.
    """
    found: dict[str, BulkWork] = {}
    view = SchemaView.over(txn, desired.catalog, desired.backfills)
    for pair in pairs:
        rework = reshape_of(pair, desired.backfills)
        if rework is not None and txn.pin_of(pair.after) is not None:
            found[pair.after.table_key] = BulkWork(
                type=pair.after,
                actions=(Action.REWORK,),
                change=TableChange(updated=refilled(view, pair)),
                staged=(rework, RewriteAll()) if pair.after.id in anew else (rework,),
            )
    return found


def _refuse_unsupported(plan: SchemaPlan) -> None:
    if plan.supported:
        return
    count = len(plan.unsupported)
    raise MigrationError(
        f"{count} step{'s are' if count > 1 else ' is'} not possible on this graph",
        reasons=[f"{_named(step)}: {step.reason}" for step in plan.unsupported],
        steps=[step.to_dict() for step in plan.unsupported],
        hint="see the whole plan with 'omnigraph schema plan'",
    )


def _unconfirmed(steps: Sequence[Step]) -> UsageError:
    named = ", ".join(_named(step) for step in steps)
    return UsageError(
        f"data would be hidden, which must be confirmed: {named}",
        hint="confirm it with --yes (confirm=True): the past keeps the data until cleanup; or give "
        "it up for good with --allow-data-loss (allow_data_loss=True)",
        details={"steps": [step.to_dict() for step in steps]},
    )


def _said(step: Step) -> tuple[object, ...]:
    """What a step does, by names: new things have other numbers in every plan."""
    kind = step.change if step.kind is StepKind.UNSUPPORTED_CHANGE else step.kind
    return kind, step.entity_kind, step.type_name, step.property_name, step.before, step.after


def _named(step: Step) -> str:
    return f"[{step.code}] {headline(step)}" if step.code else headline(step)
