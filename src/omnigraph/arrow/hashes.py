"""Hashes of texts, by arrays: the same in every process, so that they may be kept in files.

A text is read as words of eight bytes from its end, where ids differ. ``text_hashes`` reads all of
it; ``stable_hashes`` of ``omnigraph.rules.repeats`` stops after a few words.
"""

from __future__ import annotations

import sys
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[Any]
"""Offsets of bytes, as wide as Arrow has them: they are not copied to be widened."""

MULTIPLIER = 0x9E3779B97F4A7C15
"""An odd number whose multiples spread evenly over 64 bits."""
BLOCK_ROWS = 1 << 14
"""Rows hashed at once: small enough that the intermediate arrays stay in the cache."""
LONG_BYTES = 512
"""Texts beyond this are hashed one by one."""
_WORD_BITS = (1 << 64) - 1


def text_hashes(texts: pa.StringArray) -> Hashes:
    """A number for each text, equal where the texts are; nulls are not expected."""
    out = np.zeros(len(texts), np.uint64)
    bounds, words = bounds_of(texts), every_word(texts.buffers()[2])
    for start in range(0, len(texts), BLOCK_ROWS):
        block = bounds[start : start + BLOCK_ROWS + 1]
        ends, lengths = block[1:], np.diff(block)
        _hash_block(words, ends, lengths, out[start : start + len(ends)])
        if int(lengths.max()) > LONG_BYTES:
            for row in (start + np.flatnonzero(lengths > LONG_BYTES)).tolist():
                out[row] = text_hash(texts[row].as_py())
    return out


def text_hash(text: str) -> int:
    """The same number for one text."""
    octets = text.encode()
    if len(octets) > LONG_BYTES:
        return int.from_bytes(blake2b(octets, digest_size=8).digest(), "little")
    number = len(octets)
    for end in range(len(octets), 0, -8):
        number ^= int.from_bytes(octets[max(0, end - 8) : end], "little")
        number = (number * MULTIPLIER) & _WORD_BITS
        number ^= number >> 32
    return number


def _hash_block(words: Hashes, ends: Places, lengths: Places, out: Hashes) -> None:
    out[:] = lengths
    longest = min(int(lengths.max(initial=0)), LONG_BYTES)
    shortest = int(lengths.min(initial=0))
    for distance in range(8, longest + 8, 8):
        if shortest > distance - 8:
            mix(out, words_before(words, ends, lengths, distance))
            continue
        rows = np.flatnonzero(lengths > distance - 8)
        some = out[rows]
        mix(some, words_before(words, ends[rows], lengths[rows], distance))
        out[rows] = some


def mix(hashes: Hashes, words: Hashes) -> None:
    """Take one more word into each hash."""
    hashes ^= words
    hashes *= np.uint64(MULTIPLIER)
    hashes ^= hashes >> np.uint64(32)


def bounds_of(texts: pa.Array) -> Places:
    """Where the bytes of each text begin, and at last where those of the last one end."""
    if not len(texts):
        return np.zeros(1, np.int32)
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    return np.frombuffer(texts.buffers()[1], width)[texts.offset : texts.offset + len(texts) + 1]


def every_word(buffer: pa.Buffer | None) -> Hashes:
    """One little-endian word starting at every byte, so that a text's words are one gather each."""
    octets = np.frombuffer(buffer or b"", dtype=np.uint8)
    if len(octets) < 8:
        octets = np.append(octets, np.zeros(8, dtype=np.uint8))
    first: npt.NDArray[Any] = octets[:8].view(np.uint64)
    return np.lib.stride_tricks.as_strided(first, shape=(len(octets) - 7,), strides=(1,))


def words_before(words: Hashes, ends: Places, lengths: Places, distance: int) -> Hashes:
    """The word ``distance`` bytes before each end, without the bytes of the text before it."""
    starts = ends - distance
    if int(starts.min(initial=0)) < 0:
        # Only at the start of the buffer: read from byte 0 and move the bytes to their place.
        missing = np.maximum(-starts, 0)
        found = words[np.maximum(starts, 0)] << (8 * missing).astype(np.uint64)
    else:
        found = words[starts]
    before = distance - lengths
    if int(before.max(initial=0)) > 0:
        # NumPy defines a shift by 64 or more as zero: a text that ended earlier adds nothing.
        found >>= (np.maximum(before, 0, out=before) << 3).astype(np.uint64)
    return found


if sys.byteorder != "little":
    raise ImportError("hashes read texts as little-endian words")
