"""The pinned snapshot of a write, as executors read it.

    WriteTxn -> [committed] -> scans of its tables

Every read is noted in the transaction's read set, as local reads are: after a lost race it decides
whether the checks have to be made again.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.spark.scan import Scan
from omnigraph.spark.tables import PinnedGraph
from omnigraph.write.txn import WriteTxn


class PinnedState:
    """Implements ``check.subject.Committed``."""

    def __init__(self, txn: WriteTxn) -> None:
        self._txn = txn
        self._pinned = PinnedGraph.of(txn.repository, txn.snapshot)

    def row_count(self, table_key: str) -> int:
        """Rows in the table, 0 when it does not exist yet."""
        return self._txn.row_count(table_key)

    def scan(self, table_key: str, columns: Sequence[str]) -> Scan:
        """Columns of a table, for tasks that read for themselves."""
        return self._scan(table_key, columns)

    def places(self, table_key: str) -> Scan:
        """The ids of a table, with the place and the identity of each row."""
        return self._scan(table_key, ("id",), with_address=True)

    def _scan(self, table_key: str, columns: Sequence[str], *, with_address: bool = False) -> Scan:
        self._txn.consulted.add(table_key)
        graph_type = self._txn.schema.catalog.table(table_key)
        return Scan(
            table=self._pinned.table(graph_type), columns=tuple(columns), with_address=with_address
        )
