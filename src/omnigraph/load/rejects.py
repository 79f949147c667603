"""What a load refused, all of it, in a file: one JSON object a line.

The file is made before anything is read: a place that cannot be written to is told at once and not
after an hour. It stays empty when nothing was refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import orjson

from omnigraph.errors import UsageError, Violation
from omnigraph.load.problems import Problem


class RejectFile:
    """A place for everything that is wrong with an input; without a path, nowhere."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._out: IO[bytes] | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._out = self._path.open("wb")
            except OSError as e:
                raise UsageError(
                    f"cannot write rejects to {self._path}: {e.strerror or e}",
                    hint="name a file in a folder that can be written to",
                ) from e
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._out is not None:
            self._out.close()

    @property
    def wanted(self) -> bool:
        """Whether anybody asked for it."""
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
        if self._out is not None:
            self._out.write(orjson.dumps(line) + b"\n")
