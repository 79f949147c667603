"""What can happen to a table: values that say it, for staging the next version.

plan -> [changes] -> tables: commit where it is not seen
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from omnigraph.storage.layout import Positions, file_names
from omnigraph.storage.namespace import StagingNamespace


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedFiles:
    """Data files written but in no version yet; they may be committed on any later version."""

    fragments: tuple[Any, ...]
    rows: pa.Table | None
    """What the files hold, so that a fresh version can answer key lookups without reading. None
    when other processes wrote them."""
    sent: tuple[Future[None], ...] = ()
    """Complete when the store has the files that were written aside."""

    def names(self, table_path: str) -> list[str]:
        """The files, from the root."""
        return file_names(table_path, self.fragments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Add the files' rows. On an absent table this creates it."""

    files: StagedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace:
    """Make the files' rows the whole content."""

    files: StagedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Replace rows with these ids, add the others. Row identity of replaced rows is kept."""

    rows: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete the rows with these ids; every id exists."""

    ids: pa.StringArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Rows replaced and added by other processes, on exactly the version they looked at."""

    marked: tuple[Any, ...]
    """Fragments of that version with more rows marked as deleted."""
    gone: tuple[int, ...]
    """Fragments of which nothing is left."""
    added: tuple[Any, ...]
    """New files: replaced rows with the identity they had, and new rows."""


class CommitPlace(Protocol):
    """Where commits are made: in the store or aside."""

    def commit(self, base: LanceDataset, operation: Any) -> LanceDataset:
        """The version after ``base``."""
        ...


class Rework(ABC):
    """A change of how a table is laid out, indexed or shaped, which its own module knows."""

    opens: ClassVar[bool] = False
    """Whether it opens the version anew, and needs its number alone."""

    @abstractmethod
    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """The next version, committed where it is not seen; ``current`` if nothing changes."""


Change = Append | Replace | Upsert | Remove | Patch | Rework


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """What changes of single rows come to: rows of a version that go, files with rows that come."""

    gone: Positions
    """Ascending."""
    added: tuple[StagedFiles, ...]
    replaces: bool
    """Whether some of them take the place of others."""

    def and_then(self, later: Moves) -> Moves:
        """Both, of two writes that touch different rows."""
        return Moves(
            gone=np.union1d(self.gone, later.gone),
            added=self.added + later.added,
            replaces=self.replaces or later.replaces,
        )


def files_of(changes: Sequence[Change]) -> list[StagedFiles]:
    """The files that changes bring."""
    return [change.files for change in changes if isinstance(change, (Append, Replace))]
