"""An error as people read it: one headline, then every finding at its place.

Findings quote data, names of files and ids. Each stays on its line whatever it quotes: line breaks
and control characters in it are shown escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from omnigraph.cli.lines import Line
from omnigraph.cli.streams import one_line, printable
from omnigraph.errors import (
    ConflictError,
    ConstraintError,
    Diagnostic,
    ErrorKind,
    InputError,
    MergeConflictError,
    MigrationError,
    OmnigraphError,
    ParameterError,
    TextError,
    UsageError,
    render_diagnostic,
)

_UNPUBLISHED = "nothing was published"
_UNCHANGED = "nothing was changed"
_PLACES_MAX = 5
"""So many lines are named in which the same is wrong."""


class CommandLineError(UsageError):
    """The command line cannot be read; its hint has several lines, which show the usage."""


def summary(error: OmnigraphError) -> str:
    """One line: the first finding, and how many there are besides."""
    more = _finding_count(error) - 1
    first = _lines(error)[0] + (f" (and {more:,} more)" if more > 0 else "")
    return f"{first}; {_UNPUBLISHED}" if _is_refusal(error) else first


def failure_lines(error: OmnigraphError) -> Iterator[Line]:
    """The error in red, its findings, its hint; what stands in the way of a merge comes first."""
    if isinstance(error, MergeConflictError) and error.conflicts:
        from omnigraph.cli.texts.merge import conflict_lines

        ours, theirs = (str(error.details.get(side)) for side in ("ours", "theirs"))
        yield from conflict_lines(error.conflicts, ours, theirs)
        yield []
    yield [("error: ", "bold red"), _headline(error)]
    for line in _body(error):
        # Only the carets of a diagnostic stand alone behind the gutter.
        carets = "^" in line and not line.strip("| ^\t")
        yield [(line, "red")] if carets else [line]
    for number, line in enumerate(_hint_lines(error)):
        yield ["        ", line] if number else [("  hint: ", "cyan"), line]


def _headline(error: OmnigraphError) -> str:
    """What stands behind ``error:``."""
    count = _finding_count(error)
    if count <= 1:
        return summary(error)
    if isinstance(error, TextError):
        return f"{count:,} problems in {one_line(error.source_name)}"
    if isinstance(error, ParameterError):
        return f"{count:,} problems with the parameters"
    noun = "violations of the schema" if isinstance(error, ConstraintError) else "problems"
    return f"{count:,} {noun} in the data; {_UNPUBLISHED}"


def _body(error: OmnigraphError) -> list[str]:
    """The lines below the headline."""
    lines = _lines(error)
    if _finding_count(error) <= 1:
        return lines[1:]
    return lines if isinstance(error, TextError) else [f"  {line}" for line in lines]


def _hint_lines(error: OmnigraphError) -> list[str]:
    """What to do about it."""
    if not error.hint:
        return []
    if isinstance(error, CommandLineError):
        return printable(error.hint).split("\n")
    return [one_line(error.hint)]


def _lines(error: OmnigraphError) -> list[str]:
    match error:
        case TextError():
            return [
                line for d in error.diagnostics for line in diagnostic_lines(error.source_name, d)
            ]
        case ConstraintError():
            more = error.total - len(error.violations)
            rest = [f"… and {more:,} more"] if more > 0 else []
            return (
                _grouped([(str(v), v.message, v.source, v.line) for v in error.violations]) + rest
            )
        case MigrationError():
            lines = [f"  {one_line(line)}" for line in error.lines]
            return [f"{error.summary}; {_UNCHANGED}", *lines]
        case ParameterError() if _finding_count(error) > 1:
            return [one_line(problem["message"]) for problem in error.details["problems"]]
        case InputError() if _finding_count(error) > 1:
            return _problems(error)
        case _ if error.kind is ErrorKind.INTERNAL:
            # The words of a foreign exception, whose line breaks are its own.
            return printable(error.message).split("\n")
        case _:
            return [one_line(error.message)]


def diagnostic_lines(source_name: str, diagnostic: Diagnostic) -> list[str]:
    """One finding in a text: place and message, the line with a caret, what helps."""
    # Tabs stay in the line of the text: the caret below counts on them.
    safe = replace(
        diagnostic,
        message=one_line(diagnostic.message),
        source_line=printable(diagnostic.source_line),
    )
    return render_diagnostic(one_line(source_name), safe).split("\n")


def _problems(error: InputError) -> list[str]:
    from omnigraph.input.problems import Problem

    problems = [Problem(**p) for p in error.details["problems"]]
    lines = _grouped([(str(p), p.message, p.source, p.line) for p in problems])
    stopped = error.details.get("stopped")
    return [*lines, f"stopped reading after {len(problems):,} problems"] if stopped else lines


def _grouped(found: Sequence[tuple[str, str, str | None, int | None]]) -> list[str]:
    """A line for each finding; those that say the same of other lines of a source share one.

    A finding is given as its text, and what that is made of: message, source and line.
    """
    alike: dict[tuple[str, str | None], list[int | None]] = {}
    texts: dict[tuple[str, str | None], str] = {}
    for text, message, source, line in found:
        texts.setdefault((message, source), text)
        alike.setdefault((message, source), []).append(line)
    return [one_line(text) + _also(alike[key][1:]) for key, text in texts.items()]


def _also(lines: Sequence[int | None]) -> str:
    """How often the same was found besides, and where."""
    if not lines:
        return ""
    places = [f"{line:,}" for line in lines if line is not None]
    if len(places) < len(lines):
        return f" ({len(lines) + 1:,} times)"
    more = len(places) - _PLACES_MAX
    shown = ", ".join(places[:_PLACES_MAX]) + (f" and {more:,} more" if more > 0 else "")
    return f" (also in line{'s' if len(places) > 1 else ''} {shown})"


def _is_refusal(error: OmnigraphError) -> bool:
    return isinstance(error, InputError | ConstraintError | ConflictError)


def _finding_count(error: OmnigraphError) -> int:
    match error:
        case TextError():
            return len(error.diagnostics)
        case ConstraintError():
            return error.total
        case ParameterError():
            return len(error.details.get("problems", [""]))
        case InputError():
            return int(error.details.get("problem_count", 1))
        case _:
            return 1


# -- exits -----------------------------------------------------------------------------------------
# Exit codes: one table from what went wrong to what the shell sees.


OK: Final = 0
FAILURE: Final = 1
USAGE: Final = 2
PRECONDITION: Final = 4
INTERRUPTED: Final = 130
"""128 + SIGINT, as a shell reports it."""
BROKEN_PIPE: Final = 141
"""128 + SIGPIPE: the reader of our output went away, which is its right."""

EXIT_CODES: Mapping[ErrorKind, int] = MappingProxyType(
    dict.fromkeys(ErrorKind, FAILURE)
    | {ErrorKind.USAGE: USAGE, ErrorKind.PRECONDITION_FAILED: PRECONDITION}
)

MEANINGS: Mapping[int, str] = MappingProxyType(
    {
        OK: "done",
        FAILURE: "it failed; nothing was published unless the message says otherwise",
        USAGE: "the command line is wrong: an option, an argument, a combination",
        PRECONDITION: "a precondition that the caller stated does not hold",
        INTERRUPTED: "interrupted (Ctrl-C)",
        BROKEN_PIPE: "the program that read the output stopped reading",
    }
)
