"""How people see each value that a command shows: one function a type, found by the type's name.

    Output.show -> [texts] -> lines

By name, because commands answer with a few of these types and importing all of them takes longer
than most commands. A test holds the names to the types that the functions take.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from omnigraph.cli.lines import Line, TextLook

TEXTS = {
    "Created": "graph.created",
    "LoadResult": "graph.loaded",
    "MutationResult": "graph.mutated",
    "Exported": "graph.exported",
    "SnapshotView": "graph.contents",
    "Release": "graph.release",
    "CompletionInstalled": "graph.completion_installed",
    "BranchNames": "history.branch_names",
    "BranchDetails": "history.branch_details",
    "BranchInfo": "history.branch",
    "BranchChanged": "history.branch_changed",
    "TagList": "history.tag_list",
    "Tag": "history.tag",
    "TagChanged": "history.tag_changed",
    "CommitList": "history.commit_list",
    "GraphCommit": "history.commit",
    "CommitLog": "history.commit_log",
    "ResetDone": "history.reset_done",
    "MergeResult": "merge.merged",
    "ValidSchema": "schema.valid_schema",
    "Inferred": "schema.inferred",
    "SchemaPlan": "schema.schema_plan",
    "SchemaApplyResult": "schema.schema_applied",
    "Linted": "schema.linted",
    "FormattedFiles": "schema.formatted_files",
    "GraphStatus": "upkeep.status",
    "CheckReport": "upkeep.checked",
    "CleanupReport": "upkeep.cleaned_up",
    "PendingWrites": "upkeep.pending_writes",
    "PendingIntent": "upkeep.pending_write",
    "RecoveryReport": "upkeep.recovered",
    "OptimizeResult": "upkeep.optimized",
    "IndexList": "upkeep.index_list",
    "RepairReport": "upkeep.repaired",
}
"""The name of a type, and the function that makes lines of its values."""
REPORTS = frozenset(
    {
        "Created", "LoadResult", "MutationResult", "Exported", "BranchChanged", "TagChanged",
        "ResetDone", "ValidSchema", "OptimizeResult", "CompletionInstalled",
    }
)  # fmt: skip
"""Answers that only say what was done: --quiet leaves them out."""


def lines_of(value: Any, look: TextLook, **facts: Any) -> Iterable[Line]:
    """The value as lines, as they suit the place where they are read.

    ``facts`` are what the text says besides, such as how long it took.
    """
    name = type(value).__name__
    if look.quiet and name in REPORTS:
        return ()
    module, _, function = TEXTS[name].partition(".")
    return getattr(import_module(f"{__name__}.{module}"), function)(value, look, **facts)
