"""From the text of a `nearest` query to a vector, by way of the embedder that the user configured.

    "harbour at night" ─▶ [embed_query] ─▶ query vector ─▶ vectors

A vector means something only among vectors of the same model. If the schema records a model
(`@embed(source, model = "…")`), no other one may embed queries on that property. What an embedder
raises itself (no network, no quota) is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.errors import UsageError


class Embedder(Protocol):
    """Turns texts into vectors. Bring your own: any object with these two members is one."""

    @property
    def model(self) -> str:
        """The model's name, as schemas record it."""
        ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order."""
        ...


def embed_query(
    embedder: Embedder | None, text: str, *, size: int, recorded_model: str | None, where: str
) -> npt.NDArray[np.float32]:
    """The vector of a query text for a property of ``size`` numbers.

    ``where`` begins every message, for example ``nearest on Document.embedding``.
    """
    if embedder is None:
        raise UsageError(
            f"{where}: the query is a text, and no embedder is configured",
            hint="open the graph with an embedder, or pass a vector instead of a text",
        )
    model = embedder.model
    if recorded_model is not None and model != recorded_model:
        raise UsageError(
            f"{where}: the stored vectors were made by the model {recorded_model!r},"
            f" but the configured embedder uses {model!r}",
            hint=f"configure an embedder for {recorded_model!r}, or pass a vector",
            details={"recorded_model": recorded_model, "configured_model": model},
        )
    vector = _numbers(embedder.embed([text]), f"{where}: the embedder {model!r}")
    if vector.shape != (size,):
        raise UsageError(
            f"{where}: the embedder {model!r} gave {_shape(vector)}, not {size} numbers",
            hint=f"configure a model, or an output size, of {size} numbers",
        )
    with np.errstate(over="ignore"):
        narrow = vector.astype(np.float32)
    if not bool(np.isfinite(narrow).all()):
        raise UsageError(
            f"{where}: the embedder {model!r} gave a number that is not finite",
            hint="check the embedder: every number must be a finite 32-bit float",
        )
    return narrow


def _numbers(vectors: Sequence[Sequence[float]], subject: str) -> npt.NDArray[np.float64]:
    """The one vector that was asked for."""
    if len(vectors) != 1:
        raise UsageError(
            f"{subject} gave {len(vectors)} vectors for one text",
            hint="`embed` returns one vector per text",
        )
    try:
        return np.asarray(vectors[0], np.float64)
    except (TypeError, ValueError) as problem:
        raise UsageError(
            f"{subject} gave something that is not a list of numbers: {problem}",
            hint="`embed` returns one sequence of numbers per text",
        ) from problem


def _shape(vector: npt.NDArray[np.float64]) -> str:
    return f"{len(vector)} numbers" if vector.ndim == 1 else f"an array of shape {vector.shape}"
