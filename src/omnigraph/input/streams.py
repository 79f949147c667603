"""Streams and files by one interface: the first bytes, a stream of all, and whether it changed.

    InputFile | GivenStream -> [open_source] -> a reader

A stream is read once and in order; its first bytes are kept, so that looking at them takes nothing
away.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, BinaryIO, Self

from omnigraph.errors import InputError, UsageError
from omnigraph.storage.inputs import InputFile, InputReader, UnreadableInput


class GivenStream:
    """Bytes that come in order, once: an open file, a pipe, standard input."""

    size = 0
    """Not known."""

    def __init__(self, *, name: str, open: Callable[[], BinaryIO], owned: bool = True) -> None:
        """``open`` is called once; the stream is closed after reading if it is ``owned``."""
        self.name = name
        self._open = open
        self._owned = owned
        self._begun: StreamReader | None = None

    def reader(self) -> StreamReader:
        """Always the same one: what was looked at is not lost."""
        if self._begun is None:
            try:
                self._begun = StreamReader(self._open(), self._owned)
            except FileNotFoundError as error:
                raise UnreadableInput("no such file", missing=True) from error
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else None
                raise UnreadableInput(f"cannot be read: {reason or error}") from error
        return self._begun


class StreamReader:
    """Reads a stream as far as it is asked for."""

    def __init__(self, stream: BinaryIO, owned: bool) -> None:
        self._stream = stream
        self._owned = owned
        self._head = b""
        self._whole: bytes | None = None
        self.done = 0
        """Bytes that were read."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owned:
            self._stream.close()

    def head(self, size: int) -> bytes:
        """The first bytes; they are read again by ``stream``."""
        if self._whole is not None:
            return self._whole[:size]
        while len(self._head) < size:
            chunk = self._read(size - len(self._head))
            if not chunk:
                break
            self._head += chunk
        return self._head[:size]

    def stream(self) -> io.BufferedReader:
        """Everything, in order."""
        return io.BufferedReader(_Rest(self), 1 << 20)

    def seekable(self) -> io.BytesIO:
        """Everything in memory, any number of times: for formats that are not read in order."""
        if self._whole is None:
            self._whole = self.stream().read()
        return io.BytesIO(self._whole)

    def verify(self) -> None:
        """A stream is what it is."""

    def take(self, size: int) -> bytes:
        """The next bytes."""
        if self._head:
            chunk, self._head = self._head[:size], self._head[size:]
        else:
            chunk = self._read(size)
        self.done += len(chunk)
        return chunk

    def _read(self, size: int) -> bytes:
        """The next bytes of a stream that any program may have written."""
        try:
            chunk: Any = self._stream.read(size)
        except OSError as error:
            raise UnreadableInput(f"cannot be read: {error.strerror or error}") from error
        except (TypeError, ValueError) as error:  # closed, or not made to be read in pieces
            raise InputError(f"the stream cannot be read: {error}") from error
        if not isinstance(chunk, (bytes, bytearray, memoryview)):
            raise UsageError(
                f"the stream does not give bytes but {type(chunk).__name__}",
                hint='open the file in mode "rb"',
            )
        return bytes(chunk)


class _Rest(io.RawIOBase):
    def __init__(self, reader: StreamReader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        content = self._reader.take(len(buffer))
        buffer[: len(content)] = content
        return len(content)


SourceFile = InputFile | GivenStream
SourceReader = InputReader | StreamReader


def open_source(file: SourceFile) -> SourceReader:
    """A reader of a file or a stream. Raises ``UnreadableInput``."""
    return file.reader() if isinstance(file, GivenStream) else InputReader(file)
