"""Identifiers and randomness, injected.

A ULID is 48 bits of milliseconds and 80 random bits in 26 characters of Crockford's base 32: it
sorts by time and needs no coordination between processes. Commit ids, operation ids and the ids of
entities without a key are ULIDs.
"""

from __future__ import annotations

import os
import random
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.clock import Clock, SystemClock

_ALPHABET = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
ULID_LENGTH = 26


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
        return self.ulids(1)[0].as_py()

    def ulids(self, count: int) -> pa.StringArray:
        """Many fresh ULIDs at once, ascending."""
        raw = np.empty((count, 16), dtype=np.uint8)
        raw[:, :6] = np.frombuffer((self._clock.now_us() // 1000).to_bytes(6, "big"), dtype=np.uint8)
        raw[:, 6:] = self._entropy(count)
        return _encode(raw)

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


def _encode(raw: npt.NDArray[np.uint8]) -> pa.StringArray:
    """Base-32 encode rows of 16 bytes, sorted, as one Arrow string array without Python objects."""
    count = len(raw)
    # 128 bits do not divide by 5: two leading zero bits make 26 groups of five.
    bits = np.zeros((count, 130), dtype=np.uint8)
    bits[:, 2:] = np.unpackbits(raw, axis=1)
    weights = np.array([16, 8, 4, 2, 1], dtype=np.uint8)
    digits: npt.NDArray[Any] = bits.reshape(count, ULID_LENGTH, 5) @ weights
    text = np.sort(_ALPHABET[digits].view(f"S{ULID_LENGTH}").ravel())
    offsets = np.arange(0, (count + 1) * ULID_LENGTH, ULID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(
        count, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(text))
    )
