"""`omnigraph fmt`: schema and query files in their one layout.

A text that cannot be read has no layout: it stays as it is, with its findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Any

import click

from omnigraph.cli.answers import Verbatim
from omnigraph.cli.command import command
from omnigraph.cli.options import text_argument
from omnigraph.cli.output import CommandOutput
from omnigraph.cli.settings import Settings, fail_if
from omnigraph.cli.sources import STDIN, STDIN_NAME, read_text
from omnigraph.cli.streams import whole_file, write_bytes
from omnigraph.errors import TextError, UsageError
from omnigraph.text_file import TextKind

_LANGUAGES = {"pg": TextKind.SCHEMA, "gq": TextKind.QUERY}


class FmtMode(StrEnum):
    """What is done with a text whose layout is not the one."""

    WRITE = "write"
    CHECK = "check"
    DIFF = "diff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """One text, before and after."""

    name: str
    before: str
    after: str
    """Equal to ``before`` when there are findings."""
    error: TextError | None = None

    @property
    def changed(self) -> bool:
        """Whether its layout was not the one."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """As a patch; nothing if nothing changed."""
        lines = unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            self.name,
            self.name,
        )
        return "".join(
            x if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FormattedFiles:
    """Files were put into the one layout, or would be."""

    files: Sequence[Formatted]
    mode: FmtMode

    @property
    def written(self) -> bool:
        """Whether they were, and not only looked at."""
        return self.mode is FmtMode.WRITE

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``fmt --json``."""
        return {"files": [self._facts(file) for file in self.files]}

    def _facts(self, file: Formatted) -> dict[str, Any]:
        facts: dict[str, Any] = {"name": file.name, "changed": file.changed}
        if self.mode is FmtMode.DIFF and file.changed:
            facts["diff"] = file.diff
        return facts if file.error is None else facts | file.error.to_dict()


class Patches(FormattedFiles, Verbatim):
    """The same as patches."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """All that changed."""
        return "".join(file.diff for file in self.files)


@command(
    "fmt",
    "omnigraph fmt fleet.pg fleet.gq",
    "omnigraph fmt --check queries/*.gq",
    "omnigraph fmt - --language gq < draft.gq",
    on_graph=False,
)
@text_argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Write nothing; list what would change and exit 1.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option(
    "--language",
    type=click.Choice(tuple(_LANGUAGES)),
    help="pg: schema, gq: queries.  [default: from the suffix of the file]",
)
def fmt_command(
    settings: Settings, files: tuple[str, ...], check: bool, diff: bool, language: str | None
) -> None:
    """Put schema and query files into their one layout.

    FILE is a .pg or .gq file, or - for stdin, which is answered on stdout. Comments stay. A file
    is replaced as a whole or not at all, and only if its layout changes; one that cannot be read is
    left alone, and its findings are shown.
    """
    if files.count(STDIN) > 1:
        raise UsageError("stdin is named twice", hint="give - once")
    mode = FmtMode.DIFF if diff else FmtMode.CHECK if check else FmtMode.WRITE
    kinds = [_language(name, language) for name in files]
    # Everything is read before anything is written: a missing file changes no other.
    done = [_read(name, kind, settings) for name, kind in zip(files, kinds, strict=True)]
    if mode is FmtMode.WRITE:
        for file in done:
            if file.changed and file.name != STDIN_NAME:
                with whole_file(Path(file.name)) as out:
                    out.write(file.after.encode())
    files_shown = done if settings.json else _shown(done, mode, settings.output)
    settings.show((Patches if diff else FormattedFiles)(files=files_shown, mode=mode))
    fail_if(any(f.error for f in done) or (check and any(f.changed for f in done)))


def _shown(done: list[Formatted], mode: FmtMode, output: CommandOutput) -> list[Formatted]:
    """Show people what cannot be read, and answer stdin on stdout; returns the other files."""
    others: list[Formatted] = []
    for file in done:
        if file.error is not None:
            output.failure(file.error)
        elif file.name == STDIN_NAME and mode is FmtMode.WRITE:
            write_bytes(file.after.encode())
        else:
            others.append(file)
    return others


def _language(name: str, chosen: str | None) -> TextKind:
    language = chosen or Path(name).suffix.removeprefix(".")
    if language in _LANGUAGES:
        return _LANGUAGES[language]
    is_stdin = name == STDIN
    why = "stdin has no suffix" if is_stdin else f"{name} is neither a .pg nor a .gq file"
    raise UsageError(why, hint="say --language pg or --language gq")


def _read(file: str, kind: TextKind, settings: Settings) -> Formatted:
    """The text in its one layout, or its findings."""
    text, name = read_text(file, kind, settings)
    try:
        if kind is TextKind.SCHEMA:
            from omnigraph.schema.format import format_schema

            after = format_schema(text, name)
        else:
            from omnigraph.query.format import format_queries

            after = format_queries(text, name)
    except TextError as error:
        return Formatted(name=name, before=text, after=text, error=error)
    return Formatted(name=name, before=text, after=after)
