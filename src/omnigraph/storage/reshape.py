"""Columns of a table added, renamed, dropped and made anew, in one version that is not seen yet.

    column changes -> [reshape] -> staged version -> publish

Rows stay where they are and keep their identity. Lance renames and drops in the manifest alone, and
an empty column takes no file; a column with values is one new file beside those of each fragment.
Indexes of columns that stay are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import lance
import pyarrow as pa
from lance import LanceDataset

from omnigraph.arrow.sets import one_array
from omnigraph.storage.changes import Rework
from omnigraph.storage.layout import physical_schema
from omnigraph.storage.namespace import StagingNamespace, own_session

_NEW = "__new_"
"""New columns carry this before their name until the old ones are out of the way."""


class MadeColumn(Protocol):
    """A column that is made from stored ones, batch by batch."""

    @property
    def field(self) -> pa.Field:
        """The column as it will be."""
        ...

    @property
    def reads(self) -> Sequence[str]:
        """Stored columns that it is made from; none for a constant."""
        ...

    @property
    def make(self) -> Callable[[pa.RecordBatch], pa.Array]:
        """Its values for some rows."""
        ...


@dataclass(frozen=True, kw_only=True)
class Reshape(Rework):
    """All changes of a table's columns together; names are those that are stored."""

    opens: ClassVar[bool] = True

    dropped: tuple[str, ...]
    renamed: Mapping[str, str]
    nullable: Mapping[str, bool]
    empty: tuple[pa.Field, ...]
    made: tuple[MadeColumn, ...]

    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """The next version: at most four commits that are not seen, whatever changes."""
        # Lance commits these where the dataset was opened: that must be the namespace of this
        # attempt, not the one that readers of the base share.
        dataset = space.opened(current.version, session=own_session())
        empty, made = list(self.empty), self.made
        if made and not dataset.get_fragments():
            empty, made = [*empty, *(column.field for column in made)], ()
        if made:
            self._write(dataset, made)
        self._leave_out(dataset)
        if empty:
            fields = physical_schema(pa.schema([f.with_nullable(True) for f in empty]))
            dataset.add_columns(pa.schema([f.with_name(_NEW + f.name) for f in fields]))
        if alterations := self._alterations(empty, made):
            alter: Any = dataset.alter_columns  # Its type does not know that it takes several.
            alter(*alterations)
        return dataset

    def _write(self, dataset: LanceDataset, made: Sequence[MadeColumn]) -> None:
        fields = [c.field.with_name(_NEW + c.field.name).with_nullable(True) for c in made]
        schema = pa.schema(fields)

        @lance.batch_udf(output_schema=schema)
        def columns(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([one_array(c.make(batch)) for c in made], schema=schema)

        # Constants need to know how many rows there are: any column says that.
        reads = list(dict.fromkeys(name for c in made for name in c.reads)) or ["id"]
        dataset.add_columns(columns, read_columns=reads)

    def _leave_out(self, dataset: LanceDataset) -> None:
        if not self.dropped:
            return
        for index in dataset.describe_indices():
            if set(index.field_names) & set(self.dropped):
                dataset.drop_index(index.name)
        dataset.drop_columns(list(self.dropped))

    def _alterations(
        self, empty: Sequence[pa.Field], made: Sequence[MadeColumn]
    ) -> list[dict[str, Any]]:
        """New names and whether nulls are allowed, all in one step: names may be swapped."""
        found: dict[str, dict[str, Any]] = {}
        for name, new_name in self.renamed.items():
            found[name] = {"path": name, "name": new_name}
        for name, nullable in self.nullable.items():
            found.setdefault(name, {"path": name})["nullable"] = nullable
        for field in [*empty, *(column.field for column in made)]:
            path = _NEW + field.name
            found[path] = {"path": path, "name": field.name, "nullable": field.nullable}
        return list(found.values())
