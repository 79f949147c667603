"""Query texts become vectors, or an error says what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import ErrorKind, UsageError
from omnigraph.query.search.embedding import Embedder, embed_query


class Fixed:
    """Gives every text the same answer."""

    model = "tiny-1"

    def __init__(self, *vectors: Any) -> None:
        self.vectors = vectors
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        self.asked += texts
        return self.vectors


def ask(embedder: Embedder | None, recorded: str | None = None) -> np.ndarray:
    where = "nearest on Document.embedding"
    return embed_query(embedder, "night harbour", size=2, recorded_model=recorded, where=where)


@pytest.mark.parametrize("recorded", [None, "tiny-1"])
@pytest.mark.parametrize("vector", [[1, 0.1], (1.0, 0.1), np.array([1.0, 0.1])])
def test_a_vector(vector: Any, recorded: str | None) -> None:
    embedder = Fixed(vector)
    found = ask(embedder, recorded)
    assert found.dtype == np.float32
    assert found.tolist() == np.array([1, 0.1], np.float32).tolist()
    assert embedder.asked == ["night harbour"]


def test_no_embedder() -> None:
    with pytest.raises(
        UsageError, match=r"^nearest on Document\.embedding: .*no embedder"
    ) as caught:
        ask(None)
    assert caught.value.kind is ErrorKind.USAGE
    assert "pass a vector" in str(caught.value.hint)


def test_another_model_is_refused_before_it_is_asked() -> None:
    embedder = Fixed([1.0, 2.0])
    with pytest.raises(UsageError, match=r"'large-2'.*'tiny-1'") as caught:
        ask(embedder, "large-2")
    assert embedder.asked == []
    assert caught.value.details == {"recorded_model": "large-2", "configured_model": "tiny-1"}


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0]], "gave 1 numbers, not 2 numbers"),
        ([[1.0, 2.0, 3.0]], "gave 3 numbers"),
        ([[[1.0, 2.0]]], "an array of shape"),
        ([3.0], "an array of shape"),
        ([[1.0, math.nan]], "not finite"),
        ([[math.inf, 0.0]], "not finite"),
        ([[1e39, 0.0]], "not finite"),
        ([], "0 vectors for one text"),
        ([[1.0, 2.0], [1.0, 2.0]], "2 vectors for one text"),
        ([["x", "y"]], "not a list of numbers"),
        ([[[1.0], 2.0]], "not a list of numbers"),
    ],
)
def test_answers_that_are_no_vector(vectors: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        ask(Fixed(*vectors))
    assert caught.value.message.startswith("nearest on Document.embedding: the embedder 'tiny-1'")
    assert caught.value.hint


def test_errors_of_the_embedder_are_its_own() -> None:
    class Broken(Fixed):
        def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
            raise ConnectionError("no route")

    with pytest.raises(ConnectionError, match="no route"):
        ask(Broken())
