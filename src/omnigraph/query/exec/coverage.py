"""Which searches of a query run over rows that no built index covers.

    typed read -> [what it searches] + table version -> [notices] -> result, explain

A search is exact with and without an index (ADR 0010), so this is never a matter of the answer. It
is said all the same: a declared index that is not there should not be a surprise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from omnigraph.query import typed
from omnigraph.query.describe import patterns
from omnigraph.query.exec.world import NodeTable, World
from omnigraph.results import IndexNotice
from omnigraph.schema.catalog import NodeType
from omnigraph.storage.indexing import LAG_MAX, VECTORS_MIN, IndexKind

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
