"""Rows of one type on their way out of a reader: parts, their ids, and the finished table.

    fast | exact | records | tables -> parts -> [rows] -> LoadedRows -> delta

Readers produce parts (a piece of input, one type); here parts become one table per type. Ids of
keyed types are settled per part, because a wrong `id` must be reported with its line; fresh ids are
drawn once at the end, so that they do not depend on how the input was cut. Rules of the schema are
not checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.ids import IdSource
from omnigraph.input.problems import PROBLEMS_MAX, Problem
from omnigraph.rules.table_delta import Lines, Origins
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.identity import canonical_ids, is_keyed
from omnigraph.schema.property_values import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedRows:
    """All rows of one type that a reader found, in input order."""

    type: GraphType
    rows: pa.Table
    """Exactly the columns of ``schema.arrow.table_schema(type)``. ``id`` is filled, except where a
    member of the key is null; a missing required value is null. The validator reports both."""
    origins: Origins
    ids_fresh: bool = False
    """Every id was drawn just now: none can exist already, so no lookup is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of one type from one piece of one source."""

    type: GraphType
    rows: pa.Table
    """In the columns of ``table_schema(type)``; null ids of types without a key get a fresh one."""
    lines: Lines
    source: int = 0

    def placed(self, source: int, lines_before: int) -> Part:
        """The same part, placed in its source instead of in a block of it."""
        lines = np.asarray(self.lines, np.int64) + lines_before
        if len(lines) and bool((np.diff(lines) == 1).all()):
            return replace(self, source=source, lines=range(int(lines[0]), int(lines[-1]) + 1))
        return replace(self, source=source, lines=lines)


def id_is_property(graph_type: GraphType) -> bool:
    """Whether the type declares ``id: String @key``: then `id` is given, never derived."""
    return "id" in graph_type.by_name


def settle_ids(
    graph_type: GraphType, rows: pa.Table, *, mismatches_max: int = PROBLEMS_MAX
) -> tuple[pa.Table, list[tuple[int, str]]]:
    """Put canonical ids in place of given ones where the type has a key.

    Returns the rows, and position and message of the first given ids that contradict the key. A
    null member of the key contradicts nothing: the validator reports it.
    """
    if not is_keyed(graph_type) or id_is_property(graph_type):
        return rows, []
    canonical = pa.chunked_array([canonical_ids(graph_type, rows)], pa.string())
    given = rows.column("id")
    mismatches: list[tuple[int, str]] = []
    if given.null_count < len(given):
        differs = pc.fill_null(pc.not_equal(given, canonical), False).to_numpy()
        mismatches = [
            (
                i,
                f"id {shown(given[i].as_py())} is not the id that the key gives "
                f"({shown(canonical[i].as_py())}); leave it out",
            )
            for i in np.flatnonzero(differs)[:mismatches_max].tolist()
        ]
    return rows.set_column(0, rows.schema.field(0), canonical), mismatches


def in_line_order(parts: Sequence[Part]) -> Part:
    """One part out of several of one type from one block, rows in the order of lines."""
    if len(parts) == 1:
        return parts[0]
    rows = pa.concat_tables([p.rows for p in parts])
    lines = np.concatenate([p.lines for p in parts])
    if np.any(lines[1:] < lines[:-1]):
        order = np.argsort(lines, kind="stable")
        rows, lines = rows.take(pa.array(order)), lines[order]
    return Part(type=parts[0].type, rows=rows, lines=lines, source=parts[0].source)


def by_type(parts: Iterable[Part]) -> dict[str, list[Part]]:
    """Parts by table key, in order of first mention."""
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(part.type.table_key, []).append(part)
    return found


def finish(
    parts: Iterable[Part], source_names: Sequence[str], ids: IdSource
) -> dict[str, LoadedRows]:
    """Parts in input order -> one table per type, in order of first mention."""
    loaded: dict[str, LoadedRows] = {}
    for table_key, same in by_type(parts).items():
        graph_type = same[0].type
        rows = pa.concat_tables([p.rows for p in same])
        ids_fresh = False
        if not is_keyed(graph_type):
            ids_fresh = rows.column("id").null_count == rows.num_rows
            rows = rows.set_column(0, rows.schema.field(0), with_fresh_ids(rows.column("id"), ids))
        loaded[table_key] = LoadedRows(
            type=graph_type,
            rows=rows,
            origins=Origins.of(source_names, ((p.source, p.lines) for p in same)),
            ids_fresh=ids_fresh,
        )
    return loaded


DRAWN_MAX = 50_000_000


def with_fresh_ids(given: pa.ChunkedArray, ids: IdSource) -> pa.ChunkedArray:
    """The given ids with every null replaced by a fresh one; ascending in row order, as far as
    they can be drawn at once: an array of texts has 2 GB at most."""
    missing = given.null_count
    if not missing:
        return given
    at_once = missing <= DRAWN_MAX
    fresh, used, chunks = ids.ulids(missing if at_once else 0), 0, list[pa.Array]()
    for chunk in given.chunks:
        drawn = fresh.slice(used, chunk.null_count) if at_once else ids.ulids(chunk.null_count)
        used += chunk.null_count
        if chunk.null_count == len(chunk):
            chunks.append(drawn)
        elif chunk.null_count:
            chunks.append(pc.replace_with_mask(chunk, chunk.is_null(), drawn))
        else:
            chunks.append(chunk)
    return pa.chunked_array(chunks, pa.string())


# -- pieces ----------------------------------------------------------------------------------------
# What a reader makes of a block of input: rows by type, and what is wrong.


TEXT_CHARACTERS_MAX = 1 << 20
"""More of a refused line is not kept."""
TextOf = Callable[[int], bytes | None]


def no_text(_line: int) -> bytes | None:
    """For sources that have no text."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPiece:
    """Rows and problems of one piece of a unit; lines count from its start."""

    parts: Sequence[Part]
    problems: Sequence[Problem]
    line_count: int
    text_of: TextOf = no_text
    """A line as it stands in the source."""
    checksum: int = 0
    span: tuple[int, int] | None = None
    """Which bytes of the file this is, where the cutting of a file has to be checked."""


def shown_text(raw: bytes | None) -> str | None:
    """A refused line as it is reported: readable, and cut if it is very long."""
    if raw is None:
        return None
    text = raw[: 4 * TEXT_CHARACTERS_MAX].decode(errors="replace")
    return text if len(text) <= TEXT_CHARACTERS_MAX else text[:TEXT_CHARACTERS_MAX] + "…"
