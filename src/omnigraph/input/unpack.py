"""Packed texts as streams: gzip and zstd, with damage reported as our errors.

A packed text cannot be cut into ranges: one task reads all of it, in blocks.
"""

from __future__ import annotations

import io

import pyarrow as pa

from omnigraph.input.streams import SourceReader
from omnigraph.input.units import Compression
from omnigraph.storage.inputs import UnreadableInput

_HEAD_STEP_BYTES = 1 << 10
_MAGIC = {b"\x1f\x8b": Compression.GZIP, b"\x28\xb5\x2f\xfd": Compression.ZSTD}


def compression_of(head: bytes) -> Compression | None:
    """How a file is packed, by its first bytes: names may lie."""
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def unpacked_stream(reader: SourceReader, compression: Compression) -> io.BufferedReader:
    """The text of a packed file."""
    return io.BufferedReader(_Unpacked(reader, compression), 1 << 20)


def unpacked_head(raw: bytes, compression: Compression, size: int) -> bytes:
    """The beginning of a packed text, as far as its packed beginning holds it."""
    stream, text = pa.CompressedInputStream(pa.BufferReader(raw), compression.value), b""
    try:
        while len(text) < size and (chunk := stream.read(_HEAD_STEP_BYTES)):
            text += chunk
    except (pa.ArrowException, OSError):
        pass  # What is missing comes later.
    return text[:size]


class _Unpacked(io.RawIOBase):
    def __init__(self, reader: SourceReader, compression: Compression) -> None:
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
