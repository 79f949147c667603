"""A strictly versioned set of rows: each version is one complete value, exactly one racer wins.

    manifest snapshot -> rows -> [strict] -> one Lance version

Every commit is an ``Overwrite`` of the version that was read: the only Lance operation that is
never rebased, so a stale writer always loses. A version is one small compressed file, so reading it
costs the same at any depth of history and nothing ever has to be compacted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import write_fragments

from omnigraph.errors import ErrorKind, InternalError, OmnigraphError
from omnigraph.storage.faults import is_missing, translate, translated
from omnigraph.storage.layout import FILE_FORMAT, file_names
from omnigraph.storage.location import Location
from omnigraph.storage.names import manifest_name
from omnigraph.storage.namespace import access, open_dataset
from omnigraph.storage.objects import Objects

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictVersion:
    """One version as read or committed."""

    version: int
    rows: pa.Table
    metadata: dict[str, str]
    """Of the dataset's schema."""
    handle: LanceDataset


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedRows:
    """Rows written for a commit to come; not yet part of any version."""

    rows: pa.Table
    """With their text columns to be compressed."""
    fragments: tuple[Any, ...]


class StrictDataset:
    """The dataset at one path below a graph's root."""

    def __init__(self, location: Location, objects: Objects, path: str) -> None:
        self._objects = objects
        self._path = path
        self._location = location
        self._uri = location.table_uri(path)
        self._session = lance.Session()  # pyright: ignore[reportPrivateImportUsage]

    def stage_first(self, rows: pa.Table) -> StagedRows | None:
        """Write the file of version 1, or return None when there is one already."""
        with translated(f"writing to {self._path}"):
            try:
                return self._write(rows, self._uri, "create")
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
        return _version(made, staged.rows)

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

    def stage(self, current: StrictVersion, rows: pa.Table) -> StagedRows:
        """Write the file of the next version."""
        with translated(f"writing to {self._path}"):
            return self._write(rows, current.handle, "overwrite")

    def commit(self, current: StrictVersion, staged: StagedRows) -> StrictVersion:
        """Make the staged rows the version after ``current``, or raise ``LostRaceError``."""
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
            # Whatever went wrong, the manifest may have been written before it did. A refusal
            # proves the opposite, unless an earlier try of the same request is still on its way.
            cause = translate(e, doing)
            retried = re.search(r"after \d+ retries", str(e))
            refused = cause.kind in _REFUSALS and retried is None
            raise OutcomeUnknownError(cause, refused=refused) from e
        if made.version != current.version + 1:
            raise InternalError(f"version {made.version} after {current.version}, while {doing}")
        return _version(made, staged.rows)

    def _write(self, rows: pa.Table, target: LanceDataset | str, mode: str) -> StagedRows:
        rows = _compressed(rows)
        fragments = write_fragments(
            rows,
            target,
            mode=mode,
            data_storage_version=FILE_FORMAT,
            **access(self._location, self._path),
        )
        return StagedRows(rows=rows, fragments=tuple(fragments))

    def _open(self, version: int | None) -> LanceDataset:
        return open_dataset(self._location, self._path, version, session=self._session)

    def _read(self, handle: LanceDataset) -> StrictVersion:
        with translated(f"reading {self._path} version {handle.version}", referenced=True):
            return _version(handle, handle.to_table())

    def files_of(self, staged: StagedRows) -> list[str]:
        """Data files of staged rows, from the root."""
        return file_names(self._path, staged.fragments)

    def manifest_name(self, version: int) -> str:
        """The manifest of a version, from the root."""
        return manifest_name(self._path, version)


def _version(handle: LanceDataset, rows: pa.Table) -> StrictVersion:
    metadata = handle.schema.metadata or {}
    return StrictVersion(
        version=handle.version,
        rows=rows,
        metadata={k.decode(): v.decode() for k, v in metadata.items()},
        handle=handle,
    )


def _compressed(rows: pa.Table) -> pa.Table:
    """The rows with compressed text columns: most of a snapshot is names and paths."""
    fields = [f.with_metadata(_ZSTD) if pa.types.is_string(f.type) else f for f in rows.schema]
    return pa.table(rows.columns, schema=pa.schema(fields, metadata=rows.schema.metadata))
