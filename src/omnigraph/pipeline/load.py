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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from omnigraph.errors import CommitUnknownError, ConstraintError, InputError, OmnigraphError
from omnigraph.manifest.repository import AcceptedSchema, Repository
from omnigraph.manifest.snapshot import TableChange
from omnigraph.pipeline.check.run import Checked, check
from omnigraph.pipeline.check.subject import InputTable, Intake, Subject
from omnigraph.pipeline.committed import PinnedState
from omnigraph.pipeline.errors import translated
from omnigraph.pipeline.input import ParsedInput, parse_input
from omnigraph.pipeline.rejects import RejectFile
from omnigraph.pipeline.session import Pipeline, pipeline_session
from omnigraph.pipeline.staging import Incoming, LoadFiles
from omnigraph.write.delta import WriteMode
from omnigraph.write.publish import Receipt, WriteRequest, publish
from omnigraph.write.stage import BulkChange
from omnigraph.write.txn import WriteTxn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOutcome:
    """What a bulk load did, or would have done."""

    receipt: Receipt | None
    """None for a dry run."""
    rows: Mapping[str, int]
    """Rows of the input by table key, in order of first mention."""
    changes: Mapping[str, TableChange]
    """By table key; only tables that change."""


def bulk_load(
    repository: Repository,
    source: Any,
    *,
    mode: WriteMode,
    branch: str,
    type_name: str | None = None,
    mapping: Mapping[str, Any] | None = None,
    actor: str | None = None,
    message: str | None = None,
    spark: SparkSession | None = None,
    rejects: str | Path | None = None,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
) -> BulkOutcome:
    """Load an input of any size as one commit; either everything is published or nothing.

    ``source``, ``type_name`` and ``mapping`` are those of ``parse_input``. ``rejects`` names a file
    for everything that is wrong with the input, one JSON object a line. A ``dry_run`` reads and
    checks and leaves it at that. ``progress`` is told the rows that were read, at the end of that.

    Raises ``InputError``, ``ConstraintError`` (the first violations and their number),
    ``ConflictError``, and ``UsageError`` if there is no Spark to run on.
    """
    with (
        RejectFile(rejects) as reject_file,
        pipeline_session(spark) as pipeline,
        _Load(repository, pipeline, source, mode, type_name, mapping, progress) as load,
    ):
        try:
            if dry_run:
                known = repository.branch(branch)
                txn = WriteTxn.begin(repository, known, known.refresh())
                changes = load.checked_changes(txn)
                return BulkOutcome(receipt=None, rows=load.rows, changes=changes)
            receipt = publish(
                repository,
                WriteRequest(
                    kind="load",
                    branch=branch,
                    prepare=load.prepare,
                    actor=actor,
                    message=message,
                    on_newest=mode is WriteMode.OVERWRITE,
                ),
            )
        except (InputError, ConstraintError):
            if reject_file.wanted:
                with translated("writing what was rejected"):
                    load.tell_rejects(reject_file)
            raise
        return BulkOutcome(receipt=receipt, rows=load.rows, changes=receipt.changes)


class _Load:
    """One input on its way, through as many attempts as it takes."""

    def __init__(
        self,
        repository: Repository,
        pipeline: Pipeline,
        source: Any,
        mode: WriteMode,
        type_name: str | None,
        mapping: Mapping[str, Any] | None,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._repository = repository
        self._pipeline = pipeline
        self._source = source
        self._mode = mode
        self._type_name = type_name
        self._mapping = mapping
        self._progress = progress
        self._run_id = repository.ids.ulid()
        self._schema: str | None = None
        self._parsed: ParsedInput | None = None
        self._checked: Checked | None = None
        self._files = LoadFiles(repository, pipeline.spark)

    def __enter__(self) -> _Load:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        if self._parsed is None or self._checked is None or not changes:
            return BulkChange(tables={})
        incoming = Incoming(
            intake=self._intake(self._parsed),
            mode=self._mode,
            rows=self.rows,
            superseded=self._checked.superseded,
        )
        with translated("writing data files"):
            return BulkChange(tables=self._files.stage(txn, incoming, changes))

    def checked_changes(self, txn: WriteTxn) -> dict[str, TableChange]:
        """What the load does to each table that it changes, if it keeps all rules."""
        with translated("reading the input"):
            parsed = self._parse(txn.schema)
            error = parsed.error()
        if error is not None:
            raise error
        if not parsed.keys:
            return {}
        with translated("checking the input"):
            checked = check(self._pipeline.spark, self._subject(txn, parsed))
            self._checked = checked
            if checked.total:
                raise checked.refusal()
        found = {key: self._change(txn, checked, key) for key in parsed.keys}
        return {key: change for key, change in found.items() if change.total}

    def tell_rejects(self, out: RejectFile) -> None:
        """Write down everything that is wrong."""
        if self._parsed is not None and self._parsed.problem_count:
            out.problems(self._parsed.every_problem())
        elif self._checked is not None and self._checked.total:
            out.violations(self._checked.every())

    @property
    def _total(self) -> int:
        return sum(self.rows.values())

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
            self._source,
            schema.catalog,
            type_name=self._type_name,
            mapping=self._mapping,
            run_id=self._run_id,
        )
        if self._progress is not None:
            self._progress(self._total)
        return self._parsed

    def _subject(self, txn: WriteTxn, parsed: ParsedInput) -> Subject:
        catalog = txn.schema.catalog
        tables = {
            key: InputTable(
                type=catalog.table(key),
                rows=parsed.row_count(key),
                ids_fresh=parsed.ids_fresh(key, catalog),
            )
            for key in parsed.keys
        }
        return Subject(
            catalog=catalog,
            mode=self._mode,
            tables=tables,
            files=parsed.files,
            committed=PinnedState(txn),
            intake=self._intake(parsed),
        )

    def _intake(self, parsed: ParsedInput) -> Intake:
        frame, read = parsed.packed()
        return Intake(frame=frame, read=read)

    # -- counting --------------------------------------------------------------------------------

    def _change(self, txn: WriteTxn, checked: Checked, key: str) -> TableChange:
        rows = self.rows[key] - checked.superseded.get(key, 0)
        known = checked.known.get(key, 0)
        before = txn.row_count(key) if self._mode is WriteMode.OVERWRITE else known
        return TableChange(inserted=rows - known, updated=known, deleted=before - known)
