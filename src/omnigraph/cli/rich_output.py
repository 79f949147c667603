"""Output for people: colours on a terminal, plain and never cut off in a pipe."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from rich.console import Console, RenderableType
from rich.text import Text

from omnigraph.cli.failure import body, headline
from omnigraph.cli.meter import BarMeter, Meter, SilentMeter, Unit
from omnigraph.cli.output import Output
from omnigraph.cli.streams import is_terminal, printable, write_error, write_text
from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.graph import SnapshotView
    from omnigraph.manifest.snapshot import GraphCommit
    from omnigraph.results import Commits, LoadResult

_WIDTH_PIPED = 1_000_000
"""Nobody's terminal: tables take the width of their content."""
_TYPES_ON_TERMINAL_MAX = 8


class RichOutput(Output):
    """Text for people. ``quiet`` keeps to what was asked for and errors."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def created(self, uri: str, view: SnapshotView) -> None:
        """A graph was created."""
        from omnigraph.cli.text import created_text

        if not self._quiet:
            self._print(created_text(uri, view))

    def loaded(self, result: LoadResult, elapsed_s: float) -> None:
        """A load is done."""
        from omnigraph.cli.text import loaded_text

        if not self._quiet:
            types_max = _TYPES_ON_TERMINAL_MAX if is_terminal(sys.stdout) else None
            self._print(loaded_text(result, elapsed_s, types_max=types_max))

    def exported(self, lines: int, path: Path | None) -> None:
        """An export is done; said on stderr, and only where it does not mix with the data."""
        from omnigraph.cli.text import exported_text

        if not self._quiet and path is not None:
            write_error(_rendered(exported_text(lines, str(path)), sys.stderr))

    def snapshot(self, uri: str, view: SnapshotView) -> None:
        """What a branch holds."""
        from omnigraph.cli.text import snapshot_parts

        self._print(*snapshot_parts(uri, view))

    def commits(self, commits: Commits) -> None:
        """A part of the history, newest first."""
        from omnigraph.cli.text import commits_text

        self._print(commits_text(commits))

    def commit(self, commit: GraphCommit) -> None:
        """One commit."""
        from omnigraph.cli.text import commit_text

        self._print(commit_text(commit))

    def schema(self, view: SnapshotView) -> None:
        """The accepted schema, exactly as it was given, so that it can go into a file."""
        source = printable(view.schema) if is_terminal(sys.stdout) else view.schema
        write_text(source if source.endswith("\n") else source + "\n")

    def version(self, versions: dict[str, str]) -> None:
        """The release."""
        write_text(f"omnigraph {versions['version']}\n")

    def failure(self, error: OmnigraphError) -> None:
        """The error and its findings on stderr."""
        write_error(_rendered(failure_text(error), sys.stderr))

    def notice(self, text: str) -> None:
        """A line on stderr."""
        if not self._quiet:
            write_error(f"{printable(text)}\n")

    def meter(self, label: str, total: int | None, unit: Unit) -> Meter:
        """A bar, when a person is looking."""
        if self._quiet or not is_terminal(sys.stderr):
            return SilentMeter()
        last = "checking and writing" if unit is Unit.BYTES else None
        return BarMeter(console(sys.stderr), label, total, unit, last_label=last)

    def _print(self, *parts: RenderableType) -> None:
        write_text("".join(_rendered(part, sys.stdout) for part in parts))


def console(stream: TextIO) -> Console:
    """A console that prints what it is given: no markup, no highlighting, no cutting in a pipe."""
    return Console(
        file=stream,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if is_terminal(stream) else _WIDTH_PIPED,
    )


def _rendered(part: RenderableType, stream: TextIO) -> str:
    # Rendered first and written by us: rich answers a broken pipe with an exit code of its own.
    target = console(stream)
    with target.capture() as captured:
        # Lines are left to the terminal to wrap, so that copying one gives the whole of it.
        target.print(part, soft_wrap=isinstance(part, Text))
    return "\n".join(line.rstrip() for line in captured.get().split("\n"))


def failure_text(error: OmnigraphError) -> Text:
    """The error in red, its findings, its hint."""
    text = Text.assemble(("error: ", "bold red"), printable(headline(error)))
    for line in body(error):
        # Only the carets of a diagnostic stand alone behind the gutter.
        stripped = line.strip("| ^\t")
        text.append("\n").append(printable(line), "red" if "^" in line and not stripped else "")
    if error.hint:
        first, *rest = printable(error.hint).split("\n")
        text.append("\n  hint: ", "cyan").append("\n        ".join([first, *rest]))
    return text
