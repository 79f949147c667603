"""A schema text from a file, for the Python API and the command line. Imports nothing heavy."""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import ErrorKind, NotFoundError, UsageError


def read_schema_file(path: Path) -> str:
    """The text byte for byte: its line ends belong to the schema that is stored."""
    try:
        return decoded(path.read_bytes(), str(path))
    except FileNotFoundError as e:
        raise NotFoundError(
            f"no schema file {path}",
            kind=ErrorKind.FILE_NOT_FOUND,
            hint="give the path of a .pg file",
        ) from e
    except OSError as e:
        raise UsageError(f"cannot read the schema file {path}: {e.strerror}") from e


def decoded(content: bytes, name: str) -> str:
    """Schema text out of bytes that came from somewhere."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as e:
        raise UsageError(f"cannot read the schema file {name}: it is not UTF-8 text") from e
