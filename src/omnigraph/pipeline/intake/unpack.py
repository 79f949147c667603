"""Packed texts as streams: gzip and zstd, with their damage told in our words.

A packed text cannot be cut into ranges: one task reads all of it, in blocks.
"""

from __future__ import annotations

import io

import pyarrow as pa

from omnigraph.pipeline.intake.units import Compression
from omnigraph.storage.inputs import InputReader, UnreadableInput

_MAGIC = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}


def compression_of(head: bytes) -> Compression | None:
    """How a file is packed, by its first bytes: names may lie."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def unpacked_stream(reader: InputReader, compression: Compression) -> io.BufferedReader:
    """The text of a packed file."""
    return io.BufferedReader(_Unpacked(reader, compression), 1 << 20)


class _Unpacked(io.RawIOBase):
    def __init__(self, reader: InputReader, compression: Compression) -> None:
        self._compression = compression
        self._packed = reader.stream()
        self._text = pa.CompressedInputStream(self._packed, compression.value)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        try:
            content = self._text.read(len(buffer))
        except (pa.ArrowException, OSError) as error:
            if "runcated" in str(error):
                reason = f"the {self._compression} data is cut off"
            else:
                reason = f"the {self._compression} data is damaged"
            raise UnreadableInput(reason) from error
        buffer[: len(content)] = content
        return len(content)
