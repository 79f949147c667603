"""Rows that get another value by a change of columns alone.

    lens, a type before and after -> [refilled] -> how many

A commit counts what its difference has. Rows that a write names are counted by the validator; rows
whose columns are filled or converted without being named are counted here.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.rules.table_delta import NO_IDS
from omnigraph.schema.migrate.columns import Made, column_changes
from omnigraph.schema.same_values import Mask, same_mask
from omnigraph.write.lens import Lens
from omnigraph.write.reshaping import TypePair


def refilled(lens: Lens, pair: TypePair, touched: pa.Array = NO_IDS) -> int:
    """How many rows change, but for those that are touched anyway."""
    made = column_changes(pair.before, pair.after, lens.backfills).made
    if not made:
        return 0
    numbers = {p.name: p.id for p in pair.after.properties}
    stored = {p.id: p.name for p in pair.before.properties}
    columns = [(column, stored.get(numbers[column.field.name])) for column in made]
    if not len(touched) and any(was is None and _is_constant(c) for c, was in columns):
        return lens.row_count(pair.after.table_key)  # Every row gets it, so none is read.
    reads = dict.fromkeys(["id", *(n for c, was in columns for n in (*c.reads, was) if n)])
    count = 0
    for batch in lens.stored_batches(pair.after, list(reads)):
        changed = np.zeros(batch.num_rows, np.bool_)
        for column, was in columns:
            changed |= _changed(column, was, batch)
        if len(touched):
            named = pc.is_in(batch.column("id"), value_set=touched)
            changed &= ~named.to_numpy(zero_copy_only=False)
        count += int(changed.sum())
    return count


def _is_constant(column: Made) -> bool:
    return not column.reads


def _changed(column: Made, was: str | None, batch: pa.RecordBatch) -> Mask:
    values = column.make(batch)
    if was is None:
        return values.is_valid().to_numpy(zero_copy_only=False)
    return ~same_mask(batch.column(was), values)
