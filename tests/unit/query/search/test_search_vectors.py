"""Nearest neighbours: exact in value, order and number, whatever the estimates say."""

from __future__ import annotations

import math
from collections.abc import Collection
from pathlib import Path

import lance
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
import search_reference as reference
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InternalError
from omnigraph.query.search import vectors
from omnigraph.query.search.vectors import VectorColumn

Matrix = npt.NDArray[np.float32]


def column_of(matrix: Matrix, nulls: Collection[int] = ()) -> pa.Array:
    size = matrix.shape[1]
    mask = pa.array([i in nulls for i in range(len(matrix))], pa.bool_())
    values = pa.array(matrix.ravel(), pa.float32())
    return pa.FixedSizeListArray.from_arrays(values, size, mask=mask)


@st.composite
def clouds(draw: st.DrawFn) -> tuple[Matrix, npt.NDArray[np.float32]]:
    """Vectors that are hard on estimates: far from the origin, close together, repeated, extreme."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, size = draw(st.integers(1, 60)), draw(st.integers(1, 20))
    offset = draw(st.sampled_from([0.0, 1.0, 1e3, 1e6, 1e18]))
    spread = draw(st.sampled_from([0.0, 1e-30, 1e-3, 1.0, 1e4, 1e19]))
    matrix = (offset + spread * random.normal(size=(count, size))).astype(np.float32)
    if draw(st.booleans()):
        matrix = matrix[random.integers(0, count, count)]
    query = (offset + spread * random.normal(size=size)).astype(np.float32)
    return matrix, matrix[0] if draw(st.booleans()) else query


@given(clouds())
def test_distances_are_squared_and_exact(cloud: tuple[Matrix, npt.NDArray[np.float32]]) -> None:
    matrix, query = cloud
    rows, distances = VectorColumn.build(column_of(matrix)).nearest(query, None, None)
    assert sorted(rows.tolist()) == list(range(len(matrix)))
    pairs = list(zip(distances.tolist(), rows.tolist(), strict=True))
    assert pairs == sorted(pairs)
    assert distances.dtype == np.float32
    for distance, row in pairs:
        exact = reference.squared_distance(matrix[row].tolist(), query.tolist())
        with np.errstate(over="ignore"):
            expected = np.float32(float(exact))
        if np.isfinite(expected):
            # Rounded once: off by at most one unit in the last place.
            assert abs(float(expected) - distance) <= np.spacing(expected)
        else:
            assert distance == expected


@given(clouds(), st.data())
def test_the_k_nearest_are_the_first_of_all(
    cloud: tuple[Matrix, npt.NDArray[np.float32]], data: st.DataObject
) -> None:
    matrix, query = cloud
    count = len(matrix)
    nulls = data.draw(st.sets(st.integers(0, count - 1), max_size=5))
    k = data.draw(st.integers(0, count + 2))
    candidates = data.draw(st.none() | st.lists(st.integers(0, count - 1)))
    given_rows = None if candidates is None else np.array(candidates, np.int64)
    column = VectorColumn.build(column_of(matrix, nulls))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "_PICKED", data.draw(st.sampled_from([0, 12, 10**6])))
        patch.setattr(vectors, "_BLOCK_ROWS", data.draw(st.sampled_from([1, 7, 1024])))
        rows, distances = column.nearest(query, given_rows, k)
    all_rows, all_distances = VectorColumn.build(column_of(matrix)).nearest(query, None, None)
    wanted = [
        (row, distance)
        for row, distance in zip(all_rows.tolist(), all_distances.tolist(), strict=True)
        if row not in nulls and (candidates is None or row in candidates)
    ]
    if k < len(wanted):
        wanted = [w for w in wanted if k and w[1] <= wanted[k - 1][1]]
    assert list(zip(rows.tolist(), distances.tolist(), strict=True)) == wanted


def test_ties_are_not_cut() -> None:
    matrix = np.array([[2], [1], [-1], [1], [0], [5]], np.float32)
    rows, distances = VectorColumn.build(column_of(matrix)).nearest(
        np.zeros(1, np.float32), None, 2
    )
    assert rows.tolist() == [4, 1, 2, 3]
    assert distances.tolist() == [0, 1, 1, 1]


def test_distances_that_round_to_the_same_number_are_ties() -> None:
    matrix = np.array([[1, 1e-5], [1, 0], [2, 0]], np.float32)
    rows, distances = VectorColumn.build(column_of(matrix)).nearest(
        np.zeros(2, np.float32), None, 1
    )
    assert rows.tolist() == [0, 1]
    assert distances.tolist() == [1, 1]


def test_digits_survive_far_from_the_origin() -> None:
    """One unit apart at a distance of thousands: 32-bit estimates cannot tell these apart."""
    random = np.random.default_rng(1)
    base = random.normal(scale=4096, size=64).astype(np.float32).round()
    matrix = np.tile(base, (500, 1))
    steps = random.permutation(500)
    matrix[:, 0] += steps.astype(np.float32) / 8
    rows, distances = VectorColumn.build(column_of(matrix)).nearest(base, None, 5)
    assert rows.tolist() == np.argsort(steps)[:5].tolist()
    assert distances.tolist() == [(i / 8) ** 2 for i in range(5)]


def test_beyond_32_bits_everything_is_equally_far() -> None:
    matrix = np.array([[1e20], [2e20], [1e-3], [3e38]], np.float32)
    rows, distances = VectorColumn.build(column_of(matrix)).nearest(
        np.zeros(1, np.float32), None, 2
    )
    assert rows.tolist() == [2, 0, 1, 3]
    assert distances[1:].tolist() == [math.inf] * 3


def test_lance_reports_the_same_distance(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    matrix = random.normal(size=(500, 24)).astype(np.float32)
    query = random.normal(size=24).astype(np.float32)
    dataset = lance.write_dataset(pa.table({"v": column_of(matrix)}), tmp_path / "v.lance")
    told = dataset.to_table(
        columns=["_distance", "_rowid"],
        nearest={"column": "v", "q": query, "k": 20, "metric": "L2"},
    )
    rows, distances = VectorColumn.build(dataset.to_table()["v"]).nearest(query, None, 20)
    assert rows.tolist() == told["_rowid"].to_pylist()
    np.testing.assert_allclose(distances, told["_distance"].to_numpy(), rtol=1e-6)


# ---------------------------------------------------------------- shapes of columns


def test_chunks_slices_and_nulls() -> None:
    matrix = np.arange(20, dtype=np.float32).reshape(10, 2)
    first = column_of(matrix, {0, 3}).slice(2, 3)  # Rows 2, null, 4.
    second = column_of(matrix, {5}).slice(5)  # Null, 6, 7, 8, 9.
    column = pa.chunked_array([first, column_of(matrix).slice(0, 0), second])
    prepared = VectorColumn.build(column)
    rows, distances = prepared.nearest(matrix[4])
    assert rows.tolist() == [2, 0, 4, 5, 6, 7]
    assert distances.tolist() == [0, 32, 32, 72, 128, 200]
    rows, _ = prepared.nearest(matrix[4], np.array([1, 3, 0, 7, 0]), 5)
    assert rows.tolist() == [0, 7]
    assert prepared.nbytes > 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array([], pa.list_(pa.float32(), 3)),
        pa.chunked_array([], pa.list_(pa.float32(), 3)),
        pa.nulls(4, pa.list_(pa.float32(), 3)),
        pa.chunked_array([pa.nulls(2, pa.list_(pa.float32(), 3))] * 2),
    ],
)
@pytest.mark.parametrize("k", [None, 0, 1, 9])
def test_no_vectors(column: pa.Array, k: int | None) -> None:
    for rows in (None, np.arange(len(column))):
        found, distances = VectorColumn.build(column).nearest(np.ones(3, np.float32), rows, k)
        assert (found.tolist(), distances.tolist()) == ([], [])


def test_a_column_of_one_piece_is_not_copied() -> None:
    values = pa.array(np.arange(6, dtype=np.float32))
    column = pa.FixedSizeListArray.from_arrays(values, 2)
    prepared = VectorColumn.build(column)
    assert np.shares_memory(prepared.matrix, values.to_numpy())


def test_a_query_of_another_size_is_a_bug_of_the_caller() -> None:
    with pytest.raises(InternalError, match="size 2"):
        VectorColumn.build(column_of(np.zeros((1, 2), np.float32))).nearest(
            np.zeros(3, np.float32), None, 1
        )
