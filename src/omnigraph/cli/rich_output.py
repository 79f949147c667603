"""Output for people: colours on a terminal, plain and never cut off in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console, RenderableType
from rich.text import Text

from omnigraph.cli.failure import body, headline, hint_lines
from omnigraph.cli.meter import BarMeter, Meter, SilentMeter, Unit
from omnigraph.cli.output import Output, interrupted_line
from omnigraph.cli.streams import (
    encodes,
    is_terminal,
    one_line,
    printable,
    write_error,
    write_text,
)
from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.branch.history import LoggedCommit
    from omnigraph.branch.tags import Tag
    from omnigraph.cli.explained import Explained
    from omnigraph.cli.formats import Format
    from omnigraph.cli.formatting import FmtMode, Formatted
    from omnigraph.cli.ref_change import RefChange, ResetDone
    from omnigraph.manifest.snapshot import GraphCommit
    from omnigraph.query.lint import LintReport
    from omnigraph.results import Commits, LoadResult, MutationResult, QueryResult
    from omnigraph.schema.catalog import Catalog
    from omnigraph.view import SnapshotView

_WIDTH_PIPED = 1_000_000
"""Nobody's terminal: tables take the width of their content."""


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
            self._print(loaded_text(result, elapsed_s))

    def exported(self, place: str, rows: int, document: dict[str, Any]) -> None:
        """An export is done; said on stderr, where all is said that is not data."""
        from omnigraph.cli.text import exported_text

        if not self._quiet:
            write_error(rendered(exported_text(rows, place), sys.stderr))

    def rows(
        self, result: QueryResult, form: Format, *, pinned: bool, elapsed_s: float | None
    ) -> None:
        """The rows of a query, and how many they are."""
        from omnigraph.cli.result_output import print_result

        print_result(result, form, pinned=pinned, elapsed_s=elapsed_s, quiet=self._quiet)
        for notice in result.notices:
            self.notice(f"note: {notice}")

    def explained(self, explained: Explained) -> None:
        """The steps, the last one first."""
        text = explained.explanation.text
        write_text(printable(text if text.endswith("\n") else f"{text}\n"))

    def mutated(self, result: MutationResult, elapsed_s: float | None) -> None:
        """A mutation is done."""
        from omnigraph.cli.text import mutated_text

        if not self._quiet:
            self._print(mutated_text(result, elapsed_s))

    def linted(self, reports: Sequence[LintReport], *, describe: bool) -> None:
        """Findings are the answer, so they go to stdout."""
        from omnigraph.cli.lint_text import lint_text

        text = lint_text(reports, describe=describe, quiet=self._quiet)
        if text:
            self._print(text)

    def formatted(self, files: Sequence[Formatted], *, mode: FmtMode) -> None:
        """Names, or patches, of what changed; findings on stderr."""
        from omnigraph.cli.formatting import FmtMode

        for file in files:
            if file.error is not None:
                self.failure(file.error)
            elif file.changed and mode is FmtMode.DIFF:
                write_text(printable(file.diff) if is_terminal(sys.stdout) else file.diff)
            elif file.changed and mode is FmtMode.CHECK:
                write_text(f"{one_line(file.name)}\n")
            elif file.changed and not self._quiet:
                self._print(Text.assemble(("Formatted ", "green"), one_line(file.name)))

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

    def log(self, log: Sequence[LoggedCommit], *, graph: bool) -> None:
        """The commit graph, with characters that the stream has."""
        from omnigraph.cli.log_text import log_text

        self._print(log_text(log, graph=graph, ascii_only=not encodes("│─├┤┼╮╯", sys.stdout)))

    def was_reset(self, done: ResetDone) -> None:
        """A branch was set back."""
        from omnigraph.cli.branch_text import reset_text

        if not self._quiet:
            self._print(reset_text(done))

    def branches(self, names: Sequence[str]) -> None:
        """One name a line."""
        write_text("".join(f"{one_line(name)}\n" for name in names))

    def branch_details(self, branches: Sequence[BranchInfo]) -> None:
        """One line a branch."""
        from omnigraph.cli.branch_text import branch_details_text

        self._print(branch_details_text(branches))

    def branch(self, branch: BranchInfo) -> None:
        """One branch."""
        from omnigraph.cli.branch_text import branch_text

        self._print(branch_text(branch))

    def branch_changed(
        self, change: RefChange, branch: BranchInfo, *, former_name: str | None = None
    ) -> None:
        """What was done to a branch."""
        from omnigraph.cli.branch_text import branch_changed_text

        if not self._quiet:
            self._print(branch_changed_text(change, branch, former_name))

    def tags(self, tags: Sequence[Tag]) -> None:
        """One line a tag."""
        from omnigraph.cli.branch_text import tags_text

        self._print(tags_text(tags))

    def tag(self, tag: Tag) -> None:
        """One tag."""
        from omnigraph.cli.branch_text import tag_text

        self._print(tag_text(tag))

    def tag_changed(self, change: RefChange, tag: Tag) -> None:
        """What was done to a tag."""
        from omnigraph.cli.branch_text import tag_changed_text

        if not self._quiet:
            self._print(tag_changed_text(change, tag))

    def schema(self, view: SnapshotView) -> None:
        """The accepted schema, exactly as it was given, so that it can go into a file."""
        source = printable(view.schema) if is_terminal(sys.stdout) else view.schema
        write_text(source if source.endswith("\n") else source + "\n")

    def valid_schema(self, name: str, catalog: Catalog) -> None:
        """How many types it declares."""
        from omnigraph.cli.text import valid_schema_text

        if not self._quiet:
            self._print(valid_schema_text(name, catalog))

    def version(self, versions: dict[str, Any]) -> None:
        """The release and the formats of graphs that it knows."""
        read = ", ".join(map(str, versions["formats_read"]))
        write_text(
            f"omnigraph {versions['version']}\n"
            f"graph formats: reads {read}; writes {versions['format_written']}\n"
        )

    def failure(self, error: OmnigraphError) -> None:
        """The error and its findings on stderr."""
        write_error(rendered(failure_text(error), sys.stderr))

    def interrupted(self, hint: str | None, published: str | None) -> None:
        """A line on stderr, below the ^C that a terminal shows."""
        write_error(("\n" if is_terminal(sys.stderr) else "") + interrupted_line(hint))

    def notice(self, text: str) -> None:
        """A line on stderr."""
        if not self._quiet:
            write_error(f"{one_line(text)}\n")

    def meter(self, label: str, total: int | None, unit: Unit) -> Meter:
        """A bar, when a person is looking."""
        if self._quiet or not is_terminal(sys.stderr):
            return SilentMeter()
        last = "checking and writing" if unit is Unit.BYTES else None
        return BarMeter(console(sys.stderr), label, total, unit, last_label=last)

    def _print(self, *parts: RenderableType) -> None:
        write_text("".join(rendered(part, sys.stdout) for part in parts))


class _Page(StringIO):
    """Text that is made for a stream but not written to it yet."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the stream: rich draws with the characters that it has."""
        return self._encoding


def console(stream: TextIO, file: TextIO | None = None) -> Console:
    """A console that prints what it is given: no markup, no highlighting, no cutting in a pipe.

    It suits ``stream`` and writes to ``file`` if that is given.
    """
    return Console(
        file=file or stream,
        force_terminal=is_terminal(stream) or None,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if is_terminal(stream) else _WIDTH_PIPED,
    )


def rendered(part: RenderableType, stream: TextIO) -> str:
    """A part as text with the colours that suit ``stream``, which is not written to."""
    # Rendered into memory and written by us: rich answers a broken pipe with an exit code of its
    # own, and writes to its stream even when it only captures.
    page = _Page(cast("TextIO | None", stream))
    # Lines are left to the terminal to wrap, so that copying one gives the whole of it.
    console(stream, page).print(part, soft_wrap=isinstance(part, Text))
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n"))


def failure_text(error: OmnigraphError) -> Text:
    """The error in red, its findings, its hint."""
    text = Text.assemble(("error: ", "bold red"), headline(error))
    for line in body(error):
        # Only the carets of a diagnostic stand alone behind the gutter.
        stripped = line.strip("| ^\t")
        text.append("\n").append(line, "red" if "^" in line and not stripped else "")
    if lines := hint_lines(error):
        text.append("\n  hint: ", "cyan").append("\n        ".join(lines))
    return text
