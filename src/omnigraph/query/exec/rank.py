"""Search over the nodes of a snapshot: text tests, and rankings with their scores.

    node table, expression -> [rank] -> rows and scores, in an order without ties

Indexes over texts and vectors are derived from whole columns and kept with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import ParameterError
from omnigraph.query import typed
from omnigraph.query.describe import patterns
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.order import sortable
from omnigraph.query.exec.world import NodeTable, World
from omnigraph.query.search.embedding import Embedder, embed_query
from omnigraph.query.search.text_index import TextIndex
from omnigraph.query.search.vectors import VectorColumn
from omnigraph.results import IndexNotice
from omnigraph.schema.catalog import NodeType
from omnigraph.storage.indexing import LAG_MAX, VECTORS_MIN, IndexKind
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


# -- coverage --------------------------------------------------------------------------------------
# Which searches of a query run over rows that no built index covers.
#
#     typed read -> [what it searches] + table version -> [notices] -> result, explain
#
# A search is exact with and without an index (ADR 0010), so this is never a matter of the answer.
# It is said all the same: a declared index that is not there should not be a surprise.


NOTED_ROWS = {IndexKind.TEXT: 10_000, IndexKind.VECTOR: 100_000}
"""From so many rows on a result says it: where the first search of a handle takes about 0.1 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedText:
    """A property that a query searches."""

    type_name: str
    column: str
    kind: IndexKind


def searched(read: typed.Read) -> tuple[SearchedText, ...]:
    """What a read searches, each once, in the order of its text."""
    return tuple(dict.fromkeys(_searched(read)))


def _searched(read: typed.Read) -> Iterator[SearchedText]:
    blocks = tuple(patterns(read))
    types = {node.name: node.type_name for block in blocks for node in block.nodes}
    exprs = [condition for block in blocks for condition in block.filters]
    exprs += [output.value for output in read.outputs]
    exprs += [key.value for key in read.order]
    for part in (part for expr in exprs for part in typed.walk(expr)):
        match part:
            case typed.TextMatch(variable=v, column=column) | typed.Bm25(variable=v, column=column):
                yield SearchedText(type_name=types[v], column=column, kind=IndexKind.TEXT)
            case typed.Nearest(variable=v, column=column):
                yield SearchedText(type_name=types[v], column=column, kind=IndexKind.VECTOR)
            case _:
                pass


def index_notices(
    what: Iterable[SearchedText], world: World, *, even_small: bool
) -> tuple[IndexNotice, ...]:
    """What is not covered. Without ``even_small`` only where it is so much that it matters."""
    found: list[IndexNotice] = []
    for search in what:
        table = world.node(search.type_name)
        least = 1 if even_small else NOTED_ROWS[search.kind]
        if table.row_count < least or not _is_wanted(table.type, search.column):
            continue
        rows = table.rows_outside(search.column, search.kind)
        if rows >= least:
            notice = _notice(table, search, rows)
            if even_small or notice.next_step is not None:
                found.append(notice)
    return tuple(found)


def _is_wanted(node: NodeType, column: str) -> bool:
    """Whether the schema asks for the index. Of a key it is one that finds single values."""
    return column not in node.key and any(column in group for group in node.indexes)


def _notice(table: NodeTable, search: SearchedText, rows: int) -> IndexNotice:
    none_yet = rows == table.row_count
    # Less than that optimize leaves as it is.
    step = "optimize" if none_yet or rows > LAG_MAX * table.row_count else "index build"
    pending = none_yet and search.kind is IndexKind.VECTOR and _too_few(table, search.column)
    return IndexNotice(
        type_key=table.type.table_key,
        property_name=search.column,
        kind=search.kind,
        rows=table.row_count,
        rows_uncovered=rows,
        next_step=None if pending else f"omnigraph {step}",
    )


def _too_few(table: NodeTable, column: str) -> bool:
    """Whether there are too few vectors for an index, as far as that is known without reading."""
    known = table.columns.known(column)
    missing = known.values.null_count if known is not None else 0
    return table.row_count - missing < VECTORS_MIN


# -- fusion ----------------------------------------------------------------------------------------
# Reciprocal rank fusion: one ranking out of several.
#
#     rows of BM25, rows of nearest, each best first ─▶ [rrf] ─▶ rows and fused scores
#
# Only ranks count, never scores, so a ranking must be a total order before it comes here: the
# caller has sorted each arm by its score and broken ties by id.


Rows = npt.NDArray[np.int64]


def rrf(arms: Sequence[npt.NDArray[np.integer]], k: int) -> tuple[Rows, Scores]:
    """All rows of the arms, ascending, and their scores; more is better.

    An arm holds distinct rows, best first. A row gets `1 / (k + rank)` from each arm, where ranks
    start at 1, and nothing from an arm that does not have it; arms are added up in their order.
    """
    rows = np.unique(np.concatenate([np.empty(0, np.int64), *arms])).astype(np.int64)
    scores = np.zeros(len(rows), np.float64)
    for arm in arms:
        scores[np.searchsorted(rows, arm)] += 1.0 / (k + np.arange(1.0, len(arm) + 1))
    return rows, scores
