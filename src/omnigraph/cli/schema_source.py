"""A schema that the command line names, in the form that the library takes."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cli.output import Output
from omnigraph.cli.text_source import STDIN, read_text
from omnigraph.text_file import TextKind


def schema_source(file: str, output: Output) -> str | Path:
    """The path of a file, or a text from stdin that is plainly no path."""
    if file != STDIN:
        return Path(file)
    from omnigraph.schema.compile import compile_schema

    text, name = read_text(STDIN, TextKind.SCHEMA, output)
    # Only here findings can name the place they are at.
    compile_schema(text, source_name=name)
    return text if "\n" in text else text + "\n"
