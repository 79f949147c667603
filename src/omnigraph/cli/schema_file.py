"""Reading a schema text that the command line names: a `.pg` file, or - for stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO, cast

from omnigraph.cli.output import Output
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import UsageError
from omnigraph.schema_file import decoded, read_schema_file

STDIN = "-"


def read_schema(name: str, output: Output) -> tuple[str, str]:
    """The text, and what findings in it call their place."""
    if name == STDIN:
        return decoded(_stdin(output), "<stdin>"), "<stdin>"
    return read_schema_file(Path(name)), name


def _stdin(output: Output) -> bytes:
    if cast("TextIO | None", sys.stdin) is None:
        raise UsageError("stdin is closed", hint="give the path of a .pg file")
    if is_terminal(sys.stdin):
        output.notice("reading from the terminal; end with Ctrl-D")
    return sys.stdin.buffer.read()
