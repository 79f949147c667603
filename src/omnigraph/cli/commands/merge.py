"""`omnigraph branch merge` and `omnigraph commit revert`: bring changes in, or take them out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import (
    WORDS,
    Command,
    actor_option,
    branch_option,
    common_options,
    durability_option,
    examples,
    json_option,
    message_option,
    not_empty,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.errors import (
    ErrorKind,
    MergeConflictError,
    NotFoundError,
    UsageError,
)

if TYPE_CHECKING:
    from omnigraph.branch.merge.resolve import Resolution
    from omnigraph.branch.merge.result import MergeResult
    from omnigraph.graph import Graph

STDIN = "-"


def _decision_options(command: Command) -> Command:
    """What both commands share: how conflicts are found and decided."""
    for option in reversed(_DECISIONS):
        command = option(command)
    return command


_DECISIONS: tuple[Any, ...] = (
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


@click.command(
    "merge",
    epilog=examples(
        "omnigraph branch merge june ./fleet --dry-run",
        "omnigraph branch merge june ./fleet --delete-branch --as alice",
        "omnigraph merge main ./fleet --into june --ours",
        "omnigraph branch merge june ./fleet --resolutions decided.jsonl",
    ),
)
@click.argument("source", type=WORDS, metavar="SOURCE")
@target_options
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
@message_option
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def merge_command(
    settings: Settings,
    source: str,
    uri: str | None,
    store: str | None,
    into: str,
    granularity: str,
    dry_run: bool,
    ours: bool,
    theirs: bool,
    resolutions: str | None,
    delete_branch: bool,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Merge a branch, a tag or a commit into a branch.

    Everything that SOURCE changed since the two were one comes into BRANCH, as one commit with two
    parents or not at all. Where both changed the same property to different values, or where both
    together break a rule of the schema, nobody but you can decide: all conflicts are shown, nothing
    is published, and the exit code is 1.

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
    place = target(uri, store)
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

    _carry_out(settings, place, durability, run, verb="merge")


@click.command(
    "revert",
    epilog=examples(
        "omnigraph commit revert 01JZ8Y6N2D ./fleet --dry-run",
        "omnigraph commit revert 01JZ8Y6N2D ./fleet --message 'Wrong file' --as alice",
    ),
)
@click.argument("commit", type=WORDS, metavar="COMMIT")
@target_options
@branch_option
@_decision_options
@message_option
@actor_option
@durability_option
@json_option
@common_options
@click.pass_obj
def revert_command(
    settings: Settings,
    commit: str,
    uri: str | None,
    store: str | None,
    branch: str,
    granularity: str,
    dry_run: bool,
    ours: bool,
    theirs: bool,
    resolutions: str | None,
    message: str | None,
    actor: str | None,
    durability: str,
) -> None:
    """Take one commit back, as a new commit.

    What the commit changed goes back to what it was before, and everything else stays; a merge goes
    back to its first parent. Where later commits changed the same things that is a conflict, as in
    a merge: --ours keeps what the branch shows now, --theirs what was before the commit.
    """
    place = target(uri, store)
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

    _carry_out(settings, place, durability, run, verb="revert")


def _carry_out(
    settings: Settings,
    place: str,
    durability: str,
    run: Callable[[Graph], MergeResult],
    *,
    verb: str,
) -> None:
    from omnigraph.branch.merge.result import MergeOutcome
    from omnigraph.cli.merge_output import print_conflicts, print_result
    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph:
        settings.writing = True
        try:
            result = run(graph)
        except MergeConflictError as e:
            print_conflicts(e, settings)
            raise
        settings.published = result.commit.id if result.commit is not None else None
        print_result(result, settings, verb=verb)
        answered()
    if result.outcome is MergeOutcome.CONFLICTS:
        click.get_current_context().exit(FAILURE)


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
        return read_resolutions(sys.stdin.buffer.read(), "<stdin>")
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
