"""`omnigraph fmt`: schema and query files in their one layout."""

from __future__ import annotations

from pathlib import Path

import click

from omnigraph.cli.exits import FAILURE
from omnigraph.cli.files import whole_file
from omnigraph.cli.formatting import FmtMode, Formatted, Language, formatted
from omnigraph.cli.interrupts import answered
from omnigraph.cli.options import WORDS, common_options, examples, json_option
from omnigraph.cli.output import Output
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import write_bytes
from omnigraph.cli.text_source import STDIN, STDIN_NAME, read_text
from omnigraph.errors import UsageError
from omnigraph.text_file import TextKind

_KINDS = {Language.SCHEMA: TextKind.SCHEMA, Language.QUERY: TextKind.QUERY}


@click.command(
    "fmt",
    epilog=examples(
        "omnigraph fmt fleet.pg fleet.gq",
        "omnigraph fmt --check queries/*.gq",
        "omnigraph fmt - --language gq < draft.gq",
    ),
)
@click.argument("files", type=WORDS, nargs=-1, required=True, metavar="FILE...")
@click.option("--check", is_flag=True, help="Write nothing; list what would change and exit 1.")
@click.option("--diff", is_flag=True, help="Write nothing; show what would change.")
@click.option(
    "--language",
    type=click.Choice([str(x) for x in Language]),
    help="pg: schema, gq: queries.  [default: from the suffix of the file]",
)
@json_option
@common_options
@click.pass_obj
def fmt_command(
    settings: Settings,
    files: tuple[str, ...],
    check: bool,
    diff: bool,
    language: str | None,
) -> None:
    """Put schema and query files into their one layout.

    FILE is a .pg or .gq file, or - for stdin, which is answered on stdout. Comments stay. A file
    is replaced as a whole or not at all, and only if its layout changes; one that cannot be read is
    left alone, and its findings are shown.
    """
    if files.count(STDIN) > 1:
        raise UsageError("stdin is named twice", hint="give - once")
    mode = FmtMode.DIFF if diff else FmtMode.CHECK if check else FmtMode.WRITE
    languages = [_language(name, language) for name in files]
    output = settings.output
    # Everything is read before anything is written: a missing file changes no other.
    done = [_read(name, of, output) for name, of in zip(files, languages, strict=True)]
    if mode is FmtMode.WRITE:
        for file in done:
            if file.changed and file.name != STDIN_NAME:
                with whole_file(Path(file.name)) as out:
                    out.write(file.after.encode())
    piped = [f for f in done if f.name == STDIN_NAME and f.error is None]
    if piped and mode is FmtMode.WRITE and not settings.json:
        write_bytes(piped[0].after.encode())
        output.formatted([f for f in done if f not in piped], mode=mode)
    else:
        output.formatted(done, mode=mode)
    answered()
    if any(f.error for f in done) or (check and any(f.changed for f in done)):
        raise click.exceptions.Exit(FAILURE)


def _read(name: str, language: Language, output: Output) -> Formatted:
    text, shown = read_text(name, _KINDS[language], output)
    return formatted(text, shown, language)


def _language(name: str, chosen: str | None) -> Language:
    if chosen is not None:
        return Language(chosen)
    suffix = Path(name).suffix.removeprefix(".")
    if suffix in set(Language):
        return Language(suffix)
    if name == STDIN:
        raise UsageError("stdin has no suffix", hint="say --language pg or --language gq")
    raise UsageError(
        f"{name} is neither a .pg nor a .gq file", hint="say --language pg or --language gq"
    )
