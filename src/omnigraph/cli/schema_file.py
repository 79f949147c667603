"""Reading a schema text that the command line names: a `.pg` file, or - for stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO, cast

from omnigraph.cli.output import Output
from omnigraph.cli.streams import is_terminal
from omnigraph.errors import ErrorKind, NotFoundError, UsageError

STDIN = "-"


def read_schema(name: str, output: Output) -> tuple[str, str]:
    """The text, and what findings in it call their place."""
    shown = "<stdin>" if name == STDIN else name
    try:
        content = _stdin(output) if name == STDIN else Path(name).read_bytes()
        return content.decode("utf-8"), shown
    except FileNotFoundError as e:
        raise NotFoundError(
            f"no schema file {name}",
            kind=ErrorKind.FILE_NOT_FOUND,
            hint="give the path of a .pg file",
        ) from e
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot read the schema file {shown}: {reason}") from e


def _stdin(output: Output) -> bytes:
    if cast("TextIO | None", sys.stdin) is None:
        raise UsageError("stdin is closed", hint="give the path of a .pg file")
    if is_terminal(sys.stdin):
        output.notice("reading from the terminal; end with Ctrl-D")
    return sys.stdin.buffer.read()
