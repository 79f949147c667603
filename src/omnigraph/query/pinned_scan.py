"""Reading one table of a snapshot on many machines: a scan, which is a value, and its pieces.

    table, columns, condition -> [pinned scan] -> pieces -> executors: batches

A scan names the exact version that it reads, so every process that has it reads the same rows, also
when a task is repeated while others publish. Only the columns that are asked for are read, and as
much of the condition as Lance understands is answered by Lance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InternalError, UsageError
from omnigraph.manifest.pinned import PinnedTable
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.pieces import FilePiece, cut, open_pinned, piece_batches

if TYPE_CHECKING:
    from omnigraph.query import typed
    from omnigraph.query.exec.evaluate import Values

    Condition = pc.Expression | typed.Expr

ROW_ADDRESS, ROW_ID = "_rowaddr", "_rowid"
ADDRESSES = pa.schema(
    [pa.field(name, pa.int64(), nullable=False) for name in (ROW_ADDRESS, ROW_ID)]
)
"""Where a row lies in this version, and its identity across versions."""


@dataclass(frozen=True, kw_only=True)
class PinnedScan:
    """What is read of a table. It can be pickled: it opens nothing before it is asked to."""

    table: PinnedTable
    columns: tuple[str, ...]
    condition: Condition | None = None
    """In Lance's terms, or typed: a typed one is answered here as far as Lance cannot."""
    values: Values | None = None
    """Of the parameters in a typed condition."""
    with_address: bool = False

    def __post_init__(self) -> None:
        _check_columns(self.table.type, self.columns, empty=self.with_address)

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the batches, in our own types."""
        stored = table_schema(self.table.type)
        chosen = [stored.field(name) for name in self.columns]
        return pa.schema([*chosen, *ADDRESSES] if self.with_address else chosen)

    def narrowed(self, conditions: Sequence[typed.Expr]) -> PinnedScan:
        """The same with more conditions, which are typed, as all of it then has to be."""
        from omnigraph.query import typed

        if isinstance(self.condition, pc.Expression):
            raise InternalError("conditions of two kinds do not go together")
        return replace(self, condition=typed.And(operands=(*self._conjuncts, *conditions)))

    def pieces(self) -> list[FilePiece]:
        """The parts of the table that separate tasks read; asks for metadata only."""
        if self.table.name is None:
            return []
        with self.table.reading():
            source = open_pinned(self.table.location, self.table.name)
            return cut(source, self._read_columns, ranges=self._pushed is None)

    def batches(self, piece: FilePiece) -> Iterator[pa.RecordBatch]:
        """The rows of a piece that satisfy the condition, in storage order."""
        if self.table.name is None:
            return
        with self.table.reading():
            source = open_pinned(self.table.location, self.table.name)
            for batch in piece_batches(
                source,
                piece,
                self._read_columns,
                condition=self._pushed,
                addresses=self.with_address,
            ):
                kept = self._kept(batch)
                if kept.num_rows:
                    yield _in_schema(kept, self.schema)

    @cached_property
    def _conjuncts(self) -> tuple[typed.Expr, ...]:
        from omnigraph.query import typed

        if self.condition is None or isinstance(self.condition, pc.Expression):
            return ()
        whole = self.condition
        return whole.operands if isinstance(whole, typed.And) else (whole,)

    @cached_property
    def _split(self) -> tuple[pc.Expression | None, tuple[typed.Expr, ...]]:
        """What Lance answers, and what is left for us."""
        from omnigraph.query.exec.pushdown import lance_filters, to_lance_filter

        if isinstance(self.condition, pc.Expression):
            if not lance_filters(self.table.type):
                raise UsageError(
                    f"no condition of this kind on {self.table.type.name}: it has lists of "
                    "unsigned numbers",
                    hint="filter the DataFrame instead",
                )
            return self.condition, ()
        pushed: pc.Expression | None = None
        rest: list[typed.Expr] = []
        for conjunct in self._conjuncts:
            said = to_lance_filter(conjunct, self._values, self.table.type)
            if said is None:
                rest.append(conjunct)
            else:
                pushed = said if pushed is None else pushed & said
        return pushed, tuple(rest)

    @property
    def _pushed(self) -> pc.Expression | None:
        return self._split[0] if self.condition is not None else None

    @cached_property
    def _read_columns(self) -> tuple[str, ...]:
        if self.condition is None:
            return self.columns
        from omnigraph.query import typed

        asked = [
            part.column
            for conjunct in self._split[1]
            for part in typed.walk(conjunct)
            if isinstance(part, typed.Prop)
        ]
        return tuple(dict.fromkeys([*self.columns, *asked]))

    @property
    def _values(self) -> Values:
        from omnigraph.query.exec.evaluate import Values

        return self.values or Values(params={}, now=datetime(1970, 1, 1, tzinfo=UTC))

    def _kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self.condition is None or not self._split[1]:
            return batch
        from omnigraph.query.exec.evaluate import holds

        rows, mask = _BatchRows(batch), np.ones(batch.num_rows, np.bool_)
        for conjunct in self._split[1]:
            mask &= holds(conjunct, rows, self._values)
        return batch if mask.all() else batch.filter(pa.array(mask))


class _BatchRows:
    """A batch of one table as the rows that an expression is evaluated over."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    @property
    def length(self) -> int:
        return self._batch.num_rows

    def column(self, prop: typed.Prop) -> pa.Array:
        return self._batch.column(prop.column)

    def present(self, variable: str) -> pa.BooleanArray:
        return pa.array(np.ones(self.length, np.bool_))

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        raise InternalError("a scan answers conditions on its own columns only")

    def text(self, expr: typed.TextMatch) -> pa.Array:
        raise InternalError("a scan answers no full-text conditions")

    def score(self, expr: typed.Score) -> pa.Array:
        raise InternalError("a scan ranks nothing")


def _in_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns: list[pa.Array] = []
    for field in schema:
        column = batch.column(field.name)
        columns.append(column if column.type == field.type else column.cast(field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_columns(graph_type: GraphType, columns: Sequence[str], *, empty: bool) -> None:
    known = table_schema(graph_type).names
    if not columns and not empty:
        raise UsageError(f"no column of {graph_type.name} is named")
    if len(set(columns)) < len(columns):
        raise UsageError(f"a column is named twice: {', '.join(columns)}")
    for name in columns:
        if name not in known:
            raise UsageError(
                f"{graph_type.name} has no column '{name}'", hint=f"it has {', '.join(known)}"
            )
