"""Spelling hints: the known word that somebody most likely meant.

Used by every "unknown …" diagnostic of both languages, so that the same typo gets the same help.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CLOSE = 0.6
"""Good enough for a hint on something that is wrong anyway."""
VERY_CLOSE = 0.8
"""Close enough to call a word that would be legal a misspelling."""


def closest(word: str, known: Iterable[str], *, cutoff: float = CLOSE) -> str | None:
    """The most similar known word, compared without regard to case."""
    folded = {k.lower(): k for k in sorted(known)}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the most similar known word, if any is similar."""
    found = closest(word, known)
    return f"did you mean `{found}`?" if found else None
