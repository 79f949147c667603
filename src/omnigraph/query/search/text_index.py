"""Full-text index of one text column: which row has which word, how often and where.

    text column ─▶ analyzer ─▶ [TextIndex] ─▶ rows of search, phrase, fuzzy; scores of bm25

An index is a frozen bundle of arrays. Words have numbers; each has two lists, sorted by row:

    postings     word ─▶ row, count         which rows have it, how often
    positions    word ─▶ place              where it stands in the stream of all words

The stream has all words of all rows in order and one gap behind every row, so two words are
neighbours in one row exactly if their places differ by one: a phrase is a chain of such places.

Row numbers are places in the column. A null row has no words and is no document. Everything that is
asked with a text that has no words is answered with no rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.query.search.analyzer import Analysed, analyse, tokens

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]

K1 = 1.2
B = 0.75

# A set of rows that holds more than one row in so many is handled as a mask over all rows.
_DENSE = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lists:
    """A list of numbers per word: word ``w`` has ``values[starts[w]:starts[w + 1]]``."""

    starts: npt.NDArray[np.int64]
    values: npt.NDArray[np.int32] | npt.NDArray[np.int64]

    def of(self, word: int) -> npt.NDArray[np.int32] | npt.NDArray[np.int64]:
        return self.values[self.starts[word] : self.starts[word + 1]]

    def followed_by(self, other: Lists) -> Lists:
        """Each list followed by the other's; the other may know more words."""
        starts = np.full(len(other.starts), self.starts[-1])
        starts[: len(self.starts)] = self.starts
        own, more = np.diff(starts), np.diff(other.starts)
        kind = np.result_type(self.values, other.values)
        values = np.empty(len(self.values) + len(other.values), kind)
        values[np.arange(len(self.values)) + np.repeat(other.starts[:-1], own)] = self.values
        values[np.arange(len(other.values)) + np.repeat(starts[1:], more)] = other.values
        return Lists(starts=starts + other.starts, values=values)


@dataclass(frozen=True, kw_only=True, eq=False)
class TextIndex:
    """See the module. Build one with ``TextIndex.build``."""

    terms: dict[str, int]
    """Number of each word."""
    rows: Lists
    """Rows that have the word, ascending."""
    counts: Lists
    """How often each of these rows has it."""
    positions: Lists
    """Places of the word in the stream, ascending."""
    lengths: npt.NDArray[np.int32]
    """How many words each row has."""
    documents: int
    """Rows that are not null."""

    # ------------------------------------------------------------ making

    @classmethod
    def build(cls, column: pa.ChunkedArray | pa.Array) -> TextIndex:
        """Index every row of a column."""
        found = analyse(column)
        terms = {term: number for number, term in enumerate(found.terms)}
        rows, counts, positions = _lists(found, found.words, len(terms), row=0, place=0)
        return cls(
            terms=terms,
            rows=rows,
            counts=counts,
            positions=positions,
            lengths=found.lengths,
            documents=found.documents,
        )

    def extended(self, more: pa.ChunkedArray | pa.Array) -> TextIndex:
        """The index of this column with more rows at its end; only those are analysed."""
        found = analyse(more)
        terms = dict(self.terms)
        numbers = [terms.setdefault(term, len(terms)) for term in found.terms]
        words = np.asarray(numbers, np.int32)[found.words]
        rows, counts, positions = _lists(
            found,
            words,
            len(terms),
            row=len(self.lengths),
            place=int(self.lengths.sum(dtype=np.int64)) + len(self.lengths),
        )
        return TextIndex(
            terms=terms,
            rows=self.rows.followed_by(rows),
            counts=self.counts.followed_by(counts),
            positions=self.positions.followed_by(positions),
            lengths=np.concatenate([self.lengths, found.lengths]),
            documents=self.documents + found.documents,
        )

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about: arrays, and words at the price of a short Python string."""
        lists = (self.rows, self.counts, self.positions)
        arrays = sum(part.values.nbytes + part.starts.nbytes for part in lists)
        return arrays + self.lengths.nbytes + 160 * len(self.terms)

    # ------------------------------------------------------------ tests

    def search(self, query: str) -> Rows:
        """Rows that have a word of the query, ascending."""
        return self._union(self._known(query))

    def fuzzy(self, query: str, edits: int) -> Rows:
        """Rows that have a word within ``edits`` edits of a word of the query, ascending."""
        near = [self._spelling.near(word, edits) for word in dict.fromkeys(tokens(query))]
        return self._union(np.unique(np.concatenate(near)).tolist()) if near else _none()

    def phrase(self, query: str) -> Rows:
        """Rows that have the words of the query next to each other and in order, ascending."""
        words = [self.terms.get(token) for token in tokens(query)]
        if not words or None in words:
            return _none()
        places = [
            (self.positions.of(word), at) for at, word in enumerate(words) if word is not None
        ]
        places.sort(key=lambda p: len(p[0]))  # The rarest word leaves the fewest places to try.
        rarest, at = places[0]
        heads = rarest.astype(np.int64) - at
        for of_word, at in places[1:]:
            heads = heads[_contained(heads + at, of_word)]
        found = np.searchsorted(self._row_places, heads, side="right") - 1
        return _distinct(found)

    def mask(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """The same rows as one Boolean per row of the column."""
        mask = np.zeros(len(self.lengths), np.bool_)
        mask[rows] = True
        return mask

    # ------------------------------------------------------------ scores

    def bm25(self, query: str, rows: npt.NDArray[np.integer] | None = None) -> tuple[Rows, Scores]:
        """Rows that have a word of the query, ascending, and their scores; more is better.

        The score of a row is the sum, over the distinct words of the query in their order, of

            ln(1 + (N - n + 0.5) / (n + 0.5)) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * dl / avgdl))

        with N documents, n of which have the word, tf times in this one of dl words. All of this is
        counted over the whole column, also if ``rows`` restricts the answer to some candidates.
        """
        words = self._known(query)
        candidates = None if rows is None else _candidates(rows)
        matching = sum(len(self.rows.of(word)) for word in words)
        everything = len(self.lengths)
        # Scores are summed in slots: one per candidate, per match or per row, whatever is fewest.
        if candidates is not None and len(candidates) * _DENSE <= everything:
            slots = candidates
        elif matching * _DENSE <= everything:
            slots = self._union(words)
        else:
            slots = None
        scores = np.zeros(everything if slots is None else len(slots), np.float64)
        for word in words:
            self._add_scores(word, slots, scores)
        if slots is None:
            slots = np.arange(everything) if candidates is None else candidates
            scores = scores if candidates is None else scores[candidates]
        elif candidates is not None and slots is not candidates:
            keep = _contained(slots, candidates)
            slots, scores = slots[keep], scores[keep]
        hit = np.flatnonzero(scores)  # Every match adds something: the logarithm is positive.
        return slots[hit], scores[hit]

    def _add_scores(self, word: int, slots: Rows | None, scores: Scores) -> None:
        """Add what one word gives to each slot; ``slots`` are row numbers, None is all rows."""
        rows, counts = self.rows.of(word), self.counts.of(word)
        having = len(rows)
        at: npt.NDArray[np.integer] = rows
        if slots is not None:
            if len(slots) < having:
                found = np.searchsorted(rows, slots)
                hit = rows[np.minimum(found, having - 1)] == slots
                at, found = np.flatnonzero(hit), found[hit]
                rows, counts = rows[found], counts[found]
            else:
                at = np.searchsorted(slots, rows)
                hit = slots[np.minimum(at, len(slots) - 1)] == rows
                at, rows, counts = at[hit], rows[hit], counts[hit]
        rarity = math.log(1 + (self.documents - having + 0.5) / (having + 0.5))
        scores[at] += rarity * counts * (K1 + 1) / (counts + self._length_weights[rows])

    # ------------------------------------------------------------ inner parts

    def _known(self, query: str) -> list[int]:
        """Numbers of the distinct words of the query that some row has, in the query's order."""
        distinct = dict.fromkeys(tokens(query))
        return [self.terms[word] for word in distinct if word in self.terms]

    def _union(self, words: list[int]) -> Rows:
        """Rows that have one of the words, ascending."""
        lists = [self.rows.of(word) for word in words]
        if len(lists) == 1:
            return lists[0].astype(np.int64)
        if sum(map(len, lists)) * _DENSE <= len(self.lengths):
            return np.unique(np.concatenate([_none(), *lists])).astype(np.int64)
        mask = np.zeros(len(self.lengths), np.bool_)
        for rows in lists:
            mask[rows] = True
        return np.flatnonzero(mask)

    @cached_property
    def _length_weights(self) -> Scores:
        """What the length of each row contributes to the denominator of its score."""
        average = int(self.lengths.sum(dtype=np.int64)) / max(self.documents, 1)
        lengths = self.lengths.astype(np.float64)
        return K1 * (1 - B + B * lengths / average) if average else lengths

    @cached_property
    def _row_places(self) -> npt.NDArray[np.int64]:
        """Where each row begins in the stream."""
        return _row_places(self.lengths)

    @cached_property
    def _spelling(self) -> Spelling:
        return Spelling.of(list(self.terms))


# ---------------------------------------------------------------- making lists


def _lists(
    found: Analysed, words: npt.NDArray[np.int32], count: int, *, row: int, place: int
) -> tuple[Lists, Lists, Lists]:
    """Rows, counts and positions per word; rows and places of the stream start as given."""
    narrow = np.int32 if place + len(words) + len(found.lengths) < 2**31 else np.int64
    row_of = np.repeat(np.arange(len(found.lengths), dtype=np.int32), found.lengths)
    order = _stable_order(words, count)
    starts = np.concatenate([[0], np.cumsum(np.bincount(words, minlength=count))])
    rows = row_of[order]
    # Behind each row there is a gap in the stream, hence the row number in the place.
    places = order.astype(narrow) + rows
    places += narrow(place)
    new = np.ones(len(rows), np.bool_)
    new[1:] = rows[1:] != rows[:-1]
    firsts = starts[:-1]
    new[firsts[firsts < len(rows)]] = True
    at = np.flatnonzero(new)
    counts = np.diff(at, append=len(rows)).astype(np.int32)
    posting_starts = np.searchsorted(at, starts)
    return (
        Lists(starts=posting_starts, values=rows[at] + np.int32(row)),
        Lists(starts=posting_starts, values=counts),
        Lists(starts=starts, values=places),
    )


def _stable_order(words: npt.NDArray[np.int32], count: int) -> npt.NDArray[np.int64]:
    """Places of the words, sorted by word, in order within a word.

    NumPy sorts 16-bit numbers by radix, several times faster than wider ones by comparison, so wide
    numbers are sorted by their lower half and then, stably, by their upper half.
    """
    order = np.argsort((words & 0xFFFF).astype(np.uint16), kind="stable")
    if count > 1 << 16:
        order = order[np.argsort((words[order] >> 16).astype(np.uint16), kind="stable")]
    return order


def _row_places(lengths: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    return np.cumsum(lengths, dtype=np.int64) - lengths + np.arange(len(lengths))


# ---------------------------------------------------------------- sorted sets


def _none() -> Rows:
    return np.empty(0, np.int64)


def _distinct(ascending: Rows) -> Rows:
    keep = np.ones(len(ascending), np.bool_)
    keep[1:] = ascending[1:] != ascending[:-1]
    return ascending[keep]


def _candidates(rows: npt.NDArray[np.integer]) -> Rows:
    """Candidate rows as a set: ascending and distinct, which they usually are already."""
    rows = rows.astype(np.int64, copy=False)
    return rows if bool((rows[1:] > rows[:-1]).all()) else np.unique(rows)


def _contained(
    values: npt.NDArray[np.integer], ascending: npt.NDArray[np.integer]
) -> npt.NDArray[np.bool_]:
    """Which of the values are in the ascending ones."""
    if not len(ascending):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(ascending, values)
    return ascending[np.minimum(at, len(ascending) - 1)] == values


# -- spelling --------------------------------------------------------------------------------------
# Words that are a few typing errors away from a given one, among all words of an index.
#
#     text_index's vocabulary ─▶ [spelling] ─▶ numbers of the words within some edits
#
# The edit distance (Levenshtein: insert, remove or replace one character) is computed for all words
# of one length at once: the usual table is filled cell by cell, each cell an array over the words.
# Only lengths that can be near enough are looked at, and only the band of the table around its
# diagonal that can hold a small distance.


Numbers = npt.NDArray[np.int64]
_Cells = npt.NDArray[np.uint8] | npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SameLength:
    """The words of one length."""

    numbers: Numbers
    codes: npt.NDArray[np.uint32]
    """Their characters: first by place in the word, then by word."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spelling:
    """Words arranged by length."""

    by_length: Mapping[int, _SameLength]

    @classmethod
    def of(cls, words: Sequence[str]) -> Spelling:
        """Arrange words; their places are their numbers."""
        lengths = np.fromiter(map(len, words), np.int64, len(words))
        starts = np.cumsum(lengths) - lengths
        codes = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
        order = np.argsort(lengths, kind="stable")
        distinct, firsts = np.unique(lengths[order], return_index=True)
        groups = np.split(order, firsts[1:])
        return cls(
            by_length={
                length: _SameLength(
                    numbers=numbers, codes=codes[starts[numbers] + np.arange(length)[:, np.newaxis]]
                )
                for length, numbers in zip(distinct.tolist(), groups, strict=False)
            }
        )

    def near(self, word: str, edits: int) -> Numbers:
        """Numbers of the words that at most ``edits`` edits turn into ``word``."""
        wanted = np.frombuffer(word.encode("utf-32-le"), np.uint32)
        found = [np.empty(0, np.int64)]
        for length, group in self.by_length.items():
            if abs(length - len(word)) > edits:
                continue
            if max(length, len(word)) <= edits:  # Even replacing everything is near enough.
                found.append(group.numbers)
            else:
                found.append(group.numbers[_within(group.codes, wanted, edits)])
        return np.concatenate(found)


def _within(
    block: npt.NDArray[np.uint32], wanted: npt.NDArray[np.uint32], edits: int
) -> npt.NDArray[np.bool_]:
    """Which words (columns of ``block``) are within ``edits`` edits of ``wanted``.

    ``rows[i]`` is the distance of the first ``i`` wanted characters from the first ``j`` characters
    of each word; ``j`` advances. Cells further than ``edits`` from the diagonal cannot be part of a
    near alignment; they keep or get some number that is larger than ``edits``.
    """
    length, count = block.shape
    size = len(wanted)
    # Small cells are fast; no sum below exceeds the length of the longer word by more than one.
    kind = np.uint8 if max(length, size) + 1 < 256 else np.int32
    rows: list[_Cells] = [np.full(count, i, kind) for i in range(size + 1)]
    for j in range(1, length + 1):
        low, high = max(j - edits, 1), min(j + edits, size)
        diagonal = rows[low - 1]
        rows[low - 1] = np.full(count, j, kind)
        for i in range(low, high + 1):
            other = block[j - 1] != wanted[i - 1]
            replaced = diagonal + other.view(np.uint8)
            diagonal = rows[i]
            one_more = np.minimum(rows[i - 1], diagonal)
            one_more += 1
            rows[i] = np.minimum(one_more, replaced)
    return rows[size] <= edits
