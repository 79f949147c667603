"""What changes of single rows come to, and how Lance is told.

base, appends and upserts and removals -> [moves] -> operations of one version
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceOperation

from omnigraph.storage.changes import Append, Change, Moves, Remove, StagedFiles, Upsert
from omnigraph.storage.layout import Layout, Positions
from omnigraph.storage.row_changes import deletion, identify, match, replacement
from omnigraph.storage.rows import RowIds
from omnigraph.storage.tables import Table

Write = Callable[[pa.Table], StagedFiles]


def moves_of(
    base: Table,
    changes: Sequence[Change],
    write: Write,
    identities: Callable[[Positions], RowIds],
) -> Moves | None:
    """What changes of single rows come to; None for any other change.

    ``write`` puts rows into files, ``identities`` says which rows stand at some positions.
    """
    if not all(isinstance(change, (Append, Upsert, Remove)) for change in changes):
        return None
    removed = [change.ids for change in changes if isinstance(change, Remove)]
    gone = [base.positions_of(pa.concat_arrays(removed))] if removed else []
    added: list[StagedFiles] = []
    for change in changes:
        if isinstance(change, Append):
            added.append(change.files)
        elif isinstance(change, Upsert):
            places = base.positions("id", change.rows.column("id").combine_chunks())
            gone.append(places)
            added += _replacing(base, change.rows, places, write, identities)
    return Moves(
        gone=np.sort(np.concatenate([np.empty(0, np.int64), *gone])),
        added=tuple(added),
        replaces=any(isinstance(change, Upsert) for change in changes),
    )


def _replacing(
    base: Table,
    rows: pa.Table,
    places: Positions,
    write: Write,
    identities: Callable[[Positions], RowIds],
) -> list[StagedFiles]:
    """Write the rows of an upsert: those that replace others, and those that are new."""
    found = match(rows, places, base.ids_at(places))
    files: list[StagedFiles] = []
    if len(places):
        replacing = write(found.replacing)
        identify(replacing.fragments, identities(places))
        files.append(replacing)
    if found.new.num_rows:
        files.append(write(found.new))
    return files


def row_operations(
    dataset: LanceDataset, layout: Layout, moves: Moves, *, in_two: bool
) -> tuple[Any, ...]:
    """The operations that bring some moves; what marks rows that go is written here.

    The layout is that of the version whose places the moves name. Rows that go stay where they are
    whatever else a write adds, so the addresses hold on ``dataset``, too.
    """
    if moves.replaces:
        return replacement(dataset, layout, moves.gone, moves.added, in_two=in_two)
    new = [fragment for files in moves.added for fragment in files.fragments]
    operations: list[Any] = [LanceOperation.Append(new)] if new else []
    if len(moves.gone):
        operations.append(deletion(dataset, layout.addresses_at(moves.gone)))
    return tuple(operations)
