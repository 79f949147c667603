"""A strictly versioned set of rows: each version is one complete value, exactly one racer wins.

    manifest snapshot -> rows -> [strict] -> one Lance version

Every commit is an ``Overwrite`` of the version that was read: the only Lance operation that is
never rebased, so a stale writer always loses. A version is one small compressed file, so reading it
costs the same at any depth of history and nothing ever has to be compacted.

On a disk Lance commits. On a remote store the manifest is made aside and created under the name of
its version if that is free: the same condition, in one request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from omnigraph.errors import ErrorKind, InternalError, OmnigraphError
from omnigraph.storage.aside import Aside
from omnigraph.storage.faults import is_missing, translate, translated
from omnigraph.storage.layout import FILE_FORMAT, file_names
from omnigraph.storage.location import Location
from omnigraph.storage.names import manifest_name
from omnigraph.storage.namespace import access, open_dataset
from omnigraph.storage.objects import Objects, once

_REFUSALS = (
    ErrorKind.STORAGE_DENIED,
    ErrorKind.STORAGE_FULL,
    ErrorKind.STORAGE_NOT_FOUND,
    ErrorKind.STORAGE_CONFIGURATION,
)
_ZSTD = {"lance-encoding:compression": "zstd"}


class LostRaceError(Exception):
    """Another writer committed on the version this commit was based on. Stays in the package."""


class OutcomeUnknownError(Exception):
    """The store failed while the commit was being written: it may have landed or not."""

    def __init__(self, cause: OmnigraphError, *, refused: bool = False) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.refused = refused
        """The store refused the only request: then the commit did not land."""


@dataclass(frozen=True, kw_only=True)
class StrictVersion:
    """One version as read or committed."""

    version: int
    rows: pa.Table
    opener: Callable[[], LanceDataset] = field(repr=False)
    reader: Callable[[], bytes] = field(repr=False)

    @property
    def metadata(self) -> dict[str, str]:
        """Of the dataset's schema."""
        return {k.decode(): v.decode() for k, v in (self.rows.schema.metadata or {}).items()}

    @cached_property
    def handle(self) -> LanceDataset:
        """The dataset at this version; opened when it is asked for."""
        return self.opener()

    @property
    def manifest(self) -> bytes:
        """Its manifest, as it is stored."""
        return self.reader()


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """Rows written for a commit to come; not yet part of any version."""

    rows: pa.Table
    """With their text columns to be compressed."""
    fragments: tuple[Any, ...]
    aside: tuple[Aside, LanceDataset] | None = None
    """Where the commit is made and on what, unless Lance commits in the store."""


class StrictDataset:
    """The dataset at one path below a graph's root."""

    def __init__(self, location: Location, objects: Objects, path: str) -> None:
        self._objects = objects
        self._path = path
        self._location = location
        self._is_local = location.is_local
        self._uri = location.table_uri(path)
        self._session = lance.Session()  # pyright: ignore[reportPrivateImportUsage]

    def stage_first(self, rows: pa.Table) -> StagedRows | None:
        """Write the file of version 1, or return None when there is one already."""
        with translated(f"writing to {self._path}"):
            try:
                return self._write(rows, self._uri, "create", self._access)
            except OSError as e:
                if "already exists" in str(e):
                    return None
                raise

    def create(self, staged: StagedRows) -> StrictVersion | None:
        """Make version 1, or return None when another process was first.

        ``lance.write_dataset(mode="create")`` would look for a dataset once and then overwrite
        whatever it finds; a commit on version 0 can only ever become version 1.
        """
        with translated(f"creating {self._path}"):
            try:
                made = LanceDataset.commit(
                    self._uri,
                    LanceOperation.Overwrite(staged.rows.schema, list(staged.fragments)),
                    read_version=0,
                    max_retries=0,
                    storage_options=self._location.storage_options,
                )
            except CommitConflictError:
                return None
            except OSError as e:
                # Where a dataset exists, its version 0 is looked for, or its own check finds it.
                if is_missing(e) or "already exists" in str(e):
                    return None
                raise
        if made.version != 1:
            raise InternalError(f"the first version of {self._path} became {made.version}")
        if self._location.keys is not None:
            # Made of a path, it would not ask for keys when its own expire.
            made = self._open(1)
        return self._version(made, staged.rows)

    def exists(self, version: int) -> bool:
        """Whether a version has been committed: one HEAD."""
        return self._objects.exists(self.manifest_name(version))

    def latest(self) -> StrictVersion | None:
        """The newest version by listing; None when there is no dataset here."""
        with translated(f"opening {self._path}", referenced=True):
            try:
                handle = self._open(None)
            except (OSError, ValueError) as e:
                if is_missing(e):
                    return None
                raise
        return self._read(handle)

    def at(self, version: int) -> StrictVersion:
        """A version by number: nothing is listed."""
        with translated(f"opening {self._path} version {version}", referenced=True):
            handle = self._open(version)
        return self._read(handle)

    def known(self, version: int, rows: pa.Table) -> StrictVersion:
        """A version whose rows are known from elsewhere: nothing is read."""

        def opened() -> LanceDataset:
            with translated(f"opening {self._path} version {version}", referenced=True):
                return self._open(version)

        return StrictVersion(
            version=version,
            rows=rows,
            opener=opened,
            reader=once(lambda: self._manifest(version)),
        )

    def expect_commit(self, current: StrictVersion) -> None:
        """The version after this one will be made: begin to read what that takes."""
        if not self._is_local:
            self._objects.beside(lambda: current.manifest)

    def stage(self, current: StrictVersion, rows: pa.Table) -> StagedRows:
        """Write the file of the next version."""
        if self._is_local:
            with translated(f"writing to {self._path}"):
                return self._write(rows, current.handle, "overwrite", self._access)
        with translated(f"writing to {self._path}"):
            aside = Aside()
            base = aside.open(current.version, current.manifest)
            staged = self._write(rows, base, "overwrite", {})
            for name, content in aside.take("data").items():
                self._objects.put(f"{self._path}/{name}", content)
        return replace(staged, aside=(aside, base))

    def commit(self, current: StrictVersion, staged: StagedRows) -> StrictVersion:
        """Make the staged rows the version after ``current``, or raise ``LostRaceError``."""
        if staged.aside is not None:
            return self._create(current, staged, *staged.aside)
        doing = f"committing to {self._path}"
        try:
            made = LanceDataset.commit(
                current.handle,
                LanceOperation.Overwrite(staged.rows.schema, list(staged.fragments)),
                read_version=current.version,
                max_retries=0,
                storage_options=self._location.storage_options,
            )
        except CommitConflictError as e:
            raise LostRaceError(str(e)) from e
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as e:
            raise _unknown(e, doing) from e
        if made.version != current.version + 1:
            raise InternalError(f"version {made.version} after {current.version}, while {doing}")
        return self._version(made, staged.rows)

    def _create(
        self, current: StrictVersion, staged: StagedRows, aside: Aside, base: LanceDataset
    ) -> StrictVersion:
        """Commit what was made aside: its manifest is created, or there is one already."""
        version = current.version + 1
        with translated(f"making version {version} of {self._path}"):
            operation = LanceOperation.Overwrite(staged.rows.schema, list(staged.fragments))
            made = aside.commit(base, operation)
            manifest = aside.manifest(version)
        try:
            created = self._objects.create(self.manifest_name(version), manifest)
        except OmnigraphError as e:
            raise _unknown(e.__cause__ or e, f"committing to {self._path}") from e
        if not created:
            raise LostRaceError(f"version {version} of {self._path} is there already")
        return StrictVersion(
            version=version, rows=staged.rows, opener=lambda: made, reader=lambda: manifest
        )

    @property
    def _access(self) -> dict[str, Any]:
        return access(self._location, self._path)

    def _write(
        self, rows: pa.Table, target: LanceDataset | str, mode: str, options: dict[str, Any]
    ) -> StagedRows:
        rows = _compressed(rows)
        fragments = write_fragments(
            rows,
            target,
            mode=mode,
            data_storage_version=FILE_FORMAT,
            **options,
        )
        return StagedRows(rows=rows, fragments=tuple(fragments))

    def _open(self, version: int | None) -> LanceDataset:
        return open_dataset(self._location, self._path, version, session=self._session)

    def _read(self, handle: LanceDataset) -> StrictVersion:
        with translated(f"reading {self._path} version {handle.version}", referenced=True):
            rows = handle.to_table()
            # Lance need not hand on what the schema says of the whole.
            return self._version(handle, rows.replace_schema_metadata(handle.schema.metadata))

    def _version(self, handle: LanceDataset, rows: pa.Table) -> StrictVersion:
        version = handle.version
        return StrictVersion(
            version=version,
            rows=rows,
            opener=lambda: handle,
            reader=once(lambda: self._manifest(version)),
        )

    def _manifest(self, version: int) -> bytes:
        return self._objects.get(self.manifest_name(version), referenced=True) or b""

    def files_of(self, staged: StagedRows) -> list[str]:
        """Data files of staged rows, from the root."""
        return file_names(self._path, staged.fragments)

    def manifest_name(self, version: int) -> str:
        """The manifest of a version, from the root."""
        return manifest_name(self._path, version)


def _unknown(error: BaseException, doing: str) -> OutcomeUnknownError:
    """Whatever went wrong, the manifest may have been written before it did. A refusal proves the
    opposite, unless an earlier try of the same request is still on its way."""
    cause = translate(error, doing)
    retried = re.search(r"after \d+ retries", str(error))
    return OutcomeUnknownError(cause, refused=cause.kind in _REFUSALS and retried is None)


def _compressed(rows: pa.Table) -> pa.Table:
    """The rows with compressed text columns: most of a snapshot is names and paths."""
    fields = [f.with_metadata(_ZSTD) if pa.types.is_string(f.type) else f for f in rows.schema]
    return pa.table(rows.columns, schema=pa.schema(fields, metadata=rows.schema.metadata))
