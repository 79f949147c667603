"""The formats that rows can be printed in. Names only: nothing heavy is imported."""

from __future__ import annotations

from enum import StrEnum

import click

from omnigraph.cli.options import Command
from omnigraph.cli.settings import Settings
from omnigraph.errors import UsageError


class Format(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    ARROW = "arrow"


def format_option(command: Command) -> Command:
    """In which form the rows come. See ``chosen_format``."""
    return click.option(
        "--format",
        "form",
        type=click.Choice([str(f) for f in Format]),
        callback=_set_format,
        help="table: for reading. kv: a block a row. csv: RFC 4180 with a header. jsonl: a line "
        "about the result, then a line a row. json: one document, the same as --json. "
        "arrow: an Arrow IPC stream.  [default: table]",
    )(command)


def chosen_format(form: str | None, settings: Settings) -> Format:
    """What --format and --json ask for together."""
    if settings.json:
        if form not in (None, Format.JSON):
            raise UsageError(f"--json and --format {form} contradict each other", hint="give one")
        return Format.JSON
    return Format(form or Format.TABLE)


def _set_format(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value == Format.JSON:
        # Whoever reads JSON wants errors as JSON too, whichever way it was asked for.
        settings = ctx.ensure_object(Settings)
        settings.json = settings.json_said = True
    return value
