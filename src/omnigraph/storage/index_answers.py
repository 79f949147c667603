"""What the indexes of a version say, beside what its columns hold and which files it ever had.

    version -> [claims] -> files that an index says it covers
    version, index -> [wrong_answer] -> what it finds that is not there, or does not find

An index is asked as a query would ask it, and a column is read without any. Of a million values
one that leads to the row of another is found, without asking for each alone: values are numbered,
and those are asked together whose number has a certain bit. Two values differ in some bit, so a row
that is given for the wrong one is missing, or too much, in some answer.
"""

# pyarrow.compute makes its functions at import time, where no type checker sees them.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset

from omnigraph.arrow.texts import text_tests_travel
from omnigraph.errors import CorruptionError, InternalError
from omnigraph.storage.faults import translated
from omnigraph.storage.indexing import BuiltIndex, IndexKind, table_indexes
from omnigraph.storage.layout import Addresses
from omnigraph.storage.tables import Table

ROWS_AT_ONCE = 1 << 18
VALUES_AT_ONCE = 1 << 13
TEXTS_ASKED = 64
"""Texts are asked for one by one, so only some are; an index of other files knows none of them."""
PART_LETTERS_MAX = 200
_MAX_FRAGMENT_ID = 11
"""The field of Lance's manifest that has the highest number a file of the table ever had."""

Files = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A part of an index, and the files of this version that it says it knows."""

    index: str
    column: str
    kind: IndexKind | None
    uuid: str
    files: Mapping[int, Files]
    """By the number of the fragment; without those that are gone."""
    beyond: bool
    """It also claims numbers that no file of this lineage ever had."""


def claims(table: Table) -> tuple[Claim, ...]:
    """What every part of every index of a version claims; from the manifest alone."""
    built = table_indexes(table)
    if not built:
        return ()
    files = {f.id: frozenset(f.files) for f in table.layout.fragments}
    last = highest_fragment(table.dataset)
    return tuple(
        Claim(
            index=index.name,
            column=index.column,
            kind=index.kind,
            uuid=part.uuid,
            files={number: files[number] for number in part.fragments if number in files},
            beyond=max(part.fragments, default=-1) > last,
        )
        for index in built
        for part in index.segments
    )


def wrong_answer(table: Table, index: BuiltIndex) -> str | None:
    """Something that an index answers wrongly; None if it is right, or no query asks its kind."""
    covered = [f.id for f in table.layout.fragments if f.id in index.fragments]
    if not covered or not table.takes_conditions:
        return None
    try:
        if index.kind in (IndexKind.BTREE, IndexKind.BITMAP):
            return _wrong_value(table.dataset, index.column, covered)
        if index.kind is IndexKind.NGRAM:
            return _lost_text(table.dataset, index.column, covered)
    except _NoAnswer as e:
        return f"it does not answer: {e}"
    return None


class _NoAnswer(Exception):
    """Lance noticed itself that something is wrong: an address that is not there, a file."""


def _asked(dataset: LanceDataset, condition: pc.Expression | str) -> Addresses:
    """The rows that a query with this condition is given."""
    try:
        with translated("asking an index", referenced=True):
            answer = dataset.scanner(columns=[], filter=condition, with_row_address=True).to_table()
    except CorruptionError as e:
        raise _NoAnswer(e.message) from e
    return answer["_rowaddr"].to_numpy().astype(np.int64)


def _wrong_value(dataset: LanceDataset, column: str, fragments: list[int]) -> str | None:
    for rows in _pieces(dataset, column, fragments):
        addresses = rows["_rowaddr"].to_numpy().astype(np.int64)
        coded = rows[column].combine_chunks().dictionary_encode()
        # From one on, so that every value has a bit; nulls have none and are asked apart.
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
        for bit in range(len(coded.dictionary).bit_length()):
            numbers = np.arange(1, len(coded.dictionary) + 1)
            asked = coded.dictionary.take(pa.array(np.flatnonzero(numbers >> bit & 1)))
            found = _found(dataset, column, asked, addresses)
            wrong = _difference(rows[column], addresses, found, (codes >> bit & 1).astype(bool))
            if wrong is not None:
                return wrong
    return None


def _pieces(dataset: LanceDataset, column: str, fragments: list[int]) -> Iterator[pa.Table]:
    """A column with the addresses of its rows, read without an index."""
    waiting: list[pa.RecordBatch] = []
    for batch in _batches(dataset, column, fragments):
        waiting.append(batch)
        if sum(b.num_rows for b in waiting) >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _batches(dataset: LanceDataset, column: str, fragments: list[int]) -> Iterator[pa.RecordBatch]:
    with translated(f"reading {column} of {dataset.uri}", referenced=True):
        yield from dataset.scanner(
            columns=[column],
            fragments=[dataset.get_fragment(number) for number in fragments],
            with_row_address=True,
            scan_in_order=True,
        ).to_batches()


def _found(dataset: LanceDataset, column: str, values: pa.Array, among: Addresses) -> Addresses:
    """Of some rows, those that a query for these values is given."""
    found = [np.empty(0, np.int64)]
    for start in range(0, len(values), VALUES_AT_ONCE):
        asked = values.slice(start, VALUES_AT_ONCE)
        found.append(_asked(dataset, pc.field(column).isin(asked)))
    return np.intersect1d(np.concatenate(found), among)


def _difference(
    values: pa.ChunkedArray, addresses: Addresses, found: Addresses, expected: np.ndarray[Any, Any]
) -> str | None:
    wrong = np.flatnonzero(np.isin(addresses, found) != expected)
    if not len(wrong):
        return None
    value = values[int(wrong[0])].as_py()
    if expected[wrong[0]]:
        return f"a row with {value!r} is not found"
    return f"a row with {value!r} is given for another value"


def _lost_text(dataset: LanceDataset, column: str, fragments: list[int]) -> str | None:
    for number in fragments:
        rows = pa.concat_tables(_pieces(dataset, column, [number]))
        step = max(1, rows.num_rows * len(fragments) // TEXTS_ASKED)
        for row in range(0, rows.num_rows, step):
            text = (rows[column][row].as_py() or "")[:PART_LETTERS_MAX]
            found = _asked(dataset, _contains(column, text))
            if text and rows["_rowaddr"][row].as_py() not in found:
                return f"the text {text!r} is not found"
    return None


def _contains(column: str, text: str) -> pc.Expression | str:
    if text_tests_travel():
        return pc.match_substring(pc.field(column), text)
    literal = text.replace("'", "''")
    return f"contains(`{column}`, '{literal}')"


def highest_fragment(dataset: LanceDataset) -> int:
    """The highest number that a file of this lineage ever had; nothing else in Lance has it."""
    content: bytes = dataset._ds.serialized_manifest()  # pyright: ignore[reportPrivateUsage]
    place, found = 0, -1

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = content[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(content):
        key = number()
        match key & 7:
            case 0:
                value = number()
                found = value if key >> 3 == _MAX_FRAGMENT_ID else found
            case 1:
                place += 8
            case 2:
                length = number()
                place += length
            case 5:
                place += 4
            case _:
                raise InternalError(f"a manifest of Lance has a field of the kind {key & 7}")
    return found
