"""What a load refused, all of it, in a file: one JSON object a line, or a table in Parquet.

    problems | violations -> [rejects] -> out.jsonl | out.parquet

The file is made before anything is read: a place that cannot be written to is reported at once, not
after an hour. It holds nothing when nothing was refused. It is never one of the files that are
read: making it would empty that.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.errors import UsageError, Violation
from omnigraph.input.problems import Problem

TABLE_SUFFIXES = (".parquet", ".pq")
"""A file of such a name is a table."""
_BATCH_ROWS = 8_192
_TEXT = (
    "reject", "source", "message", "rule", "entity_kind", "type_name", "entity_id", "property_name",
    "text",
)  # fmt: skip
TABLE_SCHEMA = pa.schema(
    [pa.field(name, pa.string()) for name in _TEXT]
    + [pa.field(name, pa.int64()) for name in ("line", "column")]
)


class RejectFile:
    """A place for everything that is wrong with an input; without a path, nowhere.

    ``inputs`` are the paths of the input: it is written to none of them.
    """

    def __init__(self, path: str | os.PathLike[str] | None, inputs: Iterable[str] = ()) -> None:
        self._path = None if path is None else Path(path)
        self._inputs = inputs
        self._out: IO[bytes] | None = None
        self._table: pq.ParquetWriter | None = None
        self._rows: list[dict[str, Any]] = []
        self._used = False

    def __enter__(self) -> Self:
        if self._path is not None:
            self._refuse_input(self._path)
            self._open(self._path)
        return self

    def _open(self, path: Path) -> None:
        with self._writing():
            self._out = path.open("wb")
            if path.suffix.lower() in TABLE_SUFFIXES:
                self._table = pq.ParquetWriter(self._out, TABLE_SCHEMA, compression="zstd")

    def start_over(self) -> None:
        """Forget what was written: the input is read again."""
        if self._used and self._path is not None:
            self.__exit__()
            self._rows.clear()
            self._used = False
            self._open(self._path)

    def __exit__(self, *_: object) -> None:
        if self._out is None:
            return
        with self._writing():
            try:
                if self._table is not None:
                    self._write_rows(self._table)
                    self._table.close()
            finally:
                self._out.close()

    @property
    def wanted(self) -> bool:
        """Whether it was asked for."""
        return self._out is not None

    def problems(self, problems: Iterable[tuple[Problem, str | None]]) -> None:
        """What cannot be read, and the text of the line where there is one."""
        for problem, text in problems:
            self._write(
                {"reject": "problem", **problem.to_dict()} | ({"text": text} if text else {})
            )

    def violations(self, violations: Iterable[Violation]) -> None:
        """What breaks a rule of the schema."""
        for violation in violations:
            self._write({"reject": "violation", **violation.to_dict()})

    def _write(self, line: dict[str, Any]) -> None:
        self._used = True
        with self._writing():
            if self._table is not None:
                self._rows.append(line)
                if len(self._rows) >= _BATCH_ROWS:
                    self._write_rows(self._table)
            elif self._out is not None:
                self._out.write(orjson.dumps(line) + b"\n")

    def _write_rows(self, table: pq.ParquetWriter) -> None:
        if self._rows:
            table.write_batch(pa.RecordBatch.from_pylist(self._rows, schema=TABLE_SCHEMA))
            self._rows.clear()

    def _refuse_input(self, path: Path) -> None:
        for given in (found for text in self._inputs for found in _paths(text)):
            try:
                same = path.exists() and path.samefile(given)
                inside = given.is_dir() and path.resolve().is_relative_to(given.resolve())
            except OSError:
                continue  # No such file, or no path at all: reading it says so.
            if same or inside:
                raise UsageError(
                    f"rejects would go to {path}, which is part of the input",
                    hint="name another file",
                )

    @contextmanager
    def _writing(self) -> Generator[None]:
        try:
            yield
        except OSError as e:
            raise UsageError(
                f"cannot write rejects to {self._path}: {e.strerror or e}",
                hint="name a file in a folder that can be written to",
            ) from e


def _paths(text: str) -> list[Path]:
    """The paths of this machine that a path means; of a pattern the files that it matches."""
    if "://" in text or "\0" in text:
        return []
    path = Path(text)
    has_pattern = any(c in text for c in "*?[") and not path.exists()
    if not has_pattern:
        return [path]
    anchor = Path(path.anchor)
    try:
        return list(anchor.glob(str(path.relative_to(anchor))))
    except (ValueError, NotImplementedError, OSError):
        return []
