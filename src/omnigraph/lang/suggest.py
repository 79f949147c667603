"""Spelling hints: the known word that was most likely meant.

Used by every "unknown …" diagnostic of both languages, so that the same typo gets the same help.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CLOSE = 0.6
"""Good enough for a hint on something that is wrong anyway."""
VERY_CLOSE = 0.8
"""Close enough to call a word that would be legal a misspelling."""
LONG_WORD = 6
ERRORS_MAX = 2
"""From so many letters on, so many typing errors still leave a word recognisable."""


def closest(word: str, known: Iterable[str], *, cutoff: float = CLOSE) -> str | None:
    """The most similar known word, compared without regard to case."""
    folded = {k.lower(): k for k in sorted(known)}
    found = get_close_matches(word.lower(), folded, n=1, cutoff=cutoff)
    return folded[found[0]] if found else None


def misspelling_of(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one nearly spells, though it would be legal as it stands.

    One typing error away, two in a long word, or very similar as a whole. Similarity alone is too
    strict for short words: it does not find `key` behind `kye`.
    """
    folded = {k.lower(): k for k in sorted(known)}
    similar = [k for k in folded if abs(len(k) - len(word)) <= ERRORS_MAX]
    distances = {k: typing_errors(word.lower(), k) for k in similar}
    near = [k for k, errors in distances.items() if errors <= _errors_allowed(k)]
    if near:
        return folded[min(near, key=lambda k: distances[k])]
    return closest(word, folded.values(), cutoff=VERY_CLOSE)


def _errors_allowed(known: str) -> int:
    return ERRORS_MAX if len(known) >= LONG_WORD else 1


def typing_errors(one: str, other: str) -> int:
    """Letters left out, added, exchanged for others or swapped with their neighbours."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        two_before, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            errors = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                errors = min(errors, two_before[j - 2] + 1)
            row.append(errors)
    return row[-1]


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A hint naming the most similar known word, if any is similar."""
    found = closest(word, known)
    return f"did you mean `{found}`?" if found else None


def suggestion(word: str, known: Iterable[str]) -> str:
    """The same to go on a sentence with: `` (did you mean 'x'?)``, or nothing."""
    found = closest(word, known)
    return f" (did you mean '{found}'?)" if found else ""
