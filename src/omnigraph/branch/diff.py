"""The difference between two snapshots: how much, and then every entity with both its images.

    two snapshots -> types by number -> tables whose pins differ -> deltas -> [diff]

Which entities differ is found first, for all types at once, and kept as ids and positions. Images
are read piece by piece as the caller goes through them, so a diff of any size fits into memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import cached_property
from threading import Lock
from typing import Any

import pyarrow as pa

from omnigraph.branch.changes import ARROW_SCHEMA, ChangePiece, EntityChange, pieces
from omnigraph.branch.delta import Op, RowDelta, table_delta
from omnigraph.branch.pace import both
from omnigraph.branch.types import ComparedTypes, matched_types
from omnigraph.errors import NotFoundError, UsageError
from omnigraph.manifest.kept import ReportingReclaimed
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot, TableChange, TablePin
from omnigraph.schema.catalog import Catalog, type_named
from omnigraph.tabular import Tabular

KINDS = ("node", "edge")
OPS = tuple(op.word for op in Op)
THREADS_MAX = 8


class Diff(Tabular):
    """What changed from ``before`` to ``after``. Both are fixed, so every answer is too.

    ``kinds`` (``node``, ``edge``), ``types`` (names) and ``ops`` (``insert``, ``update``,
    ``delete``) choose some of the changes; none of them means all. Only the tables of chosen types
    are opened.
    """

    def __init__(self, repository: Repository, before: Snapshot, after: Snapshot) -> None:
        self.before = before
        self.after = after
        self._repository = repository
        self._deltas: dict[tuple[int, int], RowDelta] = {}
        self._lock = Lock()

    @cached_property
    def types(self) -> tuple[ComparedTypes, ...]:
        """The types whose tables are not the same: nodes before edges, then by number."""
        return tuple(
            pair
            for pair in matched_types(*self._catalogs)
            if not self._is_untouched(pair, *self.pins(pair))
        )

    @property
    def counts(self) -> Mapping[str, TableChange]:
        """How many entities changed, by table key; types without a change are left out."""
        return self.count()

    def count(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> Mapping[str, TableChange]:
        """As ``counts``, of some of the changes."""
        wanted = _chosen_ops(ops)
        found: dict[str, TableChange] = {}
        for delta in self.deltas(kinds, types):
            # A type that was dropped and declared anew is two types of one name.
            counts, other = delta.counts, found.get(delta.types.table_key, TableChange())
            left = TableChange(
                inserted=other.inserted + (counts.inserted if Op.INSERT in wanted else 0),
                updated=other.updated + (counts.updated if Op.UPDATE in wanted else 0),
                deleted=other.deleted + (counts.deleted if Op.DELETE in wanted else 0),
            )
            if left.total:
                found[delta.types.table_key] = left
        return found

    def changes(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> Iterator[EntityChange]:
        """The changed entities: nodes before edges, types by number, then by id."""
        for piece in self.pieces(kinds, types, ops):
            yield from piece.changes()

    def lines(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> Iterator[pa.LargeStringArray]:
        """The same as JSON lines, many at a time."""
        return (piece.lines() for piece in self.pieces(kinds, types, ops))

    def batches(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The same as Arrow, with images as JSON: types differ in their columns."""
        return (piece.batch() for piece in self.pieces(kinds, types, ops))

    def to_arrow(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> pa.Table:
        """All ``batches`` in one table; this one is in memory as a whole."""
        return pa.Table.from_batches(self.batches(kinds, types, ops), schema=ARROW_SCHEMA)

    def _head(self, rows_max: int) -> tuple[pa.Table, int]:
        found: list[pa.RecordBatch] = []
        left = rows_max
        for batch in self.batches():
            found.append(batch.slice(0, left))
            left -= found[-1].num_rows
            if left <= 0:
                break
        total = sum(change.total for change in self.counts.values())
        return pa.Table.from_batches(found, schema=ARROW_SCHEMA), total

    def _stream(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(ARROW_SCHEMA, self.batches())

    def _title(self) -> str:
        return f"Changes from {self.before.head.id} to {self.after.head.id}"

    def to_dict(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Which states were compared, and how many entities changed."""
        return {
            "from": _state(self.before),
            "to": _state(self.after),
            "counts": {key: asdict(c) for key, c in self.count(kinds, types, ops).items()},
        }

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __iter__(self) -> Iterator[EntityChange]:
        return self.changes()

    def pieces(
        self, kinds: Sequence[str] = (), types: Sequence[str] = (), ops: Sequence[str] = ()
    ) -> Iterator[ChangePiece]:
        """The changes with their images, a few megabytes at a time."""
        wanted = _chosen_ops(ops)
        for delta in self.deltas(kinds, types):
            with self._reading():
                yield from pieces(
                    delta if len(wanted) == len(Op) else delta.select(delta.rows(*wanted))
                )

    def deltas(self, kinds: Sequence[str] = (), types: Sequence[str] = ()) -> list[RowDelta]:
        """The deltas of some types, each made once."""
        with self._reading():
            chosen = self._chosen_types(kinds, types)
            if len(chosen) < 2:
                return [self.delta(pair) for pair in chosen]
            with ThreadPoolExecutor(min(len(chosen), THREADS_MAX), "omnigraph-diff") as pool:
                return list(pool.map(self.delta, chosen))

    def delta(self, pair: ComparedTypes) -> RowDelta:
        """What changed in one type."""
        with self._lock:
            known = self._deltas.get(pair.newest.stable_id)
        if known is None:
            old, new = self.pins(pair)
            table = self._repository.table_if
            before, after = both(lambda: table(old), lambda: table(new))
            known = table_delta(before, after, pair)
            with self._lock:
                self._deltas[pair.newest.stable_id] = known
        return known

    def _reading(self) -> AbstractContextManager[None]:
        return ReportingReclaimed(self._repository, self.before, self.after)

    def pins(self, pair: ComparedTypes) -> tuple[TablePin | None, TablePin | None]:
        """The versions of a type's table on both sides."""
        return (
            self.before.pins.get(pair.before.table_key) if pair.before is not None else None,
            self.after.pins.get(pair.after.table_key) if pair.after is not None else None,
        )

    @cached_property
    def _catalogs(self) -> tuple[Catalog, Catalog]:
        before, after = (
            self._repository.schema(s.schema_hash).catalog for s in (self.before, self.after)
        )
        return before, after

    @staticmethod
    def _is_untouched(pair: ComparedTypes, before: TablePin | None, after: TablePin | None) -> bool:
        if before is None or after is None:
            return before is after
        return before.name == after.name and pair.comparable

    def _chosen_types(self, kinds: Sequence[str], types: Sequence[str]) -> list[ComparedTypes]:
        kinds = checked_words("kind", kinds, KINDS)
        numbers = {n for name in checked_words("type", types) for n in self._numbers(name)}
        return [
            pair
            for pair in self.types
            if (not kinds or pair.kind in kinds) and (not types or pair.newest.id in numbers)
        ]

    def _numbers(self, name: str) -> set[int]:
        """A type by its name on either side: it may have been renamed, added or dropped."""
        found: set[int] = set()
        missing: NotFoundError | None = None
        for catalog in self._catalogs:
            try:
                found.add(type_named(catalog, name).id)
            except NotFoundError as error:
                missing = error
        if not found and missing is not None:
            raise missing
        return found


def _chosen_ops(ops: Sequence[str]) -> tuple[Op, ...]:
    words = checked_words("op", ops, OPS)
    return tuple(op for op in Op if not words or op.word in words)


def checked_words(what: str, given: object, known: Sequence[str] | None = None) -> tuple[str, ...]:
    """Each word of a filter once; in the order of the known ones, if only these are allowed."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError("kinds, types and ops are lists of names", hint=f'say ["{given}"]')
    words: list[object] = list(given)
    for word in words:
        if known is not None and word not in known:
            raise UsageError(f"not a {what}: {word!r}", hint=f"it is one of {', '.join(known)}")
        if not isinstance(word, str):
            raise UsageError(f"a {what} is named by a text, not by {word!r}")
    found = {str(word): None for word in words}
    return tuple(found) if known is None else tuple(k for k in known if k in found)


def _state(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "branch": snapshot.branch,
        "graph_manifest_version": snapshot.version,
        "graph_commit_id": snapshot.head.id,
        "created_at": snapshot.head.created_at_us,
    }
