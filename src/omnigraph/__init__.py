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
    WriteInterrupted,
)

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.api.opening import init, open
    from omnigraph.api.view import SnapshotView
    from omnigraph.branch.diff import Diff
    from omnigraph.branch.merge.conflicts import MergeResult
    from omnigraph.branch.merge.resolve import Resolution
    from omnigraph.housekeeping.audit import Recovered
    from omnigraph.infer.schema import Inferred, infer_schema
    from omnigraph.manifest.snapshot import GraphCommit, TableChange
    from omnigraph.query.engine import Explanation
    from omnigraph.query.search.embedding import Embedder
    from omnigraph.results import (
        Commits,
        IndexNotice,
        LoadResult,
        MutationResult,
        QueryResult,
        Rows,
    )
    from omnigraph.schema.migrate.plan import SchemaPlan
    from omnigraph.upkeep.check import CheckReport
    from omnigraph.upkeep.cleanup import CleanupReport
    from omnigraph.upkeep.indexes import IndexState, IndexStatus
    from omnigraph.upkeep.optimize import OptimizeResult
    from omnigraph.upkeep.recovery import PendingIntent, RecoveryReport
    from omnigraph.upkeep.repair import RepairReport
    from omnigraph.upkeep.schema_apply import SchemaApplyResult
    from omnigraph.upkeep.status import GraphStatus
    from omnigraph.version import __version__

__all__ = [
    "AlreadyExistsError",
    "CheckReport",
    "CleanupReport",
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
    "GraphStatus",
    "IndexNotice",
    "IndexState",
    "IndexStatus",
    "Inferred",
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
    "OptimizeResult",
    "ParameterError",
    "PendingIntent",
    "QueryError",
    "QueryResult",
    "Recovered",
    "RecoveryReport",
    "RepairReport",
    "Resolution",
    "Rows",
    "SchemaApplyResult",
    "SchemaError",
    "SchemaPlan",
    "SnapshotView",
    "StorageError",
    "TableChange",
    "UsageError",
    "Violation",
    "WriteInterrupted",
    "__version__",
    "infer_schema",
    "init",
    "open",
]

_MODULES = {
    "CheckReport": "omnigraph.upkeep.check",
    "CleanupReport": "omnigraph.upkeep.cleanup",
    "Commits": "omnigraph.results",
    "Diff": "omnigraph.branch.diff",
    "Embedder": "omnigraph.query.search.embedding",
    "Explanation": "omnigraph.query.engine",
    "Graph": "omnigraph.api.graph",
    "GraphCommit": "omnigraph.manifest.snapshot",
    "GraphStatus": "omnigraph.upkeep.status",
    "IndexNotice": "omnigraph.results",
    "IndexState": "omnigraph.upkeep.indexes",
    "IndexStatus": "omnigraph.upkeep.indexes",
    "Inferred": "omnigraph.infer.schema",
    "LoadResult": "omnigraph.results",
    "MergeResult": "omnigraph.branch.merge.conflicts",
    "MutationResult": "omnigraph.results",
    "OptimizeResult": "omnigraph.upkeep.optimize",
    "PendingIntent": "omnigraph.upkeep.recovery",
    "QueryResult": "omnigraph.results",
    "Recovered": "omnigraph.housekeeping.audit",
    "RecoveryReport": "omnigraph.upkeep.recovery",
    "RepairReport": "omnigraph.upkeep.repair",
    "Resolution": "omnigraph.branch.merge.resolve",
    "Rows": "omnigraph.results",
    "SchemaApplyResult": "omnigraph.upkeep.schema_apply",
    "SchemaPlan": "omnigraph.schema.migrate.plan",
    "SnapshotView": "omnigraph.api.view",
    "TableChange": "omnigraph.manifest.snapshot",
    "__version__": "omnigraph.version",
    "infer_schema": "omnigraph.infer.schema",
    "init": "omnigraph.api.opening",
    "open": "omnigraph.api.opening",
}
"""The modules of the names that are imported when they are first used."""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
