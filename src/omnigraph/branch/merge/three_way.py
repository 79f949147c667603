"""A merge from the names of two branches to a published commit.

    source, target -> bases -> plan -> delta -> [publish] -> result

The source is pinned once. The target is whatever the write machine pins: when a race is lost the
whole merge is made again on the newer head, so it always rests on the state that it replaces. What
breaks a rule comes back from the one validator as conflicts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.branch.diff import Diff
from omnigraph.branch.merge.compared_states import best_ancestors
from omnigraph.branch.merge.conflicts import (
    EntityName,
    MergeConflict,
    MergeOutcome,
    MergeResult,
    SideNames,
    refusal,
)
from omnigraph.branch.merge.merged_table import MergePlan, Undo
from omnigraph.branch.merge.resolve import (
    Decisions,
    Resolution,
    SchemaName,
    Take,
    as_resolutions,
    leftover,
)
from omnigraph.branch.merge.rules import (
    SIDES,
    BrokenRule,
    CheckedMerge,
    decide_rules,
    rule_conflicts,
)
from omnigraph.branch.merge.schemas import MergeSchemas, OneSchema
from omnigraph.branch.merge.threeway import Granularity
from omnigraph.errors import ConstraintError, MergeConflictError, UsageError, Violation
from omnigraph.manifest.kept import ReportingReclaimed
from omnigraph.manifest.refs import check_branch_name
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot, TableChange
from omnigraph.manifest.targets import Target, resolve
from omnigraph.schema.migrate.reconcile import Prefer, SchemaChoices
from omnigraph.write.conformity import broken_rules
from omnigraph.write.plan import check_lineage_text
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.reshaping import continued
from omnigraph.write.schema_view import validated
from omnigraph.write.stage import changes_of, work_of
from omnigraph.write.txn import Adoption, GraphDelta, WriteTxn
from omnigraph.write.validate import validate


def merge(
    repository: Repository,
    source: str | Snapshot,
    *,
    into: str = MAIN,
    granularity: str = "property",
    prefer: str | None = None,
    resolutions: Sequence[Resolution] | bytes | None = None,
    dry_run: bool = False,
    actor: str | None = None,
    message: str | None = None,
) -> MergeResult:
    """Bring what ``source`` changed into the branch ``into``, as one commit or not at all.

    ``source`` is a branch, a tag, a commit or a snapshot. Raises ``MergeConflictError`` with all
    conflicts that ``resolutions`` and then ``prefer`` ("ours", "theirs") leave open; a dry run
    returns them.
    """
    into = check_branch_name(into)
    wanted = Granularity.of(granularity)
    check_lineage_text(actor, message)
    decisions = Decisions.of(prefer, as_resolutions(resolutions))
    name = source if isinstance(source, str) else source.branch
    if isinstance(source, str) and source.strip() == into:
        raise UsageError(f"'{into}' cannot be merged into itself", hint="name another branch")
    theirs = source if isinstance(source, Snapshot) else resolve(repository, Target.parse(source))
    work = ThreeWay(
        repository,
        theirs,
        names=SideNames(ours=into, theirs=name.strip()),
        granularity=wanted,
        decisions=decisions,
    )
    request = WriteRequest(
        kind="merge",
        branch=into,
        prepare=work.prepare,
        actor=actor,
        message=message,
        merged=theirs.head,
        requires=Requires.NEWEST_HEAD | Requires.OWN_DECISION | Requires.COMMIT,
    )
    return carry_out(repository, work, request, dry_run=dry_run)


class NothingToDoError(Exception):
    """Ours has everything of theirs already. Ends a write before anything happened."""


@dataclass(frozen=True, kw_only=True)
class PreparedMerge:
    """What the last look at the target came to."""

    bases: tuple[str, ...]
    outcome: MergeOutcome
    checked: CheckedMerge | None
    """None where there was nothing to check."""


class ThreeWay:
    """A three-way merge as a function of the snapshot it is given."""

    def __init__(
        self,
        repository: Repository,
        theirs: Snapshot,
        *,
        names: SideNames,
        granularity: Granularity,
        decisions: Decisions,
        base: Snapshot | None = None,
    ) -> None:
        self._repository = repository
        self._granularity = granularity
        self._decisions = decisions
        self._base = base
        """The common ancestor, where it is not to be looked for."""
        self.theirs = theirs
        self.names = names
        self.prepared: PreparedMerge | None = None

    def prepare(self, txn: WriteTxn) -> GraphDelta | Adoption:
        """The merge on one state of ours. Raises ``MergeConflictError``, ``NothingToDoError``."""
        ours = txn.snapshot
        bases = self._bases(ours)
        ids = tuple(base.head.id for base in bases)
        self.prepared = PreparedMerge(bases=ids, outcome=MergeOutcome.UP_TO_DATE, checked=None)
        if self.theirs.head.id in ids:
            leftover(self._decisions, ())
            raise NothingToDoError
        if self._base is None and ours.head.id in ids:
            leftover(self._decisions, ())
            self.prepared = replace(self.prepared, outcome=MergeOutcome.FAST_FORWARD)
            changes = Diff(self._repository, ours, self.theirs).counts
            return Adoption(snapshot=self.theirs, changes=changes)
        self.prepared = replace(self.prepared, outcome=MergeOutcome.MERGED)
        with ReportingReclaimed(self._repository, self.theirs, *bases):
            return self._three_way(txn, bases)

    def _bases(self, ours: Snapshot) -> tuple[Snapshot, ...]:
        if self._base is not None:
            return (self._base,)
        return best_ancestors(self._repository, ours, self.theirs)

    def _three_way(self, txn: WriteTxn, bases: Sequence[Snapshot]) -> GraphDelta:
        """Decide, and undo what decisions undo, until no rule is broken."""
        schemas = MergeSchemas(self._repository, txn, bases, self.theirs, self.names)
        same_schema = txn.snapshot.schema_hash == self.theirs.schema_hash
        choices, named = self._choices(schemas)
        undo: Mapping[str, Undo] = {}
        used: set[EntityName] = set()
        while True:
            choices, one = self._one_schema(schemas, choices, named)
            plan = MergePlan(
                one,
                bases,
                granularity=self._granularity,
                decisions=self._decisions,
                names=self.names,
            )
            # The decisions rest on these tables of ours, also where they come to nothing.
            txn.consulted.update(plan.changed)
            delta = plan.delta(undo)
            conflicts = plan.conflicts()
            used |= plan.used()
            checked = CheckedMerge(plan=plan, delta=delta)
            broken: list[BrokenRule] = []
            if conflicts or self._decisions.any or not same_schema:
                broken = self._broken(checked, undo)
            if conflicts:
                # Broken rules are reported with them, as far as they are known by now.
                raise self._refusal([*conflicts, *(b.conflict for b in broken)], used, named)
            if not broken:
                break
            decided = decide_rules(broken, self._decisions, undo, choices, plan)
            used |= decided.used
            named |= decided.named
            if decided.left:
                raise self._refusal(decided.left, used, named)
            # Every round undoes more changes or drops more rules, so there is a last one.
            undo, choices = decided.undo, decided.choices
        leftover(self._decisions, used, named)
        if self.prepared is not None:
            self.prepared = replace(self.prepared, checked=checked)
        if delta.schema is not None:
            self._repository.accept(delta.schema)
        return delta

    def _choices(self, schemas: MergeSchemas) -> tuple[SchemaChoices, set[SchemaName]]:
        """What was decided about the schema beforehand."""
        things: dict[int, Prefer] = {}
        for subject, resolution in self._decisions.schema.items():
            number = schemas.numbered(subject.kind, subject.type_name, subject.property_name)
            if number is not None:
                things[number] = "ours" if resolution.take is Take.OURS else "theirs"
        open_conflicts = schemas.under(SchemaChoices()).conflicts if things else ()
        named = {n for c in open_conflicts for n in _subjects(c)}
        side = SIDES.get(self._decisions.prefer) if self._decisions.prefer else None
        return SchemaChoices(prefer=side, things=things), named

    def _one_schema(
        self, schemas: MergeSchemas, choices: SchemaChoices, named: set[SchemaName]
    ) -> tuple[SchemaChoices, OneSchema]:
        """The schema to come, after all that was decided about what was dropped."""
        while True:
            one = schemas.under(choices)
            # What does not fit together may do so with what goes on because its rows changed.
            if one.conflicts and one.is_schema:
                raise self._refusal(one.conflicts, set(), set(self._decisions.schema))
            dropped = schemas.dropped_changes(one, choices)
            named |= {n for item, _ in dropped for n in _subjects(item.conflict(self.names))}
            left = [item.conflict(self.names) for item, side in dropped if side is None]
            if left:
                raise self._refusal(left, set(), set(self._decisions.schema))
            restored = {item.number for item, side in dropped if side == item.side}
            if not restored:
                if one.conflicts:
                    raise self._refusal(one.conflicts, set(), set(self._decisions.schema))
                return choices, one
            choices = replace(choices, kept=choices.kept | restored)

    def _broken(self, checked: CheckedMerge, undo: Mapping[str, Undo]) -> list[BrokenRule]:
        """All rules that the result breaks: in what is written, and in what is left alone."""
        plan, delta, one = checked.plan, checked.delta, checked.plan.one
        violations = plan.misfits(undo)
        try:
            validate(plan.catalog, delta, one.view, violations_max=sys.maxsize)
        except ConstraintError as e:
            violations += e.violations
        if one.changes:
            pairs = continued(one.txn.schema.catalog, plan.catalog)
            violations += broken_rules(one.view, pairs, delta, violations_max=sys.maxsize)[0]
        return rule_conflicts(_without_echoes(violations), checked)

    def _refusal(
        self, left: Sequence[MergeConflict], used: set[EntityName], named: set[SchemaName]
    ) -> MergeConflictError:
        """What is left to decide, unless something else was decided about."""
        leftover(
            self._decisions,
            used | {e for conflict in left for e in conflict.entities},
            named | {n for conflict in left for n in _subjects(conflict)},
        )
        return refusal(left, self.names)

    def conflicts_of(self, error: ConstraintError) -> MergeConflictError:
        """BrokenRule rules, as the write machine met them, as conflicts."""
        checked = self.prepared.checked if self.prepared is not None else None
        if checked is None:
            raise error
        return refusal([b.conflict for b in self._broken(checked, {})], self.names)


def _without_echoes(violations: Sequence[Violation]) -> list[Violation]:
    """What is wrong with a value that has no place is that, and not that it is missing."""
    misfits = {_place_of(v) for v in violations if v.rule == "type"}
    return [v for v in violations if v.rule == "type" or _place_of(v) not in misfits]


def _place_of(violation: Violation) -> tuple[str, str, str | None, str | None]:
    v = violation
    return v.entity_kind, v.type_name, v.entity_id, v.property_name


def _subjects(conflict: MergeConflict) -> set[SchemaName]:
    """What a resolution about the schema may name to decide a conflict."""
    whole = SchemaName(kind=conflict.entity_kind, type_name=conflict.type_name)
    return {whole, replace(whole, property_name=conflict.schema_property)}


def carry_out(
    repository: Repository, work: ThreeWay, request: WriteRequest, *, dry_run: bool
) -> MergeResult:
    """Publish a three-way merge, or look what it would do."""
    try:
        if dry_run:
            return _result(work, request, None, _look(repository, work, request), dry_run=True)
        receipt = publish(repository, request)
        return _result(work, request, receipt.commit, receipt.changes, dry_run=False)
    except NothingToDoError:
        return _result(work, request, None, {}, dry_run=dry_run)
    except ConstraintError as e:
        raise work.conflicts_of(e) from e
    except MergeConflictError as e:
        if not dry_run or not e.conflicts:  # Schemas that do not fit are nothing to decide.
            raise
        result = _result(work, request, None, {}, dry_run=True)
        return replace(result, outcome=MergeOutcome.CONFLICTS, conflicts=e.conflicts)


def _look(
    repository: Repository, work: ThreeWay, request: WriteRequest
) -> Mapping[str, TableChange]:
    """What a merge would do to each table of the newest state of the target."""
    branch = repository.branch(request.branch)
    txn = WriteTxn.begin(repository, branch, branch.refresh())
    delta = work.prepare(txn)
    if isinstance(delta, Adoption):
        return delta.changes
    try:
        found = validated(txn, delta, violations_max=sys.maxsize)
    except ConstraintError as e:
        raise work.conflicts_of(e) from e
    return changes_of(work_of(delta, found), txn.snapshot, delta.schema)


def _result(
    work: ThreeWay,
    request: WriteRequest,
    commit: GraphCommit | None,
    changes: Mapping[str, TableChange],
    *,
    dry_run: bool,
) -> MergeResult:
    prepared = work.prepared
    outcome = prepared.outcome if prepared is not None else MergeOutcome.UP_TO_DATE
    nothing = not dry_run and commit is None
    return MergeResult(
        outcome=MergeOutcome.UP_TO_DATE if nothing else outcome,
        source=work.names.theirs,
        target=request.branch,
        source_commit=work.theirs.head.id,
        base_commits=prepared.bases if prepared is not None else (),
        commit=commit,
        changes=changes,
        dry_run=dry_run,
    )
