"""A text in one of our languages from a file, for the Python API and the command line.

Imports nothing heavy.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

from omnigraph.errors import ErrorKind, NotFoundError, UsageError


class TextKind(StrEnum):
    """What a file is read as; the value is how messages call it."""

    SCHEMA = "schema"
    QUERY = "query"
    PARAMETERS = "parameter"
    RESOLUTIONS = "resolution"

    @property
    def suffix(self) -> str:
        """The usual end of the file's name."""
        return _SUFFIXES[self]


_SUFFIXES = {
    TextKind.SCHEMA: ".pg",
    TextKind.QUERY: ".gq",
    TextKind.PARAMETERS: ".json",
    TextKind.RESOLUTIONS: ".jsonl",
}


def read_file(path: Path, kind: TextKind) -> bytes:
    """The content byte for byte: the line ends of a schema belong to what is stored."""
    try:
        return path.read_bytes()
    except FileNotFoundError as e:
        raise NotFoundError(
            f"no {kind} file {path}",
            kind=ErrorKind.FILE_NOT_FOUND,
            hint=f"give the path of a {kind.suffix} file",
        ) from e
    except (OSError, ValueError) as e:  # ValueError: a name with a null character.
        why = e.strerror if isinstance(e, OSError) else e
        raise UsageError(f"cannot read the {kind} file {path}: {why}") from e


def decoded(content: bytes, name: str, kind: TextKind) -> str:
    """Text out of bytes that came from somewhere."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as e:
        raise UsageError(f"cannot read the {kind} file {name}: it is not UTF-8 text") from e


def schema_text(schema: str | os.PathLike[str]) -> tuple[str, str]:
    """Schema text and a name for it. A string with a line break or a brace is text, unless it ends
    like the name of a schema file."""
    if not isinstance(schema, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"not a schema: {schema!r}", hint="give .pg text or the path of a file")
    if isinstance(schema, str):
        if not schema.strip():
            raise UsageError("the schema is empty", hint="give .pg text or the path of a file")
        if "\n" in schema or ("{" in schema and not schema.endswith(".pg")):
            return schema, "schema.pg"
    path = Path(schema)
    return decoded(read_file(path, TextKind.SCHEMA), str(path), TextKind.SCHEMA), str(path)
