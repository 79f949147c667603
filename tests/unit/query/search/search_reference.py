"""Search in plain Python, from its definitions: slow, without an index, without arrays."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction

Rows = Sequence[str | None]

HAN_AND_HIRAGANA = re.compile(
    "[\u3005-\u3007\u3021-\u3029\u3041-\u3096\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)


def letter_of(character: str) -> str:
    """S for a separator, L for a letter or digit, I for an ideograph, A for what is attached."""
    category = unicodedata.category(character)
    if category.startswith("M") or (category == "Cf" and character != "\u200b"):
        return "A"
    if not category.startswith(("L", "N")):
        return "S"
    form = unicodedata.normalize("NFKD", character)
    if not all(unicodedata.category(c).startswith(("L", "N", "M")) for c in form):
        return "S"
    return "I" if HAN_AND_HIRAGANA.search(form) else "L"


def words_of(text: str) -> list[str]:
    """The words of a text before folding: cut by a pattern over the kinds of its characters."""
    kinds = "".join(map(letter_of, text))
    return [text[m.start() : m.end()] for m in re.finditer("IA*|[LA]+", kinds)]


def search(words: list[str], wanted: list[str]) -> bool:
    return any(w in words for w in wanted)


def phrase(words: list[str], wanted: list[str]) -> bool:
    starts = range(len(words) - len(wanted) + 1)
    return bool(wanted) and any(words[s : s + len(wanted)] == wanted for s in starts)


def fuzzy(words: list[str], wanted: list[str], edits: int) -> bool:
    return any(distance(a, b) <= edits for a in wanted for b in words)


def distance(left: str, right: str) -> int:
    """Levenshtein distance, the whole table."""
    table = {(i, 0): i for i in range(len(left) + 1)}
    table |= {(0, j): j for j in range(len(right) + 1)}
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            replaced = table[i - 1, j - 1] + (left[i - 1] != right[j - 1])
            table[i, j] = min(table[i - 1, j] + 1, table[i, j - 1] + 1, replaced)
    return table[len(left), len(right)]


def bm25(documents: Sequence[list[str] | None], wanted: list[str]) -> dict[int, float]:
    """Score of every row that matches."""
    present = [d for d in documents if d is not None]
    scores: dict[int, float] = {}
    for word in dict.fromkeys(wanted):
        having = sum(word in d for d in present)
        for row, words in enumerate(documents):
            if words is None or word not in words:
                continue
            average = sum(map(len, present)) / len(present)
            rarity = math.log(1 + (len(present) - having + 0.5) / (having + 0.5))
            count = words.count(word)
            weight = 1.2 * (1 - 0.75 + 0.75 * len(words) / average)
            scores[row] = scores.get(row, 0.0) + rarity * count * (1.2 + 1) / (count + weight)
    return scores


def squared_distance(left: Sequence[float], right: Sequence[float]) -> Fraction:
    return sum(
        ((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(left, right, strict=True)), Fraction()
    )


def rrf(arms: Sequence[Sequence[int]], k: int) -> dict[int, float]:
    scores: dict[int, float] = {}
    for arm in arms:
        for rank, row in enumerate(arm, start=1):
            scores[row] = scores.get(row, 0.0) + 1 / (k + rank)
    return scores
