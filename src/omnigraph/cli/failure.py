"""An error as people read it: one headline, then every finding at its place."""

from __future__ import annotations

from omnigraph.errors import ConstraintError, InputError, OmnigraphError, TextError


def summary(error: OmnigraphError) -> str:
    """One line: the first finding, and how many there are besides."""
    first = error.message.partition("\n")[0]
    more = _finding_count(error) - 1
    return f"{first} (and {more} more)" if more > 0 else first


def headline(error: OmnigraphError) -> str:
    """What stands behind ``error:``."""
    count = _finding_count(error)
    if count <= 1:
        return error.message.partition("\n")[0]
    if isinstance(error, TextError):
        return f"{count} problems in {error.source_name}"
    noun = "violations of the schema" if isinstance(error, ConstraintError) else "problems"
    return f"{count} {noun} in the data; nothing was published"


def body(error: OmnigraphError) -> list[str]:
    """The lines below the headline."""
    lines = error.message.split("\n")
    if _finding_count(error) <= 1:
        return lines[1:]
    return lines if isinstance(error, TextError) else [f"  {line}" for line in lines]


def _finding_count(error: OmnigraphError) -> int:
    match error:
        case TextError():
            return len(error.diagnostics)
        case ConstraintError():
            return error.total
        case InputError():
            return int(error.details.get("problem_count", 1))
        case _:
            return 1
