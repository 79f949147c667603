"""Indexes of a table: which there are, how far they reach, and how they are built unseen.

    wanted indexes -> [what is missing or lags] -> segments over some fragments -> staged version

Two families, by what Lance keeps in them. A BTREE knows rows by *address*: a row that is changed
gets another one, so a segment never speaks for rows that have moved, and what came later is covered
by one more segment (small ones are joined with others of their size). All other kinds know rows by
*identity*, which a changed row keeps: a second segment over the file that it moved to would let
the first one answer with the old value. So those are one segment, built anew as a whole when much
lies outside it; until then Lance scans what it does not cover.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lance import LanceDataset, LanceOperation
from lance.dataset import Index

from omnigraph.storage.changes import Rework
from omnigraph.storage.faults import translated
from omnigraph.storage.namespace import StagingNamespace
from omnigraph.storage.tables import Table

GROWTH = 2
"""A segment is joined with later ones that have at least one part in so many of its rows."""
LAG_MAX = 0.25
"""An index by identity is built anew when it misses more than this part of the rows."""
VECTORS_MIN = 256
"""Fewer vectors cannot train an index; an exact search over them takes no time."""
PARTS_ROWS_MIN = 100_000
"""From here on parts of texts are indexed and looked up. To build that index takes seconds however
few texts there are, and on S3 fewer are read whole as fast as it answers (ADR 0014)."""
PARTITION_ROWS = 4096
COMPRESSED_ROWS_MIN = 1 << 18
"""From here on vectors are kept as product codes."""
CODE_DIMENSIONS = 16
_PREFIX = "omnigraph"


class IndexKind(StrEnum):
    """What an index can answer."""

    BTREE = "btree"
    """Single values and ranges."""
    BITMAP = "bitmap"
    """One of few values."""
    TEXT = "text"
    """Words of a text."""
    NGRAM = "ngram"
    """Parts of a text, by its threes of letters; what it finds is compared with the text itself."""
    VECTOR = "vector"
    """Neighbours of a vector."""

    @property
    def by_address(self) -> bool:
        """Whether it knows rows by address, not by identity."""
        return self is IndexKind.BTREE


_LANCE_KINDS = {
    "BTREE": IndexKind.BTREE,
    "BITMAP": IndexKind.BITMAP,
    "INVERTED": IndexKind.TEXT,
    "NGRAM": IndexKind.NGRAM,
    "IVF_FLAT": IndexKind.VECTOR,
    "IVF_PQ": IndexKind.VECTOR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSpec:
    """An index that is wanted."""

    column: str
    kind: IndexKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One part of an index: files that were built together."""

    uuid: str
    fragments: frozenset[int]
    """As Lance has it: also fragments that are gone."""
    entry: Index
    """How Lance names it, to take it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIndex:
    """An index that is there."""

    name: str
    column: str
    kind: IndexKind | None
    """None for kinds that only others build."""
    segments: tuple[Segment, ...]
    byte_count: int

    @property
    def is_ours(self) -> bool:
        """Whether this module named it, and may take it away."""
        return self.name.startswith(f"{_PREFIX}_")

    @property
    def fragments(self) -> frozenset[int]:
        """Fragments that it covers."""
        return frozenset[int]().union(*(s.fragments for s in self.segments))

    def serves(self, spec: IndexSpec) -> bool:
        return (self.column, self.kind) == (spec.column, spec.kind)


@dataclass(frozen=True, kw_only=True)
class DropIndexes(Rework):
    """Take indexes away; their files stay for the versions that have them."""

    names: frozenset[str]

    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """One commit for all of them."""
        found = [index for index in indexes_of(current) if index.name in self.names]
        gone = [segment.entry for index in found for segment in index.segments]
        return _replace(current, [], gone, space)


@dataclass(frozen=True, kw_only=True)
class BuildIndexes(Rework):
    """Build what is missing, and cover what came later where that is safe."""

    specs: tuple[IndexSpec, ...]

    def commit(self, current: LanceDataset, space: StagingNamespace) -> LanceDataset:
        """One commit for all of them."""
        there = indexes_of(current)
        rows = {int(f.fragment_id): int(f.count_rows()) for f in current.get_fragments()}
        new: list[Index] = []
        gone: list[Index] = []
        for spec in self.specs:
            built = next((index for index in there if index.serves(spec)), None)
            if built is None:
                new += _build(current, spec, sorted(rows), None)
            elif spec.kind.by_address:
                fragments, replaced = _lagging(built, rows)
                new += _build(current, spec, fragments, built.name)
                gone += [segment.entry for segment in replaced]
        return _replace(current, new, gone, space)


def indexes_of(dataset: LanceDataset) -> tuple[BuiltIndex, ...]:
    """The indexes of a version; from its manifest."""
    found: list[BuiltIndex] = []
    for index in dataset.describe_indices():
        if len(index.field_names) != 1:
            continue
        segments = [
            Segment(
                uuid=str(part.uuid),
                fragments=frozenset(part.fragment_ids),
                entry=Index(
                    uuid=str(part.uuid),
                    name=index.name,
                    fields=list(index.fields),
                    dataset_version=part.dataset_version_at_last_update,
                    fragment_ids=part.fragment_ids,
                    index_version=part.index_version,
                ),
            )
            for part in index.segments
        ]
        found.append(
            BuiltIndex(
                name=index.name,
                column=index.field_names[0],
                kind=_LANCE_KINDS.get(index.index_type.upper()),
                segments=tuple(segments),
                byte_count=index.total_size_bytes or 0,
            )
        )
    return tuple(found)


def table_indexes(table: Table) -> tuple[BuiltIndex, ...]:
    """The indexes of a table."""
    with translated(f"reading indexes of {table.name.path}", referenced=True):
        return indexes_of(table.dataset)


def vector_count(table: Table, column: str) -> int:
    """Rows that have a vector."""
    with translated(f"counting vectors of {table.name.path}", referenced=True):
        if not table.takes_conditions:
            parts = table.columns((column,)).column(0)
            return len(parts) - parts.null_count
        return int(table.dataset.count_rows(filter=f"`{column}` is not null"))


def _lagging(index: BuiltIndex, rows: Mapping[int, int]) -> tuple[list[int], list[Segment]]:
    """Fragments to cover with one new segment, and the segments that it replaces."""
    covered = index.fragments
    missing = {f for f in rows if f not in covered}
    size = sum(rows[f] for f in missing)
    replaced: list[Segment] = []
    live = {s.uuid: sum(rows.get(f, 0) for f in s.fragments) for s in index.segments}
    if not missing:
        return [], []
    for segment in sorted(index.segments, key=lambda s: live[s.uuid]):
        if live[segment.uuid] > GROWTH * size:
            break
        replaced.append(segment)
        missing |= {f for f in segment.fragments if f in rows}
        size += live[segment.uuid]
    return sorted(missing), replaced


def _build(
    dataset: LanceDataset, spec: IndexSpec, fragments: Sequence[int], name: str | None
) -> list[Index]:
    """A segment over some fragments, in no version yet; no segment over none."""
    if not fragments:
        return []
    field = next(f for f in dataset.lance_schema.fields() if f.name() == spec.column)
    # By number: a column may be renamed, and another one may then take its name.
    name = name or f"{_PREFIX}_{spec.kind}_{field.id()}"
    lance_kind, options = _recipe(dataset, spec)
    # Lance refuses a name that is taken, also for one more segment of that very index.
    built = dataset.create_index_uncommitted(
        spec.column,
        lance_kind,
        name=f"new_{name}",
        fragment_ids=list(fragments),
        **options,
    )
    if spec.kind is IndexKind.TEXT:
        # Without this step a text index is committed and then every search in it fails.
        built = dataset.merge_existing_index_segments([built])
    return [dataclasses.replace(built, name=name)]


def _recipe(dataset: LanceDataset, spec: IndexSpec) -> tuple[str, dict[str, Any]]:
    if spec.kind is IndexKind.TEXT:
        return "INVERTED", {}
    if spec.kind is not IndexKind.VECTOR:
        return spec.kind.upper(), {}
    rows = dataset.count_rows()
    size: int = dataset.schema.field(spec.column).type.list_size
    options: dict[str, Any] = {"num_partitions": max(1, rows // PARTITION_ROWS)}
    if rows < COMPRESSED_ROWS_MIN or size % CODE_DIMENSIONS:
        return "IVF_FLAT", options
    return "IVF_PQ", {**options, "num_sub_vectors": size // CODE_DIMENSIONS}


def _replace(
    current: LanceDataset, new: Sequence[Index], gone: Sequence[Index], space: StagingNamespace
) -> LanceDataset:
    if not new and not gone:
        return current
    # The staging write knows from now on that these are its own (``storage/namespace.py``).
    for segment in new:
        space.note_index(str(segment.uuid))
    return space.commit(current, LanceOperation.CreateIndex(list(new), list(gone)))
