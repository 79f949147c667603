"""What a command has while it runs: its options, its output, its graph, a person to ask."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from omnigraph.cli.answers import Answer, Stream
from omnigraph.cli.failure import FAILURE
from omnigraph.cli.interrupts import answered, hush_libraries
from omnigraph.cli.output import CommandOutput, JsonOutput, TextOutput
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import UsageError

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.manifest.snapshot import GraphCommit


class Settings:
    """Filled by the options as they are read, and by the command as it goes on."""

    def __init__(self, *, json: bool = False, quiet: bool = False) -> None:
        self.json = json
        self.json_said = False
        """Whether the option was given, before or after the command's name."""
        self.quiet = quiet
        self.place = ""
        """The graph that the command line names."""
        self.durability = "process"
        """What an acknowledged write survives."""
        self.writing = False
        """Whether the graph is being changed: an interrupt may come before or after the commit."""
        self.published: str | None = None
        """The commit that was published: true whatever fails afterwards."""

    @property
    def output(self) -> CommandOutput:
        """Where this command's results and errors go."""
        return JsonOutput() if self.json else TextOutput(quiet=self.quiet)

    def show(self, value: Answer | Stream) -> None:
        """The answer, after which Ctrl-C comes too late."""
        self.output.show(value)
        answered()

    # -------------------------------------------------------- the graph

    @contextmanager
    def graph(self, place: str | None = None, *, writing: bool = False) -> Generator[Graph]:
        """The graph that the command line names, or another, open as long as the block runs."""
        from omnigraph.api.opening import open as open_graph

        hush_libraries()
        with open_graph(place or self.place, durability=self.durability) as graph:
            self.writing = writing
            yield graph

    def publish(self, commit: GraphCommit | None) -> None:
        """Remember what was published; None is a write that changed nothing."""
        self.published = commit.id if commit is not None else None

    # -------------------------------------------------------- the person

    def can_ask(self) -> bool:
        """Whether there is a person to answer."""
        return not self.json and is_terminal(sys.stdin)

    def ask(self, question: str) -> None:
        """End the command unless the answer is yes."""
        if not click.confirm(question, err=True):
            self.output.notice("nothing was changed")
            raise click.exceptions.Exit(FAILURE)


def needs_yes(what: str, why: str) -> UsageError:
    """There is no person to ask, and it was not said beforehand."""
    return UsageError(f"{what} needs --yes", hint=why)


def fail_if(failed: bool) -> None:
    """End the command with the exit code of a failure, after it has told what failed."""
    if failed:
        raise click.exceptions.Exit(FAILURE)
