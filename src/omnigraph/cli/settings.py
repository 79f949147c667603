"""What a command has while it runs: its options, its output, its graph, a person to ask."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import click

from omnigraph.cli.answers import Answer, Stream
from omnigraph.cli.failure import FAILURE
from omnigraph.cli.interrupts import answered, silence_libraries
from omnigraph.cli.meter import Meter, MeterUnit
from omnigraph.cli.output import CommandOutput, JsonOutput, TextOutput
from omnigraph.cli.streams import STDOUT, is_terminal, stdout_writer, whole_file
from omnigraph.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from omnigraph.api.graph import Graph
    from omnigraph.choices import DurabilityWord
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
        self.durability: DurabilityWord = "process"
        """What an acknowledged write survives."""
        self.writing = False
        """Whether the graph is being changed: an interrupt may come before or after the commit."""
        self.published: str | None = None
        """The commit that was published: true whatever fails afterwards."""
        self.creating = False
        """Whether the graph is being created: there is no handle that knows how far that is."""
        self._handle: Graph | None = None
        self._published_before: str | None = None

    @property
    def output(self) -> CommandOutput:
        """Where this command's results and errors go."""
        return JsonOutput() if self.json else TextOutput(quiet=self.quiet)

    def show(self, value: Answer | Stream, commit: GraphCommit | None = None, **facts: Any) -> None:
        """The answer, after which Ctrl-C comes too late; ``commit`` is what was published.

        ``facts`` are for the text alone: programs get the value.
        """
        if commit is not None:
            self.published = commit.id
        self.output.show(value, **facts)
        answered()

    # -------------------------------------------------------- data

    def stdin(self, instead: str) -> BinaryIO:
        """Stdin as bytes; ``instead`` helps if it is closed."""
        if cast("TextIO | None", sys.stdin) is None:
            raise UsageError("stdin is closed", hint=instead)
        if is_terminal(sys.stdin):
            self.output.notice("reading from the terminal; end with Ctrl-D")
        return cast(BinaryIO, sys.stdin.buffer)

    def data_path(self, name: str | None) -> Path | None:
        """The file of --output; None is stdout, which --json needs for the answer."""
        if name is not None and name not in STDOUT:
            return Path(name)
        if self.json:
            raise UsageError("the data is on stdout already", hint="with --json, give --output too")
        return None

    @contextmanager
    def data_sink(
        self, path: Path | None, label: str, total: int | None = None
    ) -> Generator[tuple[BinaryIO, Meter]]:
        """Where entities go, a file or stdout, and a meter that counts them."""
        # A bar between the lines of data on the same terminal is in the way.
        mixed = path is None and is_terminal(sys.stdout)
        meter = Meter() if mixed else self.output.meter(label, total, MeterUnit.ENTITIES)
        sink = stdout_writer("write to a file with --output") if path is None else whole_file(path)
        with sink as out, meter:
            yield cast(BinaryIO, out), meter

    # -------------------------------------------------------- the graph

    @contextmanager
    def graph(self, *, writing: bool = False) -> Generator[Graph]:
        """The graph that the command line names, open as long as the block runs."""
        from omnigraph.api.opening import moved_text
        from omnigraph.api.opening import open as open_graph

        silence_libraries()
        try:
            opened = open_graph(self.place, durability=self.durability)
        except NotFoundError as e:
            e.hint = swapped(self.place) or e.hint
            raise
        with opened as graph:
            if (before := graph.upkeep.moved_from()) is not None:
                self.output.notice(moved_text(graph.uri, before))
            self.writing = writing
            self._handle = graph
            yield graph

    def published_so_far(self) -> str | None:
        """The commit that was published, whether the answer has said so yet or not."""
        if self.published is None and self.writing and self._handle is not None:
            newest = self._handle.published_commit_id
            return newest if newest != self._published_before else None
        return self.published

    def start_over(self) -> None:
        """Another input of the same process: what earlier ones published is not its own."""
        self.writing, self.published = False, None
        self._published_before = self._handle.published_commit_id if self._handle else None

    # -------------------------------------------------------- the person

    def can_ask(self) -> bool:
        """Whether there is a person to answer."""
        return not self.json and is_terminal(sys.stdin)

    def ask(self, question: str) -> None:
        """End the command unless the answer is yes."""
        if not click.confirm(question, err=True):
            self.output.notice("nothing was changed")
            raise click.exceptions.Exit(FAILURE)


def swapped(place: str) -> str | None:
    """A hint if another argument is the graph, where the one that should be is none."""
    context = click.get_current_context(silent=True)
    if context is None or "://" in place or Path(place).is_dir():
        return None
    from omnigraph.manifest.snapshot import MAIN_PATH

    named = [p.name for p in context.command.params if isinstance(p, click.Argument) and p.name]
    words = [w for name in named if isinstance(w := context.params.get(name), str)]
    graphs = [w for w in words if w != place and ("://" in w or (Path(w) / MAIN_PATH).is_dir())]
    if place not in words or not graphs:
        return None
    found = {place: graphs[0], graphs[0]: place}
    meant = shlex.join([found.get(word, word) for word in words])
    return f"did you mean: {context.command_path} {meant}"


def needs_yes(what: str, why: str) -> UsageError:
    """The error of a command that must be confirmed and cannot ask."""
    return UsageError(f"{what} needs --yes", hint=why)


def fail_if(failed: bool) -> None:
    """End the command with the exit code of a failure, after the answer has said what failed."""
    if failed:
        raise click.exceptions.Exit(FAILURE)
