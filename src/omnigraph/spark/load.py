"""A bulk load: parsed once, checked on one snapshot, staged by executors, published as ever.

    source -> parse -> [prepare: check -> stage] -> publish -> settle

| phase   | where             | a failure leaves                                          |
|---------|-------------------|-----------------------------------------------------------|
| parse   | tasks             | nothing                                                   |
| check   | tasks             | nothing: no file is written before all rules are kept     |
| stage   | tasks             | files that nothing refers to                              |
| publish | driver, one commit| old state or new state                                    |

When the publish loses a race and something this load rests on has moved, it is prepared again on
the new snapshot: rules are checked again, files of appended rows are used again, rows that replace
others are matched and written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from omnigraph.errors import CommitUnknownError, ConstraintError, InputError, OmnigraphError
from omnigraph.input.phases import Phase
from omnigraph.input.plan import InputPlan
from omnigraph.input.publishing import LoadDone, LoadRequest
from omnigraph.input.rejects import RejectFile
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import TableChange
from omnigraph.rules.bulk import BulkInput, InputTable
from omnigraph.rules.table_delta import WriteMode
from omnigraph.spark.check import CheckedLoad, check
from omnigraph.spark.errors import translated
from omnigraph.spark.exchange import LoadSources, PinnedState
from omnigraph.spark.input import ParsedInput, look_at, parse_input
from omnigraph.spark.progress import Watch
from omnigraph.spark.sessions import Pipeline, pipeline_session
from omnigraph.spark.staging import Incoming, LoadFiles, table_target
from omnigraph.spark.upsert import TableUpsert
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.stage import BulkChange
from omnigraph.write.txn import WriteTxn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def bulk_load(
    repository: Repository,
    load: LoadRequest,
    rejects: RejectFile | None = None,
    *,
    spark: SparkSession | None = None,
) -> LoadDone:
    """Load an input of any size as one commit; either everything is published or nothing.

    What ``parse_input`` takes can be loaded. Raises ``InputError``, ``ConstraintError`` (the first
    violations and their number), ``ConflictError``, and ``UsageError`` if there is no Spark.
    """
    # A session takes long to start, and what is pointless to read can be told without one.
    schema = repository.schema(repository.branch(load.branch).recent().snapshot.schema_hash)
    looked = (schema.hash, look_at(load.given, schema.catalog))
    Watch(load.phases).starting()
    with pipeline_session(spark) as pipeline, _Load(repository, pipeline, load, looked) as running:
        try:
            if load.dry_run:
                known = repository.branch(load.branch)
                txn = WriteTxn.begin(repository, known, known.refresh())
                changes = running.checked_changes(txn)
                return LoadDone(
                    commit=None,
                    rows=running.rows,
                    changes=changes,
                    unchanged=running.unchanged,
                )
            receipt = publish(
                repository,
                WriteRequest(
                    kind="load",
                    branch=load.branch,
                    prepare=running.prepare,
                    actor=load.actor,
                    message=load.message,
                    requires=Requires.LEASE,
                ),
            )
        except (InputError, ConstraintError):
            if rejects is not None and rejects.wanted:
                with rejects.telling(), translated("writing what was rejected"):
                    running.tell_rejects(rejects)
            raise
        return LoadDone(
            commit=receipt.commit,
            rows=running.rows,
            changes=receipt.changes,
            unchanged=receipt.unchanged,
        )


class _Load:
    """One input on its way, through as many attempts as it takes."""

    def __init__(
        self,
        repository: Repository,
        pipeline: Pipeline,
        load: LoadRequest,
        looked: tuple[str, InputPlan],
    ) -> None:
        self._looked = looked
        self._repository = repository
        self._pipeline = pipeline
        self._load = load
        self._run_id = repository.ids.ulid()
        self._schema: str | None = None
        self._parsed: ParsedInput | None = None
        self._checked: CheckedLoad | None = None
        self.unchanged: Mapping[str, int] = {}
        """By table key: rows that are committed as they are, on the snapshot that was asked."""
        self._files = LoadFiles(repository, pipeline.spark)
        self._watch = Watch(load.phases)

    def __enter__(self) -> _Load:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        # Only our own errors prove that nothing was published; others may come from anywhere.
        if isinstance(error, OmnigraphError) and not isinstance(error, CommitUnknownError):
            self._files.discard_all()
        if self._parsed is not None:
            with translated("letting go of the input"):
                self._parsed.unpersist()

    @property
    def rows(self) -> dict[str, int]:
        """Rows of the input by table key."""
        parsed = self._parsed
        return {} if parsed is None else {key: parsed.row_count(key) for key in parsed.keys}

    def prepare(self, txn: WriteTxn) -> BulkChange:
        """The whole change on a pinned snapshot, checked there and put into files."""
        changes = self.checked_changes(txn)
        unchanged = self.unchanged
        if self._parsed is None or self._checked is None or not changes:
            return BulkChange(tables={}, unchanged=unchanged)
        incoming = Incoming(
            intake=self._parsed.intake(),
            mode=self._load.mode,
            rows=self.rows,
            superseded=self._checked.superseded,
            unchanged=unchanged,
        )
        with translated("writing data files"), self._phase(Phase.WRITING):
            tables = self._files.stage(txn, incoming, changes)
            return BulkChange(tables=tables, unchanged=unchanged)

    def checked_changes(self, txn: WriteTxn) -> dict[str, TableChange]:
        """What the load does to each table that it changes, if it keeps all rules."""
        with translated("reading the input"), self._phase(Phase.READING):
            parsed = self._parse(txn.schema)
            error = parsed.error()
        if error is not None:
            raise error
        if not parsed.keys:
            return {}
        with translated("checking the input"), self._phase(Phase.CHECKING):
            checked = check(self._sources(txn, parsed), self._given(txn, parsed))
            self._checked = checked
            if checked.total:
                raise checked.refusal()
            self.unchanged = self._count_unchanged(txn, parsed, checked)
        found = {key: self._change(txn, checked, key) for key in parsed.keys}
        return {key: change for key, change in found.items() if change.total}

    def tell_rejects(self, out: RejectFile) -> None:
        """Write down everything that is wrong."""
        if self._parsed is not None and self._parsed.problem_count:
            out.problems(self._parsed.every_problem())
        elif self._checked is not None and self._checked.total:
            out.violations(self._checked.every())

    def _phase(self, phase: Phase) -> AbstractContextManager[None]:
        return self._watch.phase(self._pipeline.spark, phase)

    # -- reading ---------------------------------------------------------------------------------

    def _parse(self, schema: AcceptedSchema) -> ParsedInput:
        """The input in terms of a schema. It is read again only if that has changed."""
        if self._parsed is not None and self._schema == schema.hash:
            return self._parsed
        if self._parsed is not None:
            self._parsed.unpersist()
            self._files.discard_all()
        self._schema = schema.hash
        self._parsed = parse_input(
            self._pipeline,
            self._load.given,
            schema.catalog,
            run_id=self._run_id,
            plan=self._looked[1] if self._looked[0] == schema.hash else None,
        )
        if self._load.progress is not None:
            self._load.progress(self._load.given.size_bytes or sum(self.rows.values()))
        return self._parsed

    def _sources(self, txn: WriteTxn, parsed: ParsedInput) -> LoadSources:
        return LoadSources(
            spark=self._pipeline.spark, intake=parsed.intake(), state=PinnedState(txn)
        )

    def _given(self, txn: WriteTxn, parsed: ParsedInput) -> BulkInput:
        catalog = txn.schema.catalog
        tables = {
            key: InputTable(
                type=catalog.table(key),
                rows=parsed.row_count(key),
                ids_fresh=parsed.ids_fresh(key, catalog),
            )
            for key in parsed.keys
        }
        return BulkInput(
            catalog=catalog,
            mode=self._load.mode,
            tables=tables,
            files=parsed.files,
            committed_rows=txn.row_count,
        )

    # -- counting --------------------------------------------------------------------------------

    def _change(self, txn: WriteTxn, checked: CheckedLoad, key: str) -> TableChange:
        rows = self.rows[key] - checked.superseded.get(key, 0)
        known = checked.known.get(key, 0)
        before = txn.row_count(key) if self._load.mode is WriteMode.OVERWRITE else known
        updated = known - self.unchanged.get(key, 0)
        return TableChange(inserted=rows - known, updated=updated, deleted=before - known)

    def _count_unchanged(
        self, txn: WriteTxn, parsed: ParsedInput, checked: CheckedLoad
    ) -> dict[str, int]:
        """How many rows a merge would replace by themselves. A job for each table that has any
        rows to compare."""
        if self._load.mode is not WriteMode.MERGE:
            return {}
        found: dict[str, int] = {}
        for key in [key for key in parsed.keys if checked.known.get(key)]:
            compared = TableUpsert(
                spark=self._pipeline.spark,
                intake=parsed.intake(),
                location=self._repository.location,
                target=table_target(txn, key),
                state=PinnedState(txn),
                rows=self.rows[key],
                compares=True,
            )
            if count := compared.count_unchanged():
                found[key] = count
        return found
