"""The manual page, made from the commands themselves.

    python -m omnigraph.cli.manpage > docs/reference/omnigraph.1

The wheel puts it where `man omnigraph` looks. A test compares the file with this output.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from omnigraph.cli.failure import MEANINGS
from omnigraph.cli.main import GROUPS, app
from omnigraph.cli.reference import VARIABLES, context_of, walk
from omnigraph.cli.streams import write_bytes
from omnigraph.version import __version__

_PROGRAM = "omnigraph"


def manpage() -> str:
    """The whole page, as roff."""
    context = context_of(app, _PROGRAM, None)
    lines = [
        f'.TH OMNIGRAPH 1 "" "omnigraph {__version__}" "User Commands"',
        ".SH NAME",
        r"omnigraph \- a typed, versioned property graph on Lance",
        ".SH SYNOPSIS",
        r".B omnigraph",
        r"[\fIOPTIONS\fR] \fICOMMAND\fR [\fIARGS\fR]...",
        ".SH DESCRIPTION",
        *_paragraphs(app.help or ""),
        ".SH COMMANDS",
    ]
    for title, commands in GROUPS.items():
        lines.append(f".SS {_text(title)}")
        for command in commands:
            for child in (c for c in walk(context) if _is_or_belongs_to(c, command)):
                lines += _command(child)
    lines += [".SH OPTIONS OF EVERY COMMAND", *_options(context)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in MEANINGS.items():
        lines += [".TP", f".B {code}", _text(meaning)]
    lines.append(".SH ENVIRONMENT")
    for name, meaning in VARIABLES.items():
        lines += [".TP", f".B {_text(name)}", _text(meaning.replace("`", ""))]
    lines += [
        ".SH FILES",
        ".TP",
        ".B omnigraph.toml",
        "store, actor and endpoint, for every command below its folder; profiles for more.",
        ".SH EXAMPLES",
        *_examples(app),
    ]
    return "\n".join(lines) + "\n"


def _is_or_belongs_to(context: click.Context, command: click.Command) -> bool:
    parent = context.parent
    return context.command is command or (parent is not None and parent.command is command)


def _command(context: click.Context) -> Iterator[str]:
    usage = context.get_usage().removeprefix("Usage: ")
    if isinstance(context.command, click.Group):
        return
    yield ".TP"
    yield f".B {_text(' '.join(usage.split()))}"
    yield _text(context.command.get_short_help_str(200))


def _options(context: click.Context) -> Iterator[str]:
    for param in context.command.get_params(context):
        if record := param.get_help_record(context):
            yield from (".TP", f".B {_text(record[0])}", _text(record[1]))


def _examples(command: click.Command) -> list[str]:
    text = (command.epilog or "").removeprefix("\b\nExamples:\n")
    return [".nf", *(_text(line) for line in inspect.cleandoc(text).splitlines()), ".fi"]


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Text in which roff sees no commands of its own."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


if __name__ == "__main__":
    write_bytes(manpage().encode())
