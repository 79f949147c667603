"""`omnigraph branch merge` and `omnigraph commit revert`: bring changes in, or take them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import command
from omnigraph.cli.options import (
    all_of,
    branch_option,
    commit_options,
    not_empty,
    text_argument,
    text_option,
)
from omnigraph.cli.settings import Settings, fail_if
from omnigraph.cli.sources import read_bytes
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind

if TYPE_CHECKING:
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
    text_option(
        "--resolutions",
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
@text_argument("source", metavar="SOURCE")
@text_option(
    "--into",
    default="main",
    show_default=True,
    metavar="BRANCH",
    callback=not_empty,
    help="The branch that takes the changes.",
)
@_decision_options
@click.option("--delete-branch", is_flag=True, help="Delete the source when it is merged.")
@commit_options
def merge_command(settings: Settings, source: str, **options: Any) -> None:
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
    _carry_out(settings, "merge", source, **options)


@command(
    "revert",
    "omnigraph commit revert 01JZ8Y6N2D ./fleet --dry-run",
    "omnigraph commit revert 01JZ8Y6N2D ./fleet --message 'Wrong file' --as alice",
)
@text_argument("commit", metavar="COMMIT")
@branch_option
@_decision_options
@commit_options
def revert_command(settings: Settings, commit: str, **options: Any) -> None:
    """Take one commit back, as a new commit.

    What the commit changed goes back to what it was before, and everything else stays; a merge goes
    back to its first parent. Where later commits changed the same things that is a conflict, as in
    a merge: --ours keeps what the branch shows now, --theirs what was before the commit.
    """
    _carry_out(settings, "revert", commit, **options)


def _carry_out(
    settings: Settings,
    verb: str,
    what: str,
    *,
    ours: bool,
    theirs: bool,
    resolutions: str | None,
    **options: Any,
) -> None:
    if ours and theirs:
        raise UsageError("--ours and --theirs exclude each other", hint="give one of them")
    prefer = "ours" if ours else "theirs" if theirs else None
    decided = _resolutions(resolutions, settings)

    from omnigraph.branch.merge.conflicts import MergeOutcome

    with settings.graph(writing=True) as graph:
        run = graph.merge if verb == "merge" else graph.revert
        result = run(what, prefer=prefer, resolutions=decided, **options)
        settings.show(result, result.commit, verb=verb)
    fail_if(result.outcome is MergeOutcome.CONFLICTS)


def _resolutions(name: str | None, settings: Settings) -> tuple[Resolution, ...]:
    if name is None:
        return ()
    from omnigraph.branch.merge.resolve import read_resolutions

    return read_resolutions(*read_bytes(name, TextKind.RESOLUTIONS, settings))
