"""Search of the reference evaluator: text tests, and scores as dicts from id to number.

    documents and vectors of one type -> [naive_search] -> naive

Everything is computed from the texts and vectors themselves for every question; there is no index.
Of the product it uses one function, the analyzer that cuts a text into words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from omnigraph.query import typed
from omnigraph.query.search.analyzer import tokens
from support.naive_graph import Entity

K1 = 1.2
B = 0.75
EDITS_DEFAULT = 2
CLOSE = 1e-6

# ---------------------------------------------------------------- tests


def matches(kind: typed.TextMatchKind, text: str | None, query: str | None, edits: Any) -> bool:
    """Whether a text passes a text test; a null on either side never does."""
    if text is None or query is None:
        return False
    words, wanted = tokens(text), tokens(query)
    match kind:
        case "search":
            return any(w in words for w in wanted)
        case "phrase":
            return _has_phrase(words, wanted)
        case "fuzzy":
            bound = EDITS_DEFAULT if edits is None else edits
            return any(edit_distance(w, word) <= bound for w in wanted for word in words)


def _has_phrase(words: Sequence[str], wanted: Sequence[str]) -> bool:
    if not wanted:
        return False
    starts = range(len(words) - len(wanted) + 1)
    return any(list(words[s : s + len(wanted)]) == list(wanted) for s in starts)


def edit_distance(left: str, right: str) -> int:
    """Least number of inserted, removed or replaced characters (Levenshtein)."""
    previous = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        current = [i]
        for j, b in enumerate(right, start=1):
            replaced = previous[j - 1] + (a != b)
            current.append(min(previous[j] + 1, current[j - 1] + 1, replaced))
        previous = current
    return previous[-1]


# ---------------------------------------------------------------- scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Scores by entity id; who is absent is not ranked."""

    scores: Mapping[str, float]
    fragile: bool
    """Two scores are nearly equal for different reasons, so that rounding decides their order.

    Another correct implementation may then order them the other way round."""


def rank(
    score: typed.Score,
    everyone: Sequence[Entity],
    candidates: Sequence[Entity],
    value: Callable[[typed.Expr], Any],
) -> Ranking:
    """Rank candidates; ``everyone`` of the type counts in the statistics of words."""
    match score:
        case typed.Bm25(column=column, query=query):
            return _bm25(column, value(query), everyone, candidates)
        case typed.Nearest(column=column, query=query):
            return _nearest(column, value(query), candidates)
        case typed.Rrf(arms=arms, k=k):
            rankings = [rank(arm, everyone, candidates, value) for arm in arms]
            places = [
                _places(r, descending=isinstance(arm, typed.Bm25))
                for arm, r in zip(arms, rankings, strict=True)
            ]
            return _fused(places, value(k), fragile=any(r.fragile for r in rankings))


def _bm25(
    column: str, query: str | None, everyone: Sequence[Entity], candidates: Sequence[Entity]
) -> Ranking:
    if query is None:
        return Ranking(scores={}, fragile=False)
    documents = [tokens(e[column]) for e in everyone if e[column] is not None]
    wanted = list(dict.fromkeys(tokens(query)))
    scores: dict[str, float] = {}
    reasons: dict[str, Any] = {}
    for entity in candidates:
        if entity[column] is None:
            continue
        words = tokens(entity[column])
        if not any(w in words for w in wanted):
            continue
        scores[entity["id"]] = math.fsum(_word_score(w, words, documents) for w in wanted)
        reasons[entity["id"]] = (len(words), tuple(words.count(w) for w in wanted))
    return Ranking(scores=scores, fragile=_fragile(scores, reasons))


def _word_score(word: str, words: Sequence[str], documents: Sequence[Sequence[str]]) -> float:
    having = sum(1 for d in documents if word in d)
    rarity = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
    average = sum(len(d) for d in documents) / len(documents)
    count = words.count(word)
    length = K1 * (1 - B + B * len(words) / average)
    return rarity * count * (K1 + 1) / (count + length)


def _nearest(column: str, query: Sequence[float] | None, candidates: Sequence[Entity]) -> Ranking:
    scores: dict[str, float] = {}
    reasons: dict[str, Any] = {}
    for entity in candidates:
        vector = entity[column]
        if query is None or vector is None:
            continue
        # The square of the Euclidean distance, as Lance gives it for L2.
        distance = sum(
            ((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(vector, query, strict=True)),
            Fraction(0),
        )
        scores[entity["id"]] = float(distance)
        reasons[entity["id"]] = distance
    return Ranking(scores=scores, fragile=_fragile(scores, reasons))


def _places(ranking: Ranking, *, descending: bool) -> dict[str, int]:
    """1 for the best, then 2 and so on; equal scores are told apart by id."""
    best_first = sorted(
        ranking.scores, key=lambda i: (-ranking.scores[i] if descending else ranking.scores[i], i)
    )
    return {entity: place for place, entity in enumerate(best_first, start=1)}


def _fused(arms: Sequence[Mapping[str, int]], k: int, *, fragile: bool) -> Ranking:
    everybody = sorted({entity for arm in arms for entity in arm})
    places = {e: [arm[e] for arm in arms if e in arm] for e in everybody}
    scores = {e: sum(1 / (k + p) for p in places[e]) for e in everybody}
    reasons = {e: sorted(places[e]) for e in everybody}
    return Ranking(scores=scores, fragile=fragile or _fragile(scores, reasons))


def _fragile(scores: Mapping[str, float], reasons: Mapping[str, Any]) -> bool:
    by_score = sorted(scores, key=lambda i: scores[i])
    return any(
        math.isclose(scores[a], scores[b], rel_tol=CLOSE) and reasons[a] != reasons[b]
        for a, b in pairwise(by_score)
    )
