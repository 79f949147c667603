"""The way into a load, whoever carries it out.

graph.load(…) -> [entry] -> this process, or Spark -> LoadDone
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import ConstraintError, InputError, UsageError
from omnigraph.load.phases import TellPhase
from omnigraph.load.problems import Problem
from omnigraph.load.rejects import RejectFile
from omnigraph.load.run import check_rows, load_rows
from omnigraph.load.sources import PlannedInput, plan_input
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, TableChange
from omnigraph.pipeline.engine import Engine, choose_engine
from omnigraph.write.delta import WriteMode


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """What somebody wants to load."""

    source: Any
    mode: WriteMode
    branch: str
    type_name: str | None = None
    actor: str | None = None
    message: str | None = None
    progress: Callable[[int], None] | None = None
    phases: TellPhase | None = None
    mapping: Mapping[str, Any] | None = None
    rejects: str | os.PathLike[str] | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDone:
    """What a load did; of a dry run: what it would have done."""

    commit: GraphCommit | None
    rows: Mapping[str, int]
    """Rows of the input by table key."""
    changes: Mapping[str, TableChange]


def run_load(
    repository: Repository, load: LoadRequest, *, engine: str = "auto", spark: Any = None
) -> LoadDone:
    """Carry a load out. See ``Graph.load``."""
    only_spark = spark is not None or load.mapping is not None
    chosen = choose_engine(engine, load.source, needs_spark=only_spark)
    with RejectFile(load.rejects, load.source) as rejects:
        if chosen is Engine.SPARK:
            from omnigraph.pipeline.load import bulk_load

            return bulk_load(repository, load, rejects, spark=spark)
        if only_spark:
            what = "a Spark session" if spark is not None else "a mapping of columns"
            raise UsageError(f"{what} is given, and the engine is local", hint='say engine="spark"')
        return _run_local(repository, load, rejects)


def _run_local(repository: Repository, load: LoadRequest, rejects: RejectFile) -> LoadDone:
    plan = plan_input(
        load.source, type_name=load.type_name, ids=repository.ids, progress=load.progress
    )
    try:
        if load.dry_run:
            changes, rows = check_rows(repository, plan.read, mode=load.mode, branch=load.branch)
            return LoadDone(commit=None, rows=_counts(rows), changes=changes)
        receipt, rows = load_rows(
            repository,
            plan.read,
            mode=load.mode,
            branch=load.branch,
            actor=load.actor,
            message=load.message,
            repeatable=plan.repeatable,
        )
    except (InputError, ConstraintError) as error:
        if rejects.wanted:
            _tell(repository, load, plan, error, rejects)
        raise
    return LoadDone(commit=receipt.commit, rows=_counts(rows), changes=receipt.changes)


def _counts(rows: Mapping[str, Any]) -> dict[str, int]:
    return {key: loaded.rows.num_rows for key, loaded in rows.items()}


def _tell(
    repository: Repository,
    load: LoadRequest,
    plan: PlannedInput,
    error: InputError | ConstraintError,
    rejects: RejectFile,
) -> None:
    """Write down what is wrong: of problems as many as were read, of violations all."""
    if isinstance(error, InputError):
        known = error.details.get("problems", [])
        rejects.problems((Problem(**problem), None) for problem in known)
        return
    violations = error.violations
    if error.total > len(violations) and plan.repeatable:
        try:
            check_rows(repository, plan.read, mode=load.mode, branch=load.branch)
        except ConstraintError as everything:
            violations = everything.violations
    rejects.violations(violations)
