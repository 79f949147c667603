"""Whether a source is a graph of another library or database, and of which.

source -> [detect] -> tables of its types, or None: then it is tables already
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from omnigraph.infer.graphs import kuzu, readers
from omnigraph.infer.graphs.entities import EdgeRows, Entities

_GRAPHML = (".graphml", ".xml")
_HEADER_BYTES = 1 << 16


def graph_tables(source: Any) -> dict[str, pa.Table | EdgeRows] | None:
    """A table a type, if the source is a graph that is known here."""
    found = _entities(source)
    return None if found is None else found.tables()


def _entities(source: Any) -> Entities | None:
    if all(hasattr(source, name) for name in ("nodes", "edges", "adjacency", "is_directed")):
        return readers.from_networkx(source)
    paths = _paths(source)
    if not paths:
        return None
    first = paths[0]
    if len(paths) == 1 and first.suffix.lower() in _GRAPHML:
        return readers.from_graphml(first)
    if len(paths) == 1 and (first / kuzu.SCHEMA).is_file():
        return kuzu.from_kuzu(first)
    if all(p.suffix.lower() == ".csv" and readers.is_neo4j(_header(p)) for p in paths):
        return readers.from_neo4j(paths)
    return None


def _paths(source: Any) -> list[Path]:
    """The files that are named, if it is nothing but names of files."""
    several = isinstance(source, (list, tuple))
    given = list(cast("Sequence[Any]", source)) if several else [source]
    if not all(isinstance(p, (str, os.PathLike)) for p in given):
        return []
    return [Path(p) for p in given]


def _header(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline(_HEADER_BYTES).decode(errors="replace")
    except OSError:
        return ""
