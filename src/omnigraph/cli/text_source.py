"""Reading a text that the command line names: a file, or - for stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO, cast

from omnigraph.cli.output import Output
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind, decoded, read_text_file

STDIN = "-"
STDIN_NAME = "<stdin>"


def read_text(name: str, kind: TextKind, output: Output) -> tuple[str, str]:
    """The text, and what findings in it call their place."""
    if name == STDIN:
        return decoded(_stdin(kind, output), STDIN_NAME, kind), STDIN_NAME
    return read_text_file(Path(name), kind), name


def _stdin(kind: TextKind, output: Output) -> bytes:
    if cast("TextIO | None", sys.stdin) is None:
        raise UsageError("stdin is closed", hint=f"give the path of a {kind.suffix} file")
    if is_terminal(sys.stdin):
        output.notice("reading from the terminal; end with Ctrl-D")
    return sys.stdin.buffer.read()
