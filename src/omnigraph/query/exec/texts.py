"""Tests on text columns, plain or dictionary-encoded.

    typed test -> [texts] -> truth

A dictionary column is asked through its dictionary: the test runs once per distinct text, and rows
only look their answer up. Text is compared by code points, which is the order of its UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arrow.compute import pc
from omnigraph.query.exec.numbers import plain
from omnigraph.query.exec.truth import Truth, from_arrow, valid_mask
from omnigraph.query.typed import CompareOp

TextKind = Literal["contains", "starts_with"]

_DICTIONARY_ROWS_FACTOR = 4
"""With so many more distinct texts than rows, rows are decoded instead of asking each text."""
_EQUALS_MAX = 4
"""Up to so many values a comparison with each is faster than Arrow's hash table."""

_COMPARE: dict[CompareOp, Any] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def with_constant(op: CompareOp, column: pa.Array, value: str) -> Truth:
    """``column op value``."""
    compare, text = _COMPARE[op], pa.scalar(value, pa.string())
    return _by_text(column, lambda texts: from_arrow(compare(texts, text)))


def between(op: CompareOp, left: pa.Array, right: pa.Array) -> Truth:
    """``left op right``, row by row."""
    return from_arrow(_COMPARE[op](decoded(left), decoded(right)))


def among(column: pa.Array, values: Sequence[str]) -> Truth:
    """Whether a text is one of the values; unknown for null."""
    if not values:
        return Truth.where_valid(np.zeros(len(column), np.bool_), valid_mask(column))
    return _by_text(column, lambda texts: _among(texts, values))


def _among(texts: pa.Array, values: Sequence[str]) -> Truth:
    if len(values) <= _EQUALS_MAX:
        found = from_arrow(pc.equal(texts, values[0]))
        for value in values[1:]:
            found |= from_arrow(pc.equal(texts, value))
        return found
    found = pc.is_in(texts, value_set=pa.array(values, pa.string()))
    return Truth.where_valid(from_arrow(found).sure, valid_mask(texts))


def has_part(kind: TextKind, column: pa.Array, part: str) -> Truth:
    """Exact, case-sensitive; false for null."""
    match = pc.match_substring if kind == "contains" else pc.starts_with

    def test(texts: pa.Array) -> Truth:
        return Truth.known(from_arrow(match(texts, pattern=part)).sure)

    return _by_text(column, test, null=False)


def has_parts(kind: TextKind, texts: pa.Array | str, parts: pa.Array) -> Truth:
    """As ``has_part`` where the part differs from row to row. Each distinct pair is asked once."""
    wanted: list[str | None] = decoded(parts).to_pylist()
    given: list[str | None] = [texts] * len(wanted)
    if not isinstance(texts, str):
        given = decoded(texts).to_pylist()
    answers: dict[tuple[str | None, str | None], bool] = {}
    for pair in set(zip(given, wanted, strict=True)):
        text, part = pair
        if text is None or part is None:
            answers[pair] = False
        else:
            answers[pair] = part in text if kind == "contains" else text.startswith(part)
    pairs = zip(given, wanted, strict=True)
    return Truth.known(np.fromiter((answers[p] for p in pairs), np.bool_, count=len(wanted)))


def decoded(column: pa.Array) -> pa.Array:
    """The texts themselves."""
    if isinstance(column, pa.DictionaryArray):
        return column.dictionary.take(column.indices)
    return column


def _by_text(
    column: pa.Array, test: Callable[[pa.Array], Truth], *, null: bool | None = None
) -> Truth:
    """A test of each text; ``null`` is the answer for rows without one."""
    if not isinstance(column, pa.DictionaryArray):
        return test(column)
    if len(column.dictionary) > _DICTIONARY_ROWS_FACTOR * len(column) + 64:
        return test(decoded(column))
    indices = column.indices
    answers = test(column.dictionary)
    valid = valid_mask(indices)
    if not len(answers.sure):
        found = Truth.constant(False, len(column))
    elif answers.possible is answers.sure:
        found = Truth.known(_looked_up(answers, plain(indices)))
    else:
        found = answers.take(plain(indices))
    if valid is None:
        return found
    if null is None:
        return Truth(found.sure & valid, found.possible | ~valid)
    return Truth.known(found.sure & valid)


def _looked_up(answers: Truth, codes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """The answer of each code. One exception among the texts is found by comparing codes."""
    count, total = np.count_nonzero(answers.sure), len(answers.sure)
    if count in (0, total):
        return np.full(len(codes), bool(count), np.bool_)
    if count == 1:
        return codes == codes.dtype.type(int(answers.sure.argmax()))
    if count == total - 1:
        return codes != codes.dtype.type(int(answers.sure.argmin()))
    return answers.sure.take(codes, mode="clip")
