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

from omnigraph.errors import OmnigraphError, UsageError, Violation
from omnigraph.input.problems import Problem
from omnigraph.output_file import cannot_open, cannot_write

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
        self._error: OSError | OmnigraphError | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            self._refuse_input(self._path)
            self._open(self._path)
            if isinstance(self._error, OSError):
                self._close()
                raise cannot_open(f"rejects to {self._path}", self._error) from self._error
        return self

    def _open(self, path: Path) -> None:
        with self._writing():
            self._out = path.open("wb")
            if path.suffix.lower() in TABLE_SUFFIXES:
                self._table = pq.ParquetWriter(self._out, TABLE_SCHEMA, compression="zstd")
                self._out.flush()

    def start_over(self) -> None:
        """Forget what was written: the input is read again."""
        if self._used and self._path is not None:
            self._close()
            self._rows.clear()
            self._used = False
            self._open(self._path)

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._close()
        if self._error is None or not self._used:
            return  # Of an input without rejects nothing was to be told.
        failure = self._error
        if isinstance(failure, OSError):
            failure = cannot_write(f"rejects to {self._path}", failure)
        if error is None:
            raise failure
        if isinstance(error, OmnigraphError):
            # What is wrong with the data is what was asked for, and comes first.
            error.details["rejects"] = failure.to_dict()
            said = f"the file of rejects is not complete: {failure.message}"
            error.hint = f"{error.hint}; {said}" if error.hint else said

    def _close(self) -> None:
        out, self._out = self._out, None
        table, self._table = self._table, None
        if out is None:
            return
        with self._writing():
            try:
                if table is not None:
                    self._write_rows(table)
                    table.close()
            finally:
                out.close()

    @property
    def wanted(self) -> bool:
        """Whether it was asked for."""
        return self._path is not None

    @contextmanager
    def telling(self) -> Generator[None]:
        """Everything that is wrong is looked for; failing at that does not hide what is known."""
        try:
            yield
        except OmnigraphError as e:
            self._used = True
            self._error = self._error or e

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
        if self._error is not None:
            return
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
            # Kept until the end: the file that tells what is wrong must not hide what is wrong.
            self._error = self._error or e


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
