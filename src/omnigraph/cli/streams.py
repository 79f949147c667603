"""Writing to the standard streams and to files, and how that can fail.

    output, export, fmt -> [streams] -> stdout, stderr, a file

A reader that goes away (`export | head`) stays a BrokenPipeError, which ends the program silently;
every other failure to write is raised as a StorageError.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO, cast

from omnigraph.cli.interrupts import answered
from omnigraph.errors import StorageError, UsageError
from omnigraph.output_file import cannot_write
from omnigraph.show.text import one_line as one_line
from omnigraph.show.text import printable as printable

_OUTPUT = "the output"
STDOUT = ("-", "/dev/stdout")
"""Ours is written as it is: opened by its name it would lose what stands in it."""


def is_terminal(stream: TextIO) -> bool:
    """Whether a person looks at this stream; a closed one is not looked at."""
    # The interpreter sets a standard stream to None when its descriptor is closed.
    found = cast("TextIO | None", stream)
    return found is not None and not found.closed and found.isatty()


def encodes(text: str, stream: TextIO) -> bool:
    """Whether a stream has these characters."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_text(text: str) -> None:
    """Write to stdout and flush; what its encoding cannot say is escaped."""
    encoding = "utf-8" if cast("TextIO | None", sys.stdout) is None else sys.stdout.encoding
    write_bytes(text.encode(encoding, "backslashreplace"))


def write_bytes(content: bytes) -> None:
    """Write a whole answer to stdout, whatever encoding the terminal has, and flush."""
    if cast("TextIO | None", sys.stdout) is not None:
        writer = StreamWriter(cast(BinaryIO, sys.stdout.buffer), _OUTPUT)
        writer.write(content)
        writer.flush()
    answered()


def finish() -> None:
    """Write out what stdout still holds; what it does not take is given up.

    The interpreter would try again at its end, complain, and replace the exit code.
    """
    if cast("TextIO | None", sys.stdout) is not None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            silence(sys.stdout)


def silence(stream: TextIO) -> None:
    """Let everything that is still to be written to a stream go nowhere."""
    if cast("TextIO | None", stream) is None:
        return
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class StreamWriter:
    """A binary stream that is written completely or fails with an error of ours."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream = stream
        self._name = name

    def write(self, content: bytes | memoryview) -> int:
        """Write all of it."""
        # With PYTHONUNBUFFERED the standard streams are raw: a write may take a part of the content
        # and say so, where a buffered stream would go on.
        rest = memoryview(content)
        try:
            while rest:
                written = cast("int | None", self._stream.write(rest))
                if written is None:
                    raise BlockingIOError(errno.EAGAIN, "the stream does not wait")
                rest = rest[written:]
        except OSError as e:
            raise _failed(self._name, e) from e
        return len(content)

    def flush(self) -> None:
        """Hand everything over."""
        try:
            self._stream.flush()
        except OSError as e:
            raise _failed(self._name, e) from e


@contextmanager
def stdout_writer(instead: str) -> Generator[StreamWriter]:
    """Stdout for data of any length; flushed at the end. ``instead`` helps if it is closed."""
    if cast("TextIO | None", sys.stdout) is None:
        raise UsageError("stdout is closed", hint=instead)
    writer = StreamWriter(cast(BinaryIO, sys.stdout.buffer), _OUTPUT)
    yield writer
    writer.flush()


def write_error(text: str) -> None:
    """Write to stderr; a failure there cannot be reported."""
    if cast("TextIO | None", sys.stderr) is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        silence(sys.stderr)


def _failed(name: str, error: OSError) -> OSError | StorageError:
    """What to raise when writing ``name`` failed."""
    if isinstance(error, BrokenPipeError):
        return error
    return cannot_write(name, error, chosen=name != _OUTPUT)


# ---------------------------------------------------------------- files


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """A file that is there with all of its content, or not at all."""
    mode = _mode(path)
    if mode is not None and stat.S_ISDIR(mode):
        raise UsageError(f"cannot write {path}: it is a directory")
    if mode is not None and not stat.S_ISREG(mode):
        # A device or a pipe must never be replaced by a file. Its name is opened as it is given:
        # a pipe such as /dev/fd/63 has none that it could be resolved to.
        with _opened(path, path) as stream:
            writer = StreamWriter(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
        return
    # A link keeps pointing where it pointed.
    place = path.resolve()
    written = place.with_name(f".{place.name}.{os.getpid()}.tmp")
    with _opened(written, path) as stream:
        try:
            if mode is not None:
                with _failing_as(path):
                    os.fchmod(stream.fileno(), stat.S_IMODE(mode))
            writer = StreamWriter(stream, str(path))
            yield cast(BinaryIO, writer)
            writer.flush()
            with _failing_as(path):
                os.fsync(stream.fileno())
                written.replace(place)
                _sync_folder(place.parent)
        except BaseException:
            written.unlink(missing_ok=True)
            raise


def _sync_folder(folder: Path) -> None:
    """Make a new name survive a power cut, as the content behind it does."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int | None:
    """Kind and permissions of what is there."""
    with _failing_as(path):
        try:
            return path.stat().st_mode
        except FileNotFoundError:
            return None


@contextmanager
def _opened(written: Path, path: Path) -> Generator[BinaryIO]:
    with _failing_as(path):
        stream = written.open("wb")
    try:
        yield stream
    except BaseException:
        # What could not be written is tried once more at the end, and must not hide why it failed.
        with suppress(OSError):
            stream.close()
        raise
    with _failing_as(path):
        stream.close()


@contextmanager
def _failing_as(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as e:
        raise _failed(str(path), e) from e
