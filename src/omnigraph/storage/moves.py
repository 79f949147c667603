"""What changes of single rows come to: rows of a version that go, and files with rows that come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.storage.changes import Append, Change, Replace, StagedFiles
from omnigraph.storage.layout import Positions

if TYPE_CHECKING:
    from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Rows of a version that go, and files with rows that come."""

    gone: Positions
    """Ascending."""
    added: tuple[StagedFiles, ...]
    replaces: bool
    """Whether some of them take the place of others."""


def files_of(changes: Sequence[Change]) -> list[StagedFiles]:
    """The files that changes bring with them."""
    return [change.files for change in changes if isinstance(change, (Append, Replace))]


def positions_of(base: Table, ids: pa.StringArray) -> Positions:
    """Where in the base the rows stand that have these ids; every one exists."""
    positions = base.positions("id", ids)
    if len(positions) != len(ids):
        raise InternalError(f"rows of {base.name.path} that are to be removed are not there")
    return positions
