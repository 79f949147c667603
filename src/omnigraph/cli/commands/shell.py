"""`omnigraph shell`: a conversation with a graph."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO, cast

from omnigraph.cli.command import command
from omnigraph.cli.interrupts import conversation
from omnigraph.cli.options import actor_option, branch_option, durability_option
from omnigraph.cli.settings import Settings, fail_if
from omnigraph.cli.sources import STDIN_NAME
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind, decoded
from omnigraph.work_time import WorkClock

if TYPE_CHECKING:
    from omnigraph.cli.shell.session import Session


@command(
    "shell",
    "omnigraph shell ./fleet",
    "echo 'match { $v: Vessel } return { $v.name }' | omnigraph shell ./fleet",
    with_json=False,
)
@branch_option
@actor_option
@durability_option
def shell_command(settings: Settings, branch: str, actor: str | None) -> None:
    """Ask and change a graph interactively.

    Queries and mutations run as soon as they are complete; Tab completes names of the schema.
    :help lists the commands of the shell. Earlier inputs are kept in
    $XDG_STATE_HOME/omnigraph/history (~/.local/state if it is not set).

    From a pipe the inputs are carried out one after the other. An error does not end the shell; the
    exit code is 1 if there was one.
    """
    if cast("TextIO | None", sys.stdin) is None:
        raise UsageError("stdin is closed", hint="the shell reads its inputs from there")
    interactive = is_terminal(sys.stdin) and is_terminal(sys.stdout)

    from omnigraph.cli.shell.session import Session

    with settings.graph() as graph, conversation(), WorkClock() as clock:
        session = Session(graph, settings, clock, branch=branch, actor=actor, timing=interactive)
        if interactive:
            _at_prompt(session, settings, graph.uri)
        else:
            _from_pipe(session)
    fail_if(session.failed and not interactive)


def _at_prompt(session: Session, settings: Settings, uri: str) -> None:
    from omnigraph.cli.shell.prompt import interact, open_history
    from omnigraph.cli.shell.warming import warming

    settings.output.notice(f"{uri}: :help shows what there is, Ctrl-D leaves")
    with warming():
        interact(session, open_history(os.environ))


def _from_pipe(session: Session) -> None:
    from omnigraph.cli.shell.reading import inputs

    for text in inputs(_lines()):
        session.run(text)
        if session.done:
            return


def _lines() -> Iterator[str]:
    for raw in sys.stdin.buffer:
        yield decoded(raw, STDIN_NAME, TextKind.QUERY).rstrip("\r\n")
