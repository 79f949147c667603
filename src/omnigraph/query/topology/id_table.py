"""A hash table from ids to their numbers, in plain arrays.

    ids in the order of their numbers -> [slots] -> numbers of ids

Slots are probed one behind the other, all ids of a block at once. The hash decides nothing but
speed: what is found is compared with the id itself. Plain arrays can be mapped from a file, so a
process that finds the table on disk need not make it.

Ten million lookups among a million ids take 1.5 s on one core, ``pyarrow.compute.index_in``, which
makes its own table anew for each call, 2.0 to 2.5 s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.arrow.hashes import MULTIPLIER, Hashes, text_hash, text_hashes

Numbers = npt.NDArray[np.int64]
ABSENT = -1
BLOCK_ROWS = 1 << 17
"""Ids looked up at once."""
ROUNDS_MAX = 256
"""Ids that found no slot in so many rounds have a hash that very many share: they go to a dict."""
_WORD_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class IdTable:
    """Numbers by id. The ids are distinct, and their places are their numbers."""

    ids: pa.StringArray
    hashes: Hashes
    slots: npt.NDArray[Any]
    """Numbers, ``ABSENT`` where a slot is free; at least twice as many slots as ids."""
    crowded: dict[str, int]
    """The few that found no slot."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.hashes.nbytes + self.slots.nbytes

    @staticmethod
    def build(ids: pa.StringArray) -> IdTable:
        """The table of these ids."""
        count = len(ids)
        hashes = text_hashes(ids)
        kind = np.int32 if count < 2**31 else np.int64
        slots = np.full(1 << max(4, (2 * count - 1).bit_length()), ABSENT, kind)
        waiting, slot = np.arange(count, dtype=kind), _first_slots(hashes, len(slots))
        for _ in range(ROUNDS_MAX):
            free = slots[slot] == ABSENT
            slots[slot[free]] = waiting[free]
            # Of those that claimed the same slot the last one has it.
            lost = slots[slot] != waiting
            waiting, slot = waiting[lost], (slot[lost] + 1) & (len(slots) - 1)
            if not len(waiting):
                break
        crowded = {ids[int(number)].as_py(): int(number) for number in waiting}
        return IdTable(ids=ids, hashes=hashes, slots=slots, crowded=crowded)

    def find_one(self, text: str) -> int:
        """The number of one id; ``ABSENT`` for an unknown one."""
        value = text_hash(text)
        bits = len(self.slots).bit_length() - 1
        slot = ((value * MULTIPLIER) & _WORD_BITS) >> (64 - bits)
        for _ in range(ROUNDS_MAX):
            number = int(self.slots[slot])
            if number == ABSENT:
                return ABSENT
            if int(self.hashes[number]) == value and self.ids[number].as_py() == text:
                return number
            slot = (slot + 1) & (len(self.slots) - 1)
        return self.crowded.get(text, ABSENT)

    def find(self, wanted: pa.StringArray) -> Numbers:
        """The numbers of ids; ``ABSENT`` for unknown ones."""
        found = np.full(len(wanted), ABSENT, np.int64)
        if not len(self):
            return found
        for start in range(0, len(wanted), BLOCK_ROWS):
            block = wanted.slice(start, BLOCK_ROWS)
            found[start : start + len(block)] = self._find_block(block)
        return found

    def _find_block(self, wanted: pa.StringArray) -> Numbers:
        hashes = text_hashes(wanted)
        found = np.full(len(wanted), ABSENT, np.int64)
        rows, slot = np.arange(len(wanted)), _first_slots(hashes, len(self.slots))
        for _ in range(ROUNDS_MAX):
            number = self.slots[slot]
            taken = number != ABSENT
            same = taken & (self.hashes[number] == hashes[rows])
            found[rows[same]] = number[same]
            onward = taken & ~same
            rows, slot = rows[onward], (slot[onward] + 1) & (len(self.slots) - 1)
            if not len(rows):
                break
        return self._verified(wanted, found, rows)

    def _verified(self, wanted: pa.StringArray, found: Numbers, unfound: Numbers) -> Numbers:
        """What was found by hash, compared with the ids; the rest is asked one by one."""
        present = np.flatnonzero(found >= 0)
        asked = wanted if len(present) == len(wanted) else wanted.take(pa.array(present))
        equal = pc.equal(self.ids.take(pa.array(found[present])), asked)
        others = present[~equal.to_numpy(zero_copy_only=False)]
        for row in (*others.tolist(), *unfound.tolist()):
            found[row] = self.find_one(wanted[row].as_py())
        return found


def _first_slots(hashes: Hashes, count: int) -> Numbers:
    bits = count.bit_length() - 1
    return ((hashes * np.uint64(MULTIPLIER)) >> np.uint64(64 - bits)).astype(np.int64)
