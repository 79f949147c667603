"""`omnigraph branch merge` and `omnigraph commit revert`: bring changes in, or take them out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, cast

import click

from omnigraph.cli.answers import Merged
from omnigraph.cli.command import command
from omnigraph.cli.options import (
    WORDS,
    all_of,
    branch_option,
    commit_options,
    not_empty,
)
from omnigraph.cli.settings import Settings, fail_if
from omnigraph.cli.sources import STDIN, STDIN_NAME
from omnigraph.errors import ErrorKind, NotFoundError, UsageError

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.branch.merge.conflicts import MergeResult
    from omnigraph.branch.merge.resolve import Resolution


_decision_options = all_of(
    click.option(
        "--granularity",
        type=click.Choice(["property", "row"]),
        default="property",
        show_default=True,
        help="What both sides may not change: the same property of an entity, or the same entity.",
    ),
    click.option("--dry-run", is_flag=True, help="Show what would happen; publish nothing."),
    click.option("--ours", is_flag=True, help="Decide conflicts for the branch that is changed."),
    click.option("--theirs", is_flag=True, help="Decide conflicts for what is brought in."),
    click.option(
        "--resolutions",
        type=WORDS,
        metavar="FILE",
        callback=not_empty,
        help='Decide one by one: JSON lines such as {"node": TYPE, "id": ID, "take": "theirs"}; - '
        "reads stdin.",
    ),
)
"""How conflicts are found and decided."""


@command(
    "merge",
    "omnigraph branch merge june ./fleet --dry-run",
    "omnigraph branch merge june ./fleet --delete-branch --as alice",
    "omnigraph merge main ./fleet --into june --ours",
    "omnigraph branch merge june ./fleet --resolutions decided.jsonl",
)
@click.argument("source", type=WORDS, metavar="SOURCE")
@click.option(
    "--into",
    type=WORDS,
    default="main",
    show_default=True,
    metavar="BRANCH",
    callback=not_empty,
    help="The branch that takes the changes.",
)
@_decision_options
@click.option("--delete-branch", is_flag=True, help="Delete the source when it is merged.")
@commit_options
def merge_command(
    settings: Settings,
    source: str,
    into: str,
    granularity: str,
    dry_run: bool,
    ours: bool,
    theirs: bool,
    resolutions: str | None,
    delete_branch: bool,
    message: str | None,
    actor: str | None,
) -> None:
    """Merge a branch, a tag or a commit into a branch.

    Everything that SOURCE changed since the two were one comes into BRANCH, as one commit with two
    parents or not at all. Where both changed the same property to different values, or where both
    together break a rule of the schema, only you can decide: all conflicts are shown, nothing is
    published, and the exit code is 1.

    \b
    Decide for one side with --ours or --theirs, or one by one in a file of JSON lines:
      {"node": "Vessel", "id": "100", "take": "theirs"}
      {"node": "Vessel", "id": "200", "properties": {"flag": {"take": "base"},
                                                      "name": {"value": "Brisa"}}}

    \b
    With --json the answer is
      {"outcome", "source", "target", "source_commit_id", "base_commit_ids", "commit", "changes",
       "merge_conflicts"}
    """
    prefer = _prefer(ours, theirs)
    decided = _resolutions(resolutions)

    def run(graph: Graph) -> MergeResult:
        return graph.merge(
            source,
            into=into,
            granularity=granularity,
            prefer=prefer,
            resolutions=decided,
            dry_run=dry_run,
            delete_branch=delete_branch,
            actor=actor,
            message=message,
        )

    _carry_out(settings, run, verb="merge")


@command(
    "revert",
    "omnigraph commit revert 01JZ8Y6N2D ./fleet --dry-run",
    "omnigraph commit revert 01JZ8Y6N2D ./fleet --message 'Wrong file' --as alice",
)
@click.argument("commit", type=WORDS, metavar="COMMIT")
@branch_option
@_decision_options
@commit_options
def revert_command(
    settings: Settings,
    commit: str,
    branch: str,
    granularity: str,
    dry_run: bool,
    ours: bool,
    theirs: bool,
    resolutions: str | None,
    message: str | None,
    actor: str | None,
) -> None:
    """Take one commit back, as a new commit.

    What the commit changed goes back to what it was before, and everything else stays; a merge goes
    back to its first parent. Where later commits changed the same things that is a conflict, as in
    a merge: --ours keeps what the branch shows now, --theirs what was before the commit.
    """
    prefer = _prefer(ours, theirs)
    decided = _resolutions(resolutions)

    def run(graph: Graph) -> MergeResult:
        return graph.revert(
            commit,
            branch=branch,
            granularity=granularity,
            prefer=prefer,
            resolutions=decided,
            dry_run=dry_run,
            actor=actor,
            message=message,
        )

    _carry_out(settings, run, verb="revert")


def _carry_out(settings: Settings, run: Callable[[Graph], MergeResult], *, verb: str) -> None:
    from omnigraph.branch.merge.conflicts import MergeOutcome

    with settings.graph(writing=True) as graph:
        result = run(graph)
        settings.publish(result.commit)
        settings.show(Merged(result=result, verb=verb))
    fail_if(result.outcome is MergeOutcome.CONFLICTS)


def _prefer(ours: bool, theirs: bool) -> str | None:
    if ours and theirs:
        raise UsageError("--ours and --theirs exclude each other", hint="give one of them")
    return "ours" if ours else "theirs" if theirs else None


def _resolutions(name: str | None) -> tuple[Resolution, ...]:
    if name is None:
        return ()
    from omnigraph.branch.merge.resolve import read_resolutions

    if name == STDIN:
        if cast("TextIO | None", sys.stdin) is None:
            raise UsageError("stdin is closed", hint="give the path of a file")
        return read_resolutions(sys.stdin.buffer.read(), STDIN_NAME)
    try:
        return read_resolutions(Path(name).read_bytes(), name)
    except FileNotFoundError as e:
        raise NotFoundError(
            f"no resolution file {name}",
            kind=ErrorKind.FILE_NOT_FOUND,
            hint="give the path of a file with JSON lines",
        ) from e
    except (OSError, ValueError) as e:  # ValueError: a name with a null character.
        why = e.strerror if isinstance(e, OSError) else e
        raise UsageError(f"cannot read the resolution file {name}: {why}") from e
