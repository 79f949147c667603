"""What a mutation may read: the pinned snapshot, and nothing else.

``WriteTxn`` is one; every read through it is part of the read set by which a lost race is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from omnigraph.arrow.sets import Positions
from omnigraph.errors import InternalError
from omnigraph.query import typed
from omnigraph.rules.table_delta import CommittedState


class Base(CommittedState, Protocol):
    """The committed state, with access to whole rows."""

    def positions(self, table_key: str, column: str, values: pa.Array) -> Positions:
        """Where in a ``scan`` the rows stand whose ``column`` is among ``values``; ascending."""
        ...

    def rows_at(self, table_key: str, positions: Positions, columns: tuple[str, ...]) -> pa.Table:
        """Rows by their positions in a ``scan``; blobs as plain bytes."""
        ...


class MutationRows:
    """Rows of one table as the columns that a ``where`` speaks of. Implements ``Columns``."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def length(self) -> int:
        """How many rows."""
        return self._rows.num_rows

    def column(self, prop: typed.Prop) -> pa.ChunkedArray:
        """A stored column; the only variable is the target itself."""
        return self._rows.column(prop.column)

    def present(self, variable: str) -> pa.BooleanArray:
        """Not asked: a target is always there."""
        raise InternalError(f"a mutation has no variable {variable}")

    def block(self, expr: typed.Exists | typed.CountOf) -> pa.Array:
        """Not asked: the checker refuses blocks here."""
        raise InternalError("a mutation's condition has no blocks")

    def text(self, expr: typed.TextMatch) -> pa.Array:
        """Not asked: the checker refuses searches here."""
        raise InternalError("a mutation's condition has no search")

    def score(self, expr: typed.Score) -> pa.Array:
        """Not asked."""
        raise InternalError("a mutation's condition has no score")


def where_columns(where: typed.Expr) -> Sequence[str]:
    """The columns that a condition reads."""
    return tuple(dict.fromkeys(e.column for e in typed.walk(where) if isinstance(e, typed.Prop)))
