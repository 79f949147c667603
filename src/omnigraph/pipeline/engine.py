"""Which engine carries out a load: one process, or Spark.

One process is faster as long as it can hold the input, on every size that was measured; Spark is
for what it cannot hold, for what it cannot read, and for clusters. Starts nothing and imports no
Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any, cast

from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.storage.inputs import UnreadableInput, find_inputs

AUTO_BYTES = 2 << 30
"""Files of this size together are for Spark. Measured (`benchmarks/spark_auto.py`): of JSONL one
process needs 0.25 GiB and 1.2 to 1.3 times the size, 2.7 GiB here; below it needs less than Spark
does on the same machine (1.5 to 2.6 GiB), and is faster than a session that must be started."""
_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".gz", ".zst", ".zstd")
"""Of files that only Spark reads."""


class Engine(StrEnum):
    """Who carries out a load."""

    LOCAL = "local"
    SPARK = "spark"


def choose_engine(engine: str, source: Any, *, needs_spark: bool = False) -> Engine:
    """The engine for an input. ``auto``: by what the input is and how large.

    ``needs_spark``: something was asked for that only Spark does.
    """
    if engine in tuple(Engine):
        return Engine(engine)
    if engine != "auto":
        raise UsageError(f"unknown engine '{engine}'", hint="use auto, local or spark")
    if needs_spark or _is_for_spark(source):
        return Engine.SPARK
    return Engine.SPARK if _is_large(source) else Engine.LOCAL


def _is_large(source: Any) -> bool:
    """Whether files are too large for one process, and there is an alternative."""
    if (input_bytes(source) or 0) < AUTO_BYTES:
        return False
    from omnigraph.pipeline.session import spark_available

    return spark_available()


def input_bytes(source: Any) -> int | None:
    """How large an input of files is; None if it is none, or cannot be found."""
    try:
        paths = _paths(source)
        found = [file.size for path in paths for file in find_inputs(path)]
    except (UnreadableInput, OmnigraphError):
        return None  # whoever reads it says what is wrong
    return sum(found) if paths else None


def _is_for_spark(source: Any) -> bool:
    """Whether an input is nothing that one process reads."""
    if _is_spark_frame(source):
        return True
    if isinstance(source, Mapping):
        members = cast("Mapping[Any, Any]", source).values()
        return any(_is_for_spark(member) for member in members)
    return any(_is_foreign(path) for path in _paths(source))


def _is_foreign(path: str) -> bool:
    """Whether a path is none of a plain file of JSON lines on this machine."""
    if path.startswith("s3://") or PurePosixPath(path.lower()).suffix in _SUFFIXES:
        return True
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def _is_spark_frame(value: Any) -> bool:
    return hasattr(value, "mapInArrow")


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _paths(source: Any) -> list[str]:
    """The paths in a source of files; none for any other."""
    if _is_path(source):
        return [os.fsdecode(source)]
    if isinstance(source, Mapping):
        members = cast("Mapping[Any, Any]", source).values()
        return [path for member in members for path in _paths(member)]
    if isinstance(source, Sequence) and not isinstance(source, (bytes, bytearray, memoryview)):
        members = cast("Sequence[Any]", source)
        if members and all(_is_path(m) for m in members):
            return [os.fsdecode(m) for m in members]
    return []
