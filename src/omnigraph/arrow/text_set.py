"""A set of texts in which whole columns of texts are looked up.

    known texts -> words, slots -> [text_set] -> which rows of a column are among them

A text is looked at as its length and words of eight bytes, for all rows of a block at once. The
hash of these decides nothing but speed: what a slot names is compared with the row, word by word.

Eight million lookups of 8-byte texts among 800,000 take 0.2 s of one core, for
``pyarrow.compute.is_in`` 0.6 s; it also makes its table for each column anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow import hashes
from omnigraph.arrow.compute import pc
from omnigraph.arrow.hashes import MULTIPLIER, Hashes

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
ABSENT = -1
LENGTH_MAX = 64
"""If a text has more bytes, Arrow looks for them all: words would take more room than it does."""
ROUNDS_MAX = 64
"""Texts that find no slot in so many rounds share their hash with many: Arrow looks for them."""
_FEW_ROWS = 2048
"""So few rows of a block that are still open wait for those of other blocks."""


class TextSet:
    """Texts that others may be among. A null is none of them."""

    def __init__(self, texts: pa.Array | pa.ChunkedArray) -> None:
        chunks = _chunks(texts)
        self._others: pa.Array | None = None
        """What Arrow looks for."""
        if max(map(_longest, chunks), default=0) > LENGTH_MAX:
            self._others, chunks = _joined(chunks), []
        self._words = -(-max(map(_longest, chunks), default=0) // 8)
        self._known = _Texts.known(chunks, self._words)
        count = len(self._known)
        # Four slots or more for each text: then most of them have the first one that they try.
        bits = max(4, (4 * count - 1).bit_length())
        self._slots = np.full(1 << bits, ABSENT, np.int32 if count < 2**31 else np.int64)
        unplaced = self._place(np.arange(count))
        if len(unplaced):
            self._others = _joined(chunks).take(pa.array(unplaced))

    def _place(self, waiting: Rows) -> Rows:
        """Give each text a slot; those that do not get one are left."""
        found = self._known.hashes()
        way = _Ways(slots=self._first_slots(found), steps=self._steps(found))
        for _ in range(ROUNDS_MAX):
            if not len(waiting):
                break
            free = self._slots[way.slots] == ABSENT
            self._slots[way.slots[free]] = waiting[free]
            # Of those that claimed the same slot the last one has it; equal texts need it once.
            winners = self._slots[way.slots].astype(np.int64)
            lost = np.flatnonzero(winners != waiting)
            lost = lost[~self._known.at(waiting[lost]).same(self._known, winners[lost])]
            waiting, way = waiting[lost], way.at(lost).onward(len(self._slots))
        return waiting

    def holds(self, texts: pa.Array | pa.ChunkedArray) -> Mask:
        """Which rows are among the texts."""
        chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
        return np.concatenate([np.empty(0, np.bool_), *map(self._holds, chunks)])

    def _holds(self, texts: pa.Array) -> Mask:
        out, still_open = np.zeros(len(texts), np.bool_), list[_Open]()
        if len(self._known):
            for start in range(0, len(texts), hashes.BLOCK_ROWS):
                block = _Texts.of(texts.slice(start, hashes.BLOCK_ROWS), self._words)
                still_open.append(self._begin(block, start, out))
        if still_open:
            self._probe(_Open.joined(still_open), out, 0)
        if self._others is not None:
            rows = np.flatnonzero(~out)
            asked = texts if len(rows) == len(out) else texts.take(pa.array(rows))
            out[rows] = _among(asked, self._others)
        if texts.null_count:
            out &= texts.is_valid().to_numpy(zero_copy_only=False)
        return out

    def _begin(self, block: _Texts, start: int, out: Mask) -> _Open:
        """Look at the first slot of a block of rows, and on until only a few are open."""
        found = block.hashes()
        slots = self._first_slots(found)
        same, onward = self._look(block, slots)
        out[start : start + len(block)] = same
        way = _Ways(slots=slots[onward], steps=self._steps(found[onward])).onward(len(self._slots))
        return self._probe(
            _Open(rows=start + onward, texts=block.at(onward), way=way), out, _FEW_ROWS
        )

    def _probe(self, rest: _Open, out: Mask, few: int) -> _Open:
        """Go from slot to slot until only a few rows have not found their text or a free slot."""
        for _ in range(ROUNDS_MAX):
            if len(rest.rows) <= few:
                break
            same, onward = self._look(rest.texts, rest.way.slots)
            out[rest.rows] = same
            rest = _Open(
                rows=rest.rows[onward],
                texts=rest.texts.at(onward),
                way=rest.way.at(onward).onward(len(self._slots)),
            )
        return rest

    def _look(self, texts: _Texts, slots: Rows) -> tuple[Mask, Rows]:
        """Which texts are those of their slots, and which of the others have to look further."""
        numbers = self._slots.take(slots, mode="clip").astype(np.int64)
        # A free slot names the last text: if it is that one, it is among them all the same.
        same = texts.same(self._known, numbers)
        others = np.flatnonzero(~same)
        return same, others[numbers[others] != ABSENT]

    def _first_slots(self, found: Hashes) -> Rows:
        bits = len(self._slots).bit_length() - 1
        return ((found * np.uint64(MULTIPLIER)) >> np.uint64(64 - bits)).view(np.int64)

    def _steps(self, found: Hashes) -> Rows:
        # Odd, so that no slot is tried twice.
        return ((found & np.uint64(len(self._slots) - 1)) | np.uint64(1)).view(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ways:
    """Which slot each text tries, and how far it goes from there."""

    slots: Rows
    steps: Rows

    def at(self, rows: Rows) -> _Ways:
        return _Ways(slots=self.slots[rows], steps=self.steps[rows])

    def onward(self, slot_count: int) -> _Ways:
        return _Ways(slots=(self.slots + self.steps) & (slot_count - 1), steps=self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Texts:
    """Texts as lengths and words, counted from their ends: columns of equal length."""

    lengths: npt.NDArray[Any]
    words: tuple[Hashes, ...]
    """So many for every text; beyond the beginning of a text they are zero."""

    @staticmethod
    def of(texts: pa.Array, word_count: int) -> _Texts:
        """The texts of an array. Of longer ones only the last words."""
        bounds = hashes.bounds_of(texts)
        ends, lengths = bounds[1:], np.diff(bounds)
        every = hashes.every_word(texts.buffers()[2])
        words = (hashes.words_before(every, ends, lengths, 8 * n) for n in range(1, word_count + 1))
        return _Texts(lengths=lengths, words=tuple(words))

    @staticmethod
    def known(chunks: Sequence[pa.Array], word_count: int) -> _Texts:
        """The texts of a set, none longer than ``LENGTH_MAX``."""
        parts = [_Texts.of(chunk, word_count) for chunk in chunks]
        return _Texts.joined([replace(p, lengths=p.lengths.astype(np.uint8)) for p in parts])

    @staticmethod
    def joined(parts: Sequence[_Texts]) -> _Texts:
        if not parts:
            return _Texts(lengths=np.empty(0, np.int32), words=())
        lengths = np.concatenate([part.lengths for part in parts])
        columns = zip(*(part.words for part in parts), strict=True)
        return _Texts(lengths=lengths, words=tuple(np.concatenate(column) for column in columns))

    def __len__(self) -> int:
        return len(self.lengths)

    def at(self, rows: Rows) -> _Texts:
        return _Texts(lengths=self.lengths[rows], words=tuple(word[rows] for word in self.words))

    def hashes(self) -> Hashes:
        found = self.lengths.astype(np.uint64)
        for word in self.words:
            hashes.mix(found, word)
        return found

    def same(self, known: _Texts, numbers: Rows) -> Mask:
        """Whether each text is exactly the known one of this number."""
        same = self.lengths == known.lengths.take(numbers, mode="wrap")
        for mine, theirs in zip(self.words, known.words, strict=True):
            same &= mine == theirs.take(numbers, mode="wrap")
        return same


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    """Rows of which it is not known yet whether they are among the texts."""

    rows: Rows
    texts: _Texts
    way: _Ways

    @staticmethod
    def joined(parts: Sequence[_Open]) -> _Open:
        ways = [part.way for part in parts]
        return _Open(
            rows=np.concatenate([part.rows for part in parts]),
            texts=_Texts.joined([part.texts for part in parts]),
            way=_Ways(
                slots=np.concatenate([way.slots for way in ways]),
                steps=np.concatenate([way.steps for way in ways]),
            ),
        )


def _chunks(texts: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    found = [chunk.drop_null() if chunk.null_count else chunk for chunk in chunks]
    return [chunk for chunk in found if len(chunk)]


def _longest(texts: pa.Array) -> int:
    return int(np.diff(hashes.bounds_of(texts)).max(initial=0))


def _joined(chunks: Sequence[pa.Array]) -> pa.Array:
    if len({chunk.type for chunk in chunks}) > 1 or sum(c.nbytes for c in chunks) >= 2**31:
        chunks = [chunk.cast(pa.large_string()) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _among(texts: pa.Array, known: pa.Array) -> Mask:
    if texts.type != known.type:
        texts, known = texts.cast(pa.large_string()), known.cast(pa.large_string())
    return pc.is_in(texts, value_set=known, skip_nulls=True).to_numpy(zero_copy_only=False)
