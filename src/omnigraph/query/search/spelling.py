"""Words that are a few typing errors away from a given one, among all words of an index.

    text_index's vocabulary ─▶ [spelling] ─▶ numbers of the words within some edits

The edit distance (Levenshtein: insert, remove or replace one character) is computed for all words
of one length at once: the usual table is filled cell by cell, each cell an array over the words.
Only lengths that can be near enough are looked at, and only the band of the table around its
diagonal that can hold a small distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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
