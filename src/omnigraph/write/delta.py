"""What a write wants to change, before it is checked.

load | mutate | merge -> [delta] -> validate -> stage -> publish
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.manifest.snapshot import ManifestPlace, Snapshot, TableChange
from omnigraph.rules.table_delta import TableDelta

if TYPE_CHECKING:  # A command that only looks at queries and schemas loads no engine.
    from omnigraph.manifest.schemas import AcceptedSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphDelta:
    """The change of one write over all tables it touches, by table key."""

    tables: Mapping[str, TableDelta]
    adopts_from: ManifestPlace | None = None
    """The state whose versions of tables are adopted, if any are."""
    schema: AcceptedSchema | None = None
    """The schema from now on, if it changes: what the rows and the keys of the tables say. Tables
    follow their types by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A state of the whole graph that exists already, on whatever branch, to be shown as it is.

    Every rule was checked when it was made, so nothing is checked or written again.
    """

    snapshot: Snapshot
    changes: Mapping[str, TableChange]
    """How it differs from the branch's present state; by table key."""
    rewinds: bool = False
    """The branch goes back: its history continues from that state, not from its present head."""
