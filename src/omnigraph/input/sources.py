"""What was handed to ``load``, sorted out by its kind: the one place that decides what it is.

    graph.load(source) -> [sources] -> members: files, streams, tables, rows, records, Spark frames

Nothing is read here. Files are found, and so their size is known when the engine is chosen.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from omnigraph.errors import ErrorKind, InputError, NotFoundError, OmnigraphError, UsageError
from omnigraph.input.streams import GivenStream, SourceFile
from omnigraph.input.tables import is_frame, is_series
from omnigraph.lang.source import one_line
from omnigraph.storage.inputs import InputFile, UnreadableInput, find_inputs, is_plain

KINDS = (
    "a path or list of paths (JSONL, or CSV, Parquet and Arrow with type=…), a binary stream, dict "
    "records, an Arrow table, DataFrame or dict rows with type=…, or a mapping of type names to "
    "these"
)

ColumnsOf = Mapping[str, str]
"""Property to column."""


class Kind(StrEnum):
    """What a member is."""

    FILES = "files"
    TABLE = "a table"
    ROWS = "rows"
    """Dicts of one type."""
    RECORDS = "records"
    """Dicts that name their type, as lines of JSONL do."""
    FRAME = "a Spark DataFrame"


@dataclass(frozen=True, kw_only=True)
class Member:
    """One part of an input: everything, or what it holds of one type."""

    kind: Kind
    value: Any
    label: str
    """As messages call it, unless it is files."""
    type_name: str | None = None
    columns: ColumnsOf | None = None
    """Which column fills which property; by their names if it is not said."""

    @cached_property
    def files(self) -> tuple[SourceFile, ...]:
        """The files that paths lead to, and streams, in the order given; found once."""
        return tuple(_found_files(self.value)) if self.kind is Kind.FILES else ()


@dataclass(frozen=True, kw_only=True)
class Given:
    """An input as it was handed over."""

    members: tuple[Member, ...]
    paths: tuple[str, ...] = field(default=())
    """Of files and streams, as they were given."""

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Every file and stream. Raises what is wrong with finding them."""
        return tuple(file for member in self.members for file in member.files)

    @property
    def repeatable(self) -> bool:
        """Whether it can be read a second time."""
        return all(map(_is_repeatable, self.members))

    @property
    def size_bytes(self) -> int | None:
        """How large it is, if it is files that can be found; else None."""
        try:
            sizes = [f.size for f in self.files if isinstance(f, InputFile)]
        except OmnigraphError:
            return None  # Reading it reports what is wrong.
        return sum(sizes) if sizes else None

    def has(self, kind: Kind) -> bool:
        """Whether a member is of this kind."""
        return any(member.kind is kind for member in self.members)


def sort_out(
    source: Any,
    *,
    type_name: str | None = None,
    columns: Mapping[str, Any] | None = None,
) -> Given:
    """What ``source`` is. Raises UsageError if it is nothing that can be loaded.

    ``columns`` names the column of each property: of the type, or by type of a mapping.
    """
    if is_series(source):
        raise _no_table(source)
    if isinstance(source, Mapping):
        members = _by_type(cast("Mapping[Any, Any]", source), type_name, columns)
    elif type_name is not None:
        members = [_typed(source, type_name, columns, rows_label="rows")]
    elif columns is not None:
        raise UsageError("a mapping of columns needs a type", hint='say type="Person"')
    else:
        members = [_untyped(source)]
    files = [f for m in members if m.kind is Kind.FILES for f in m.value]
    names = [f if isinstance(f, str) else f.name for f in files]
    return Given(members=tuple(members), paths=tuple(names))


def _untyped(source: Any) -> Member:
    files = _as_files(source)
    if files is not None:
        return Member(kind=Kind.FILES, value=files, label="files")
    if is_spark_frame(source):
        raise UsageError("a DataFrame needs its type", hint='say type="Person"')
    if is_table(source):
        raise UsageError("a table needs its type", hint='say load(table, type="Person")')
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise UsageError("bytes are not a source", hint="wrap them: load(io.BytesIO(content))")
    if isinstance(source, Iterable):
        return Member(kind=Kind.RECORDS, value=source, label="rows")
    raise UsageError(f"cannot load from {type(source).__name__}", hint=f"load takes {KINDS}")


def _typed(
    source: Any, type_name: str, columns: ColumnsOf | None, *, rows_label: str | None = None
) -> Member:
    """A member of one named type."""
    files = _as_files(source)
    label = type_name
    if is_spark_frame(source):
        kind, value = Kind.FRAME, source
    elif files is not None:
        kind, value = Kind.FILES, files
    elif (table := _as_table(source, type_name)) is not None:
        kind, value = Kind.TABLE, table
    elif _is_rows(source):
        kind, value, label = Kind.ROWS, source, rows_label or type_name
    else:
        raise UsageError(
            f"type= does not go with {type(source).__name__}",
            hint="with a type, load takes files, a table, a DataFrame or dict rows",
        )
    return Member(kind=kind, value=value, label=label, type_name=type_name, columns=columns)


def _by_type(
    source: Mapping[Any, Any], type_name: str | None, columns: Mapping[str, Any] | None
) -> list[Member]:
    if type_name is not None:
        raise UsageError("type= does not go with a mapping", hint="its keys are the types")
    for value in source.values():
        if is_series(value):
            raise _no_table(value)
    if any(isinstance(source.get(word), str) for word in ("type", "edge")):
        raise _no_mapping("one record goes into a list: load([record])")
    if not source or not all(isinstance(k, str) and _is_of_one_type(v) for k, v in source.items()):
        raise _no_mapping(f"load takes {KINDS}")
    of = columns or {}
    return [_typed(value, name, of.get(name)) for name, value in source.items()]


def _no_mapping(hint: str) -> UsageError:
    return UsageError("cannot load from this mapping", hint=hint)


# -- files ---------------------------------------------------------------------------------------


def _as_files(source: Any) -> tuple[str | GivenStream, ...] | None:
    """Paths and streams; None for anything else."""
    one = _as_file(source)
    if one is not None:
        return (one,)
    if isinstance(source, (bytes, bytearray, memoryview)) or not isinstance(source, Sequence):
        return None
    found = [_as_file(member) for member in cast("Sequence[Any]", source)]
    return tuple(f for f in found if f is not None) if found and None not in found else None


def _as_file(source: Any) -> str | GivenStream | None:
    if isinstance(source, GivenStream):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _path(cast("str | os.PathLike[str]", source))
    if isinstance(source, io.TextIOBase):
        raise UsageError("a text stream is not bytes", hint='open the file in mode "rb"')
    if hasattr(source, "read") and not isinstance(source, pa.RecordBatchReader):
        stream = cast(BinaryIO, source)
        name = str(getattr(source, "name", "<stream>"))
        return GivenStream(name=name, open=lambda: stream, owned=False)
    return None


def _path(path: str | os.PathLike[str]) -> str:
    text = os.fsdecode(path)
    if text.lstrip().startswith("{"):
        raise UsageError(
            "a string names a file; this one looks like JSON",
            hint="give dicts, load([{…}]), or wrap text in io.BytesIO(text.encode())",
        )
    return text


def _found_files(given: Sequence[str | GivenStream]) -> Iterator[SourceFile]:
    for file in given:
        if isinstance(file, GivenStream):
            yield file
        elif not is_plain(file):
            # A pipe, such as a shell makes of <(command): it can be read once, from its start.
            path = Path(file)
            yield GivenStream(name=file, open=lambda path=path: path.open("rb"))
        else:
            yield from _found(file)


def _found(path: str) -> list[InputFile]:
    try:
        return find_inputs(path)
    except UnreadableInput as error:
        raise unreadable(path, error) from error


def unreadable(name: str, error: UnreadableInput) -> OmnigraphError:
    """The error for a file that cannot be read."""
    message = f"{one_line(name)}: {error.reason}"
    if error.missing:
        return NotFoundError(message, kind=ErrorKind.FILE_NOT_FOUND)
    return InputError(message)


# -- everything else -----------------------------------------------------------------------------


def is_spark_frame(value: Any) -> bool:
    """Whether this is a DataFrame of Spark."""
    # Classic and Connect have classes of their own; both have this, and nothing else does.
    return hasattr(value, "mapInArrow")


def is_table(value: Any) -> bool:
    """Whether this is a table of any library that speaks Arrow."""
    arrow = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
    offers = hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")
    return isinstance(value, arrow) or is_frame(value) or offers


def _is_of_one_type(value: Any) -> bool:
    """Whether a value can be what a mapping has of one type."""
    return (
        is_spark_frame(value) or _as_files(value) is not None or is_table(value) or _is_rows(value)
    )


def _is_rows(value: Any) -> bool:
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping)):
        return False
    return isinstance(value, Iterable)


def _as_table(value: Any, name: str) -> Any:
    """The table or the list of record batches as one table, None for anything else."""
    if is_table(value):
        return value
    if not isinstance(value, Sequence) or not value:
        return None
    if not all(isinstance(v, pa.RecordBatch) for v in value):
        return None
    try:
        return pa.Table.from_batches(value)
    except pa.ArrowInvalid:
        raise InputError(f"{name}: the batches do not have the same columns") from None


def _is_repeatable(member: Member) -> bool:
    if member.kind is Kind.FILES:
        streams = (f for f in member.value if isinstance(f, GivenStream) or not is_plain(f))
        return next(streams, None) is None
    if member.kind is Kind.TABLE:
        return not isinstance(member.value, pa.RecordBatchReader)
    return member.kind is Kind.FRAME or isinstance(member.value, Sequence)


def _no_table(value: Any) -> UsageError:
    return UsageError(
        f"a {type(value).__name__} is not a table", hint="make it one: series.to_frame()"
    )
