"""`omnigraph shell`: a conversation with a graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO, cast

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.interrupts import conversation
from omnigraph.cli.options import (
    actor_option,
    branch_option,
    common_options,
    durability_option,
    examples,
    target,
    target_options,
)
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import is_terminal
from omnigraph.clock import SystemClock
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind, decoded

if TYPE_CHECKING:
    from omnigraph.cli.shell.session import Session


@click.command(
    "shell",
    epilog=examples(
        "omnigraph shell ./fleet",
        "echo 'match { $v: Vessel } return { $v.name }' | omnigraph shell ./fleet",
    ),
)
@target_options
@branch_option
@actor_option
@durability_option
@common_options
@click.pass_obj
def shell_command(
    settings: Settings,
    uri: str | None,
    store: str | None,
    branch: str,
    actor: str | None,
    durability: str,
) -> None:
    """Ask and change a graph interactively.

    Queries and mutations run as soon as they are complete; Tab completes names of the schema.
    :help lists the commands of the shell. Earlier inputs are kept in
    $XDG_STATE_HOME/omnigraph/history (~/.local/state if it is not set).

    From a pipe the inputs are carried out one after the other. An error does not end the shell; the
    exit code is 1 if there was one.
    """
    place = target(uri, store)
    if cast("TextIO | None", sys.stdin) is None:
        raise UsageError("stdin is closed", hint="the shell reads its inputs from there")
    interactive = is_terminal(sys.stdin) and is_terminal(sys.stdout)

    from omnigraph.cli.shell.session import Session
    from omnigraph.graph import open as open_graph

    with open_graph(place, durability=durability) as graph, conversation():
        session = Session(
            graph, settings, SystemClock(), branch=branch, actor=actor, timing=interactive
        )
        if interactive:
            _at_prompt(session, settings, graph.uri)
        else:
            _from_pipe(session)
    if session.failed and not interactive:
        raise click.exceptions.Exit(FAILURE)


def _at_prompt(session: Session, settings: Settings, uri: str) -> None:
    from omnigraph.cli.shell.prompt import interact, open_history

    settings.output.notice(f"{uri}: :help shows what there is, Ctrl-D leaves")
    interact(session, open_history(os.environ))


def _from_pipe(session: Session) -> None:
    from omnigraph.cli.shell.reading import inputs

    for text in inputs(_lines()):
        session.run(text)
        if session.done:
            return


def _lines() -> Iterator[str]:
    for raw in sys.stdin.buffer:
        yield decoded(raw, "<stdin>", TextKind.QUERY).rstrip("\r\n")
