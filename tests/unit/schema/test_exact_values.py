"""Values become values of another type exactly or not at all: compared with Python's numbers."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.schema.migrate.type_changes import exactly, misfits

WHOLE = (pa.int32(), pa.int64(), pa.uint32(), pa.uint64())
FLOATS = (pa.float32(), pa.float64())
POWERS = [s * (2**n + d) for n in (0, 24, 31, 32, 53, 63, 64) for d in (-1, 0, 1) for s in (1, -1)]
NUMBERS = [*POWERS, 0, 5, 0.5, -0.25, 0.1, 1e30, 3.4e38]


def as_python(value: float, kind: pa.DataType) -> int | float | None:
    """The same number in a type, or None; by Python's own arithmetic."""
    if pa.types.is_integer(kind):
        low, high = (0, 2**kind.bit_width - 1)
        if pa.types.is_signed_integer(kind):
            low, high = -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1
        return int(value) if value == int(value) and low <= value <= high else None
    with np.errstate(over="ignore"):
        made = float(np.float32(value)) if kind == pa.float32() else float(value)
    return made if not math.isinf(made) and made == value else None


@pytest.mark.parametrize("target", [*WHOLE, *FLOATS], ids=str)
@pytest.mark.parametrize("source", [*WHOLE, *FLOATS], ids=str)
def test_numbers_are_kept_exactly_or_not_at_all(source: pa.DataType, target: pa.DataType) -> None:
    values = [v for v in (as_python(n, source) for n in NUMBERS) if v is not None]
    expected = [as_python(v, target) for v in values]
    assert exactly(pa.array([*values, None], source), target).to_pylist() == [*expected, None]
    sliced = pa.array([None, *values, None], source).slice(1, len(values))
    assert exactly(pa.chunked_array([sliced]), target).to_pylist() == expected
    assert misfits(sliced, target).to_pylist() == [v is None for v in expected]


def test_lists_are_kept_if_all_their_elements_are() -> None:
    long, short = (pa.list_(pa.field("item", k)) for k in (pa.int64(), pa.int32()))
    values = pa.array([[9], [1, 2], None, [], [2**40, 1], [None, 3]], long)
    assert exactly(values, short).to_pylist() == [[9], [1, 2], None, [], None, [None, 3]]
    assert exactly(values.slice(2), short).to_pylist() == [None, [], None, [None, 3]]
    assert misfits(values, short).to_pylist() == [False, False, False, False, True, False]


@pytest.mark.parametrize("target", [pa.int64(), pa.date32(), pa.bool_(), pa.list_(pa.string())])
def test_texts_are_not_parsed(target: pa.DataType) -> None:
    values = pa.array(["1", None, "true"])
    assert exactly(values, target).null_count == 3
    assert exactly(values, target).type == target
    assert misfits(values, target).to_pylist() == [True, False, True]
