"""Identifiers and randomness, injected.

A ULID is 48 bits of milliseconds and 80 random bits in 26 characters of Crockford's base 32: it
sorts by time and needs no coordination between processes. Commit ids, operation ids and the ids of
entities without a key are ULIDs.
"""

from __future__ import annotations

import hashlib
import os
import random
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.clock import Clock, SystemClock
from omnigraph.errors import InternalError

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
# Two characters at a time, as the two bytes of one number: ten bits are looked up at once.
_PAIRS = (
    np.stack([np.repeat(_ALPHABET, 32), np.tile(_ALPHABET, 32)], axis=1).view(np.uint16).ravel()
)
ULID_LENGTH = 26
_WORD = (1 << 64) - 1
_PAIR_TEXTS = [pair.tobytes().decode() for pair in _PAIRS]
FEW_MAX = 16
"""So many ids are spelled one by one: arrays cost more than they save."""
SORTED_MAX = 10_000
"""So many ids are drawn one by one and sorted; more of them count on from one that is drawn."""
_BLOCK_ROWS = 1 << 15
"""Numbers that are spelled at once: small enough to stay in the cache."""
_LINES_MAX = 1 << 42
_SOURCES_MAX = 1 << 36


class IdSource(Protocol):
    """Where fresh identifiers and jitter come from."""

    def ulid(self) -> str:
        """One fresh ULID."""
        ...

    def ulids(self, count: int) -> pa.StringArray:
        """Many fresh ULIDs at once, ascending."""
        ...

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        ...


class SystemIds:
    """ULIDs from the operating system's randomness, ascending within one source."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def _entropy(self, count: int) -> npt.NDArray[np.uint8]:
        return np.frombuffer(os.urandom(10 * count), dtype=np.uint8).reshape(count, 10)

    def ulid(self) -> str:
        """One fresh ULID."""
        return self._few(self._clock.now_us() // 1000, 1)[0]

    def ulids(self, count: int) -> pa.StringArray:
        """Many fresh ULIDs at once, ascending."""
        time_ms = self._clock.now_us() // 1000
        if count <= FEW_MAX:
            return pa.array(self._few(time_ms, count), pa.string())
        if count > SORTED_MAX:
            # From one random place on: no sort, and what is stored packs well. Two batches of a
            # millisecond meet less often than if every id were drawn: their places must be near.
            place = int.from_bytes(self._entropy(1).tobytes(), "big")
            # One bit stays free, so that counting on never runs over into the time.
            return _consecutive((time_ms << 80) + (place >> 1), count)
        raw = np.empty((count, 16), dtype=np.uint8)
        raw[:, :6] = np.frombuffer(time_ms.to_bytes(6, "big"), dtype=np.uint8)
        raw[:, 6:] = self._entropy(count)
        return _encode(raw)

    def _few(self, time_ms: int, count: int) -> list[str]:
        drawn = [int.from_bytes(row.tobytes(), "big") for row in self._entropy(count)]
        return [_spelled_one((time_ms << 80) | number) for number in sorted(drawn)]

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        return int.from_bytes(os.urandom(6), "big") / (1 << 48)


class SeededIds(SystemIds):
    """The same identifiers on every run, for tests and reproductions."""

    def __init__(self, seed: int, clock: Clock | None = None) -> None:
        super().__init__(clock)
        self._random = random.Random(seed)

    def _entropy(self, count: int) -> npt.NDArray[np.uint8]:
        return np.frombuffer(self._random.randbytes(10 * count), dtype=np.uint8).reshape(count, 10)

    def jitter(self) -> float:
        """A random number in [0, 1)."""
        return self._random.random()


def derived_ulids(run_id: str, source: int, lines: npt.NDArray[np.int64]) -> pa.StringArray:
    """The ULID of each line of a numbered source, the same whenever it is asked for.

    Many processes hand out the ids of one load, and a task that is repeated must hand out the same.
    So the place of a row is added to a number that belongs to the run: within a run no two rows
    agree, ids ascend with (source, line), and two runs of the same millisecond meet only if their
    numbers lie as close as their rows. ``run_id`` is a ULID; it gives the time.
    """
    digits = _ALPHABET.tobytes().decode()
    if len(run_id) != ULID_LENGTH or not set(run_id) <= set(digits) or run_id[0] > "7":
        raise InternalError(f"not a ULID: {run_id!r}")
    if not 0 <= source < _SOURCES_MAX or (len(lines) and int(lines.max()) >= _LINES_MAX):
        raise InternalError(f"no ids for source {source} of {len(lines)} lines")
    time_ms = 0
    for character in run_id[:10]:
        time_ms = time_ms * 32 + digits.index(character)
    # One bit stays free, so that adding a place never runs over into the time.
    start = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:10], "big") >> 1
    start += (time_ms << 80) + source * _LINES_MAX
    return _from(start, lines.astype(np.uint64))


def _from(start: int, distances: npt.NDArray[np.uint64]) -> pa.StringArray:
    """The numbers at these distances from a number of 128 bits."""
    low = distances + np.uint64(start & _WORD)
    high = np.full(len(distances), start >> 64, dtype=np.uint64)
    high[low < np.uint64(start & _WORD)] += np.uint64(1)
    return _spelled(high, low)


def _consecutive(start: int, count: int) -> pa.StringArray:
    """Numbers of 128 bits from one on, as texts: in a thousand of them only the last pair of
    characters differs, and from one thousand to the next mostly one more."""
    text = np.empty((count, ULID_LENGTH // 2), dtype=np.uint16)
    block = np.empty((len(_PAIRS), text.shape[1]), dtype=np.uint16)
    block[:, -1] = _PAIRS
    before = [-1] * (text.shape[1] - 1)
    row, skipped = 0, start % len(_PAIRS)
    while row < count:
        number = (start + row) // len(_PAIRS)
        for pair in reversed(range(len(before))):
            number, digits = divmod(number, len(_PAIRS))
            if before[pair] != digits:
                before[pair] = digits
                block[:, pair] = _PAIRS[digits]
        size = min(len(_PAIRS) - skipped, count - row)
        text[row : row + size] = block[skipped : skipped + size]
        row, skipped = row + size, 0
    return _as_texts(text)


def _encode(raw: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Base-32 encode rows of 16 bytes, sorted, as one Arrow string array without Python objects.

    All rows begin with the same time stamp. A bulk load draws millions, so this counts.
    """
    words = raw.view(">u8").astype(np.uint64)
    high, low = words[:, 0], words[:, 1]
    # 64 of the 80 random bits decide the order, unless two rows agree in all of them.
    leading = (high << np.uint64(48)) | (low >> np.uint64(16))
    order = np.argsort(leading)
    if np.any(leading[order][1:] == leading[order][:-1]):
        order = np.lexsort((low, high))
    return _spelled(high[order], low[order])


def _spelled_one(number: int) -> str:
    """A number of 128 bits as text."""
    return "".join([_PAIR_TEXTS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def _spelled(high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64]) -> pa.StringArray:
    """Numbers of 128 bits, in two halves, as texts."""
    count = len(high)
    text = np.empty((count, ULID_LENGTH // 2), dtype=np.uint16)
    for start in range(0, count, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        _spell_block(high[block], low[block], text[block])
    return _as_texts(text)


def _as_texts(pairs: npt.NDArray[np.uint16]) -> pa.StringArray:
    offsets = np.arange(0, (len(pairs) + 1) * ULID_LENGTH, ULID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(len(pairs), pa.py_buffer(offsets), pa.py_buffer(pairs))


def _spell_block(
    high: npt.NDArray[np.uint64], low: npt.NDArray[np.uint64], text: npt.NDArray[np.uint16]
) -> None:
    # Of ids that ascend, the first and the last tell whether all have the same time.
    shared = bool(high[0] == high[-1]) and bool((high == high[0]).all())
    for pair in range(text.shape[1]):
        shift = 10 * (text.shape[1] - 1 - pair)
        if shift >= 64 and shared:
            text[:, pair] = _PAIRS[int(high[0] >> np.uint64(shift - 64)) & 1023]
            continue
        if shift >= 64:
            bits = high >> np.uint64(shift - 64)
        elif shift > 54:  # these ten bits lie across both words
            bits = (low >> np.uint64(shift)) | (high << np.uint64(64 - shift))
        else:
            bits = low >> np.uint64(shift)
        text[:, pair] = _PAIRS[(bits & np.uint64(1023)).astype(np.intp)]
