"""What a reader makes of a block of input: rows by type, and what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omnigraph.input.loaded_rows import Part
from omnigraph.input.problems import Problem

TEXT_CHARACTERS_MAX = 1 << 20
"""More of a refused line is not kept."""
TextOf = Callable[[int], bytes | None]


def no_text(_line: int) -> bytes | None:
    """For sources that have no text."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPiece:
    """Rows and problems of one piece of a unit; lines count from its start."""

    parts: Sequence[Part]
    problems: Sequence[Problem]
    line_count: int
    text_of: TextOf = no_text
    """A line as it stands in the source."""
    checksum: int = 0
    span: tuple[int, int] | None = None
    """Which bytes of the file this is, where the cutting of a file has to be checked."""


def shown_text(raw: bytes | None) -> str | None:
    """A refused line as it is told: readable, and not without end."""
    if raw is None:
        return None
    text = raw[: 4 * TEXT_CHARACTERS_MAX].decode(errors="replace")
    return text if len(text) <= TEXT_CHARACTERS_MAX else text[:TEXT_CHARACTERS_MAX] + "…"
