"""Row images of one type while inserts and updates pass over them.

    committed rows, assigned cells -> [images] -> the rows that really change

Beside the present image of every touched row stands the committed one it came from. At the end the
two are compared: a row that is what it was is not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.sets import Mask
from omnigraph.query.mutate.find import one_array
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.same_values import same_mask

Places = npt.NDArray[np.int64]


class Images:
    """The touched rows of one table. Ids are distinct, but for rows whose key is incomplete."""

    def __init__(self, graph_type: GraphType) -> None:
        self._schema = table_schema(graph_type)
        self._committed: pa.Table = self._schema.empty_table()
        self._rows: pa.Table = self._schema.empty_table()
        self._assigned: set[str] = set()
        """Columns in which a row may differ from its committed image."""

    @property
    def rows(self) -> pa.Table:
        """The present images."""
        return self._rows

    @property
    def committed_ids(self) -> pa.StringArray:
        """Ids of touched rows that exist."""
        return one_array(self._committed.column("id"))

    def adopt(self, committed: pa.Table) -> None:
        """Take up committed rows that were not touched before."""
        if committed.num_rows:
            self._committed = pa.concat_tables([self._committed, committed]).combine_chunks()
            self._rows = pa.concat_tables([self._rows, committed]).combine_chunks()

    def places(self, ids: Sequence[str | None]) -> Places:
        """Where the rows of these ids stand; -1 for those that are not here."""
        found = pc.index_in(
            pa.array(ids, pa.string()), value_set=self._rows.column("id"), skip_nulls=True
        )
        return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)

    def set(self, mask: Mask, cells: Mapping[str, Any]) -> None:
        """Assign cells in some rows."""
        self._assigned.update(cells)
        count, rows = len(mask), self._rows
        places = pa.array(np.where(mask, count, np.arange(count)))
        for name, cell in cells.items():
            index = rows.schema.get_field_index(name)
            one = pa.array([cell], self._schema.field(index).type)
            column = pa.chunked_array([*rows.column(index).chunks, one])
            rows = rows.set_column(index, self._schema.field(index), column.take(places))
        self._rows = rows

    def put(self, cells: Sequence[Mapping[str, Any]], places: Places, keep: Mask) -> None:
        """Put rows: in the places of earlier images where there are some, else as new ones.

        What a row does not name is null, or stays as it was where ``keep`` says so.
        """
        self._assigned.update(self._schema.names)
        arrays = [self._column(f, cells, np.where(keep, places, -1)) for f in self._schema]
        put = pa.Table.from_arrays(arrays, schema=self._schema)
        left = np.ones(self._rows.num_rows, np.bool_)
        left[places[places >= 0]] = False
        self._rows = pa.concat_tables([self._rows.filter(pa.array(left)), put]).combine_chunks()

    def _column(
        self, field: pa.Field, cells: Sequence[Mapping[str, Any]], earlier: Places
    ) -> pa.Array | pa.ChunkedArray:
        named = [field.name in row for row in cells]
        given = pa.array([row.get(field.name) for row in cells], field.type)
        if not np.any((earlier >= 0) & ~np.array(named)):
            return given
        before = self._rows.column(field.name)
        start = len(before)
        places = [
            start + i if named[i] or earlier[i] < 0 else int(earlier[i]) for i in range(len(cells))
        ]
        return pa.chunked_array([*before.chunks, given]).take(pa.array(places))

    def changed(self) -> pa.Table:
        """New rows, and rows that are no longer what is committed."""
        if not self._rows.num_rows:
            return self._rows
        ids = self._rows.column("id")
        found = one_array(pc.index_in(ids, value_set=self._committed.column("id"), skip_nulls=True))
        if found.null_count == len(found):
            return self._rows
        known = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        mask = np.ones(len(found), np.bool_)
        after = self._rows.take(pa.array(known))
        before = self._committed.take(found.drop_null())
        differs = np.zeros(len(known), np.bool_)
        for name in self._schema.names:
            if name in self._assigned:
                differs |= ~same_mask(before.column(name), after.column(name))
        mask[known] = differs
        return self._rows if mask.all() else self._rows.filter(pa.array(mask))
