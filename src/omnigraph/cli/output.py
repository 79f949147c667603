"""What a command says: values in, text for people or JSON for programs out.

    command -> value -> [CommandOutput.show] -> JsonOutput | TextOutput -> stdout

Commands never format anything: they show a value. Its ``to_dict`` is what programs get, and
``texts`` says how people see it. Results go to stdout, everything about the run (errors, notices,
progress) to stderr.
"""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO, cast

from omnigraph.cli.answers import Answer, Exported, Stream, Verbatim
from omnigraph.cli.failure import failure_lines, summary
from omnigraph.cli.lines import Line, TextLook, plain
from omnigraph.cli.meter import BarMeter, Meter, MeterUnit
from omnigraph.cli.streams import (
    encodes,
    is_terminal,
    one_line,
    printable,
    stdout_writer,
    write_bytes,
    write_error,
    write_text,
)
from omnigraph.cli.texts import lines_of
from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = "interrupted"
_WIDTH_PIPED = 1_000_000
"""No terminal is so wide: lines are never broken."""
_LINES_PER_WRITE = 500
_COLOURS_ANYWAY = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""Variables that make rich write colours into a pipe."""


class CommandOutput(ABC):
    """Everything that commands can say."""

    @abstractmethod
    def show(self, value: Answer | Stream, **facts: Any) -> None:
        """The answer of the command, or a part of it; ``facts`` are for its text alone."""

    @abstractmethod
    def failure(self, error: OmnigraphError) -> None:
        """The command failed."""

    @abstractmethod
    def interrupted(self, hint: str | None, published: str | None) -> None:
        """Ctrl-C was pressed; ``published`` is the commit that was published before."""

    @abstractmethod
    def notice(self, text: str) -> None:
        """Something worth knowing while the command runs."""

    @abstractmethod
    def meter(self, label: str, total: int | None, unit: MeterUnit) -> Meter:
        """A context manager that shows how far an operation is."""


class JsonOutput(CommandOutput):
    """One JSON document on stdout, or what a stream has for programs."""

    def show(self, value: Answer | Stream, **facts: Any) -> None:
        """The value as plain data."""
        if isinstance(value, Stream):
            _write_chunks(value)
        else:
            _write_document(value.to_dict())

    def failure(self, error: OmnigraphError) -> None:
        """The envelope on stdout, one line for people on stderr."""
        try:
            _write_document(error.to_dict())
        finally:
            write_error(f"error: {summary(error)}\n")

    def interrupted(self, hint: str | None, published: str | None) -> None:
        """The same envelope as for an error."""
        found = {"hint": hint, "published_commit_id": published}
        facts = {name: value for name, value in found.items() if value is not None}
        try:
            _write_document({"error": INTERRUPTED, "code": INTERRUPTED} | facts)
        finally:
            write_error(_interrupted_line(hint))

    def notice(self, text: str) -> None:
        """Programs do not read notices."""

    def meter(self, label: str, total: int | None, unit: MeterUnit) -> Meter:
        """Programs do not watch bars."""
        return Meter()


class TextOutput(CommandOutput):
    """Text for people: colours on a terminal, plain and never cut off in a pipe."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def show(self, value: Answer | Stream, **facts: Any) -> None:
        """The value as lines; what is said about data goes to stderr."""
        if isinstance(value, Stream):
            self._show_stream(value)
        elif isinstance(value, Verbatim):
            write_text(printable(value.text) if is_terminal(sys.stdout) else value.text)
        elif isinstance(value, Exported):
            write_error(rendered(lines_of(value, self._look(sys.stderr)), sys.stderr))
        elif text := rendered(lines_of(value, self._look(sys.stdout), **facts), sys.stdout):
            write_text(text)

    def failure(self, error: OmnigraphError) -> None:
        """The error and its findings on stderr."""
        write_error(rendered(failure_lines(error), sys.stderr))

    def interrupted(self, hint: str | None, published: str | None) -> None:
        """A line on stderr, below the ^C that a terminal shows."""
        write_error(("\n" if is_terminal(sys.stderr) else "") + _interrupted_line(hint))

    def notice(self, text: str) -> None:
        """A line on stderr."""
        if not self._quiet:
            write_error(f"{one_line(text)}\n")

    def meter(self, label: str, total: int | None, unit: MeterUnit) -> Meter:
        """A bar, when a person is looking."""
        if self._quiet or not is_terminal(sys.stderr):
            return Meter()
        last = "checking and writing" if unit is MeterUnit.BYTES else None
        return BarMeter(console(sys.stderr), label, total, unit, last_label=last)

    def _show_stream(self, value: Stream) -> None:
        look = self._look(sys.stdout)
        if value.for_programs:
            _write_chunks(value)
        else:
            lines = value.lines(look)
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            with stdout_writer(value.instead) as writer:
                while block := list(islice(lines, _LINES_PER_WRITE)):
                    text = rendered(block, sys.stdout)
                    writer.write(text.encode(encoding, "backslashreplace"))
        for note in value.notes(look):
            write_error(f"{one_line(note)}\n")

    def _look(self, stream: TextIO) -> TextLook:
        return TextLook(
            width=console(stream).width if is_terminal(stream) else None,
            ascii_only=not encodes("│─├┤┼╮╯→…", stream),
            quiet=self._quiet,
        )


def rendered(lines: Iterable[Line], stream: TextIO) -> str:
    """Lines as text with the colours that suit ``stream``, which is not written to."""
    if not is_terminal(stream) and not any(name in os.environ for name in _COLOURS_ANYWAY):
        return "".join(f"{plain(line)}\n" for line in lines)
    from rich.text import Text

    joined = Text("\n").join(Text.assemble(*line) for line in lines)
    if not joined:
        return ""
    # Rendered into memory and written by us: rich answers a broken pipe with an exit code of its
    # own, and writes to its stream even when it only captures.
    page = _Page(cast("TextIO | None", stream))
    # Lines are left to the terminal to wrap, so that copying one gives the whole of it.
    console(stream, page).print(joined, soft_wrap=True)
    return "\n".join(line.rstrip() for line in page.getvalue().split("\n"))


def console(stream: TextIO, file: TextIO | None = None) -> Console:
    """A console that prints what it is given: no markup, no highlighting, no cutting in a pipe.

    It suits ``stream`` and writes to ``file`` if that is given.
    """
    # rich takes longer to import than the rest of the command line: not for programs and pipes.
    from rich.console import Console

    return Console(
        file=file or stream,
        force_terminal=is_terminal(stream) or None,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if is_terminal(stream) else _WIDTH_PIPED,
    )


class _Page(StringIO):
    """Text that is made for a stream but not written to it yet."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._encoding = getattr(stream, "encoding", None) or "utf-8"

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Of the stream: rich draws with the characters that it has."""
        return self._encoding


def _interrupted_line(hint: str | None) -> str:
    return f"{INTERRUPTED}; {hint}\n" if hint else f"{INTERRUPTED}\n"


def _write_document(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    # A file name may hold bytes that are no UTF-8; the escape that replaces them is valid JSON.
    write_bytes(text.encode("utf-8", "backslashreplace"))


def _write_chunks(value: Stream) -> None:
    shown = is_terminal(sys.stdout)
    with stdout_writer(value.instead) as writer:
        for chunk in value.chunks():
            # On a terminal no program parses it, and what the data holds must not steer it.
            writer.write(printable(bytes(chunk).decode()).encode() if shown else chunk)
