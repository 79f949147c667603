"""Search over the nodes of a snapshot: text tests, and rankings with their scores.

    node table, expression -> [rank] -> rows and scores, in an order without ties

Indexes over texts and vectors are derived from whole columns and kept with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import ParameterError
from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.order import sortable
from omnigraph.query.exec.world import NodeTable, World
from omnigraph.query.search.embedding import Embedder, embed_query
from omnigraph.query.search.fusion import rrf
from omnigraph.query.search.text_index import TextIndex
from omnigraph.query.search.vectors import VectorColumn
from omnigraph.storage.layout import Positions

Scores = npt.NDArray[np.float64]
EDITS_DEFAULT = 2
EDITS_MAX = 8


class Searcher:
    """Text and vector search for one query."""

    def __init__(self, world: World, values: Values, embedder: Embedder | None) -> None:
        self._world = world
        self._values = values
        self._embedder = embedder
        self._vectors: dict[tuple[str, str, str], npt.NDArray[np.float32]] = {}

    def matches(self, expr: typed.TextMatch, table: NodeTable) -> pa.BooleanArray:
        """Which rows of the table pass a text test; a null text passes none."""
        query = self._values.of(expr.query)
        if query is None:
            return pa.array(np.zeros(table.row_count, np.bool_))
        index = self._text_index(table, expr.column)
        if expr.kind == "search":
            rows = index.search(query)
        elif expr.kind == "phrase":
            rows = index.phrase(query)
        else:
            rows = index.fuzzy(query, self._edits(expr))
        return pa.array(index.mask(rows))

    def _edits(self, expr: typed.TextMatch) -> int:
        edits = EDITS_DEFAULT if expr.edits is None else self._values.of(expr.edits)
        if edits is None or not 0 <= edits <= EDITS_MAX:
            raise ParameterError(
                f"fuzzy allows {edits} edits", hint=f"give a number from 0 to {EDITS_MAX}"
            )
        return edits

    def rank(
        self,
        score: typed.Score,
        table: NodeTable,
        rows: Positions | None,
        first: int | None = None,
    ) -> tuple[Positions, Scores]:
        """Rows that the ranking has, among ``rows`` (None: all), and their measure.

        With ``first`` at least the best so many of them, and all that equal the last of these.
        """
        if isinstance(score, typed.Rrf):
            k = self._values.of(score.k)
            if k is None or k <= 0:
                raise ParameterError(f"rrf is asked with k = {k}", hint="k is an integer above 0")
            arms = [self._ordered(arm, table, rows) for arm in score.arms]
            return rrf(arms, k)
        query = self._values.of(score.query)
        if query is None:
            return np.empty(0, np.int64), np.empty(0, np.float64)
        if isinstance(score, typed.Bm25):
            return self._text_index(table, score.column).bm25(query, rows)
        column = self._vector_column(table, score.column)
        found, distances = column.nearest(self._query_vector(score, table, query), rows, first)
        return found, distances.astype(np.float64)

    def _ordered(
        self, arm: typed.Bm25 | typed.Nearest, table: NodeTable, rows: Positions | None
    ) -> Positions:
        """One arm, best first, ties by id."""
        found, scores = self.rank(arm, table, rows)
        measure = -scores if isinstance(arm, typed.Bm25) else scores
        ids = sortable(table.columns.take("id", found), descending=False)
        return found[np.lexsort((ids, measure))]

    def _text_index(self, table: NodeTable, column: str) -> TextIndex:
        return self._world.caches.texts.of(table.columns, column)

    def _vector_column(self, table: NodeTable, column: str) -> VectorColumn:
        source = table.columns.table
        return self._world.caches.kept.make(
            (source.name if source else None, table.type.table_path, column, "#vectors"),
            lambda: VectorColumn.build(table.columns.whole(column).values),
            lambda made: made.nbytes,
        )

    def _query_vector(
        self, score: typed.Nearest, table: NodeTable, query: Any
    ) -> npt.NDArray[np.float32]:
        if not isinstance(query, str):
            return np.asarray(query, np.float32)
        key = (table.type.name, score.column, query)
        if key not in self._vectors:
            embed = table.type.by_name[score.column].embed
            self._vectors[key] = embed_query(
                self._embedder,
                query,
                size=score.size,
                recorded_model=embed.model if embed is not None else None,
                where=f"nearest on {table.type.name}.{score.column}",
            )
        return self._vectors[key]
