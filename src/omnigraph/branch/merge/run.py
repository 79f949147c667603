"""A merge from the names of two branches to a published commit.

    source, target -> bases -> plan -> delta -> [publish] -> result

The source is pinned once. The target is whatever the write machine pins: when a race is lost the
whole merge is made again on the newer head, so it always rests on the state that it replaces. What
breaks a rule comes back from the one validator and is told as conflicts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.branch.diff import Diff
from omnigraph.branch.merge.bases import History
from omnigraph.branch.merge.conflicts import Entity, MergeConflict, SideNames, refusal
from omnigraph.branch.merge.plan import MergePlan
from omnigraph.branch.merge.resolve import (
    Decisions,
    Resolution,
    Take,
    as_resolutions,
    leftover,
)
from omnigraph.branch.merge.result import MergeOutcome, MergeResult
from omnigraph.branch.merge.rules import Checked, rule_conflicts, undone
from omnigraph.branch.merge.schemas import OneSchema, under_one_schema
from omnigraph.branch.merge.tables import Undo
from omnigraph.branch.merge.threeway import Granularity
from omnigraph.errors import ConstraintError, MergeConflictError, UsageError
from omnigraph.manifest.refs import check_branch_name
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import MAIN, GraphCommit, Snapshot, TableChange
from omnigraph.manifest.targets import Target, resolve
from omnigraph.write.delta import Adoption, GraphDelta
from omnigraph.write.plan import check_lineage_text
from omnigraph.write.publish import Receipt, WriteRequest, publish
from omnigraph.write.stage import work_of
from omnigraph.write.txn import WriteTxn
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
    if granularity not in list(Granularity):
        raise UsageError(f"not a granularity: {granularity!r}", hint="say 'property' or 'row'")
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
        granularity=Granularity(granularity),
        decisions=decisions,
    )
    request = WriteRequest(
        kind="merge",
        branch=into,
        prepare=work.prepare,
        view=work.view,
        actor=actor,
        message=message,
        on_newest=True,
        decides_anew=True,
        merged=theirs.head,
        even_if_empty=True,
    )
    return carry_out(repository, work, request, dry_run=dry_run)


class NothingToDoError(Exception):
    """Ours has everything of theirs already. Ends a write before anything happened."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What the last look at the target came to."""

    bases: tuple[str, ...]
    outcome: MergeOutcome
    checked: Checked | None
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
        self._history = History(repository, theirs)
        self._granularity = granularity
        self._decisions = decisions
        self._base = base
        """The common ancestor, where it is not to be looked for."""
        self.theirs = theirs
        self.names = names
        self.prepared: Prepared | None = None
        self._one: OneSchema | None = None
        """Both sides under one schema; None where nothing is to be compared."""

    def view(self, txn: WriteTxn) -> WriteTxn:
        """Ours under the schema that both sides agree on."""
        ours = txn.snapshot
        bases = self._bases(ours)
        heads = {base.head.id for base in bases}
        self._one = None
        self._history = History(self._repository, self.theirs)
        if self.theirs.head.id in heads or (self._base is None and ours.head.id in heads):
            return txn
        prefer = self._decisions.prefer
        self._one = under_one_schema(
            self._repository,
            txn,
            bases,
            self.theirs,
            self.names,
            None if prefer is None else "ours" if prefer is Take.OURS else "theirs",
        )
        self._history = History(self._repository, self._one.theirs)
        return self._one.txn

    def prepare(self, txn: WriteTxn) -> GraphDelta | Adoption:
        """The merge on one state of ours. Raises ``MergeConflictError``, ``NothingToDoError``."""
        ours = txn.snapshot
        bases = self._bases(ours)
        ids = tuple(base.head.id for base in bases)
        self.prepared = Prepared(bases=ids, outcome=MergeOutcome.UP_TO_DATE, checked=None)
        if any(base.head.id == self.theirs.head.id for base in bases):
            leftover(self._decisions, ())
            raise NothingToDoError
        if self._base is None and bases[0].head.id == ours.head.id:
            leftover(self._decisions, ())
            self.prepared = replace(self.prepared, outcome=MergeOutcome.FAST_FORWARD)
            changes = Diff(self._repository, ours, self.theirs).counts
            return Adoption(snapshot=self.theirs, changes=changes)
        self.prepared = replace(self.prepared, outcome=MergeOutcome.MERGED)
        return self._three_way(txn, bases)

    def _bases(self, ours: Snapshot) -> tuple[Snapshot, ...]:
        return (self._base,) if self._base is not None else self._history.bases(ours, self.theirs)

    def _three_way(self, txn: WriteTxn, bases: Sequence[Snapshot]) -> GraphDelta:
        if self._one is not None and self._one.conflicts:
            raise self._refusal(self._one.conflicts, set())
        plan = MergePlan(
            self._repository,
            self._history,
            bases,
            txn.snapshot,
            granularity=self._granularity,
            decisions=self._decisions,
            names=self.names,
        )
        # The decisions rest on these tables of ours, also where they come to nothing.
        txn.consulted.update(plan.changed)
        delta = plan.delta()
        if conflicts := plan.conflicts():
            # Conflicts of rules are told with the others as far as they can be known already.
            raise self._refusal([*conflicts, *self._broken(txn, plan, delta)], plan.used())
        if self._decisions.any:
            delta = self._keep_rules(txn, plan, delta)
        if self._one is not None and (broken := self._one.broken(delta)):
            raise self._refusal(broken, plan.used())
        if self.prepared is not None:
            checked = Checked(txn=txn, plan=plan, delta=delta)
            self.prepared = replace(self.prepared, checked=checked)
        return delta

    def _broken(self, txn: WriteTxn, plan: MergePlan, delta: GraphDelta) -> list[MergeConflict]:
        try:
            validate(txn.schema.catalog, delta, txn, violations_max=sys.maxsize)
        except ConstraintError as e:
            return rule_conflicts(e.violations, Checked(txn=txn, plan=plan, delta=delta))
        return []

    def _keep_rules(self, txn: WriteTxn, plan: MergePlan, delta: GraphDelta) -> GraphDelta:
        """Take back what decisions about broken rules take back, until no rule is broken."""
        undo: Mapping[str, Undo] = {}
        used: set[Entity] = plan.used()
        while broken := self._broken(txn, plan, delta):
            # Every round takes more back, so there is a last one.
            undo, left, named = undone(broken, self._decisions, undo, plan)
            used |= named
            if left:
                raise self._refusal(left, used)
            delta = plan.delta(undo)
        leftover(self._decisions, used)
        return delta

    def _refusal(self, left: Sequence[MergeConflict], used: set[Entity]) -> MergeConflictError:
        """What is left to decide, unless somebody decided about something else."""
        leftover(self._decisions, used | {e for conflict in left for e in conflict.entities})
        return refusal(left, self.names)

    def conflicts_of(self, error: ConstraintError) -> MergeConflictError:
        """Broken rules, as the write machine met them, as conflicts."""
        checked = self.prepared.checked if self.prepared is not None else None
        if checked is None:
            raise error
        return refusal(self._broken(checked.txn, checked.plan, checked.delta), self.names)


def carry_out(
    repository: Repository, work: ThreeWay, request: WriteRequest, *, dry_run: bool
) -> MergeResult:
    """Publish a three-way merge, or look what it would do."""
    try:
        if dry_run:
            return _result(work, request, None, _look(repository, work, request), dry_run=True)
        receipt = publish(repository, request)
    except NothingToDoError:
        return _result(work, request, None, {}, dry_run=dry_run)
    except ConstraintError as e:
        raise work.conflicts_of(e) from e
    except MergeConflictError as e:
        if not dry_run or not e.conflicts:  # Schemas that do not fit are nothing to decide.
            raise
        result = _result(work, request, None, {}, dry_run=True)
        return replace(result, outcome=MergeOutcome.CONFLICTS, conflicts=e.conflicts)
    return _published(work, request, receipt)


def _look(
    repository: Repository, work: ThreeWay, request: WriteRequest
) -> Mapping[str, TableChange]:
    """What a merge would do to each table of the newest state of the target."""
    branch = repository.branch(request.branch)
    txn = WriteTxn.begin(repository, branch, branch.refresh())
    txn = work.view(txn)
    delta = work.prepare(txn)
    if isinstance(delta, Adoption):
        return delta.changes
    try:
        validated = validate(txn.schema.catalog, delta, txn, violations_max=sys.maxsize)
    except ConstraintError as e:
        raise work.conflicts_of(e) from e
    return {key: item.change for key, item in work_of(delta, validated).items()}


def _published(work: ThreeWay, request: WriteRequest, receipt: Receipt) -> MergeResult:
    return _result(work, request, receipt.commit, receipt.changes, dry_run=False)


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
