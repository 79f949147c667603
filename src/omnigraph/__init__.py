"""Omnigraph: a typed, versioned property graph on Lance.

The errors are here at once; the rest is imported when it is first used, so that the command line
can answer `--help` without loading Lance and Arrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnigraph.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    ConstraintError,
    CorruptionError,
    Diagnostic,
    ErrorKind,
    FormatError,
    InputError,
    InternalError,
    LimitError,
    MergeConflictError,
    MigrationError,
    NotFoundError,
    OmnigraphError,
    ParameterError,
    QueryError,
    SchemaError,
    StorageError,
    UsageError,
    Violation,
)

if TYPE_CHECKING:
    from omnigraph.branch.diff import Diff
    from omnigraph.branch.merge.resolve import Resolution
    from omnigraph.branch.merge.result import MergeResult
    from omnigraph.graph import Graph, init, open
    from omnigraph.manifest.snapshot import GraphCommit, TableChange
    from omnigraph.query.engine import Explanation
    from omnigraph.query.search.embedding import Embedder
    from omnigraph.results import Commits, LoadResult, MutationResult, QueryResult, Rows
    from omnigraph.version import __version__
    from omnigraph.view import SnapshotView

__all__ = [
    "AlreadyExistsError",
    "CommitUnknownError",
    "Commits",
    "ConflictError",
    "ConstraintError",
    "CorruptionError",
    "Diagnostic",
    "Diff",
    "Embedder",
    "ErrorKind",
    "Explanation",
    "FormatError",
    "Graph",
    "GraphCommit",
    "InputError",
    "InternalError",
    "LimitError",
    "LoadResult",
    "MergeConflictError",
    "MergeResult",
    "MigrationError",
    "MutationResult",
    "NotFoundError",
    "OmnigraphError",
    "ParameterError",
    "QueryError",
    "QueryResult",
    "Resolution",
    "Rows",
    "SchemaError",
    "SnapshotView",
    "StorageError",
    "TableChange",
    "UsageError",
    "Violation",
    "__version__",
    "init",
    "open",
]

_HOMES = {
    "Commits": "omnigraph.results",
    "Diff": "omnigraph.branch.diff",
    "Embedder": "omnigraph.query.search.embedding",
    "Explanation": "omnigraph.query.engine",
    "Graph": "omnigraph.graph",
    "GraphCommit": "omnigraph.manifest.snapshot",
    "LoadResult": "omnigraph.results",
    "MergeResult": "omnigraph.branch.merge.result",
    "MutationResult": "omnigraph.results",
    "QueryResult": "omnigraph.results",
    "Resolution": "omnigraph.branch.merge.resolve",
    "Rows": "omnigraph.results",
    "SnapshotView": "omnigraph.view",
    "TableChange": "omnigraph.manifest.snapshot",
    "__version__": "omnigraph.version",
    "init": "omnigraph.graph",
    "open": "omnigraph.graph",
}
"""Where the names live that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
