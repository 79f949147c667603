"""Which state of a graph a command reads: options of everything that reads.

command line -> [state] -> graph.snapshot | graph.at -> a view of one fixed state
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from omnigraph.cli.options import WORDS, branch_option, commit_option, not_empty
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.view import SnapshotView


@dataclass(frozen=True, slots=True, kw_only=True)
class StateAsked:
    """A state as it was asked for."""

    branch: str | None
    """None: main, or for a commit whichever branch has it."""
    commit: str | None
    at: str | None

    @property
    def pinned(self) -> bool:
        """Whether one state was asked for, and not what a branch shows now."""
        return self.commit is not None or self.at is not None

    @property
    def said(self) -> bool:
        """Whether any of the options was given."""
        return self.pinned or self.branch is not None

    def view(self, graph: Graph) -> SnapshotView:
        """The state itself."""
        if self.at is not None:
            return graph.at(self.at)
        return graph.snapshot(self.branch, commit=self.commit)


def state_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--branch, --commit and --at; the command gets them as one ``state``."""

    @wraps(command)
    def run(*args: Any, **given: Any) -> Any:
        return command(*args, state=_state(given), **given)

    at = click.option(
        "--at",
        type=WORDS,
        metavar="TARGET",
        callback=not_empty,
        help="Read this state: a branch, a tag, a commit, a version (main@12) or a moment "
        "(main@2026-11-15T10:00Z).",
    )
    return branch_option(commit_option(at(run)))


def _state(given: dict[str, Any]) -> StateAsked:
    """Take our options out of those of the command."""
    context = click.get_current_context()
    said = context.get_parameter_source("branch") is ParameterSource.COMMANDLINE
    branch, commit, at = given.pop("branch"), given.pop("commit"), given.pop("at")
    if at is not None and (said or commit is not None):
        other = "--commit" if commit is not None else "--branch"
        raise UsageError(f"--at and {other} both name a state", hint="give one of them")
    return StateAsked(branch=branch if said else None, commit=commit, at=at)
