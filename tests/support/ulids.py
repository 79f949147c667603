"""ULIDs as the numbers they spell, read in the plainest way."""

from __future__ import annotations

DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def number(text: str) -> int:
    """The number of an id: five bits per character."""
    value = 0
    for character in text:
        value = value * 32 + DIGITS.index(character)
    return value
