"""Rows by their positions, over fragments and deletions, whatever a table holds."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.storage import rows as module
from omnigraph.storage.layout import Fragment, Layout
from omnigraph.storage.row_changes import live_rows
from omnigraph.storage.rows import read_rows, row_ids
from support.examples import examples

ROWS = 400


def stored(folder: Path, sizes: list[int], gone: set[int]) -> lance.LanceDataset:
    """Rows in fragments of these sizes, without those that were deleted."""
    names = [f"n{i}" for i in range(ROWS)]
    table = pa.table(
        {
            "id": names,
            "number": np.arange(ROWS),
            # A condition on a column is refused by Lance where a table has such lists.
            "lists": pa.array([[i, 1] for i in range(ROWS)], pa.list_(pa.uint32())),
            "blob": lance.blob_array(
                [name.encode() if i % 5 else None for i, name in enumerate(names)]
            ),
        },
        schema=pa.schema(
            [
                ("id", pa.string()),
                ("number", pa.int64()),
                ("lists", pa.list_(pa.uint32())),
                lance.blob_field("blob"),
            ]
        ),
    )
    edges = [0, *sizes, ROWS]
    for start, end in pairwise(edges):
        dataset = lance.write_dataset(
            table.slice(start, end - start),
            folder,
            mode="append" if start else "create",
            enable_stable_row_ids=True,
            data_storage_version="2.2",
        )
    for fragment in dataset.get_fragments():
        own = [
            n for n in gone if edges[fragment.fragment_id] <= n < edges[fragment.fragment_id + 1]
        ]
        if own:
            _delete(dataset, fragment, [n - edges[fragment.fragment_id] for n in own])
            dataset = lance.dataset(folder)
    return dataset


def _delete(dataset: lance.LanceDataset, fragment: lance.LanceFragment, offsets: list[int]) -> None:
    left = fragment.delete_rows(sorted(offsets))
    operation = lance.LanceOperation.Delete(
        updated_fragments=[left] if left is not None else [],
        deleted_fragment_ids=[] if left is not None else [fragment.fragment_id],
        predicate="test",
    )
    lance.LanceDataset.commit(dataset.uri, operation, read_version=dataset.version)


def layout_of(dataset: lance.LanceDataset) -> Layout:
    fragments = [Fragment.of(f.metadata) for f in dataset.get_fragments()]
    return Layout(fragments, lambda f: live_rows(lambda: dataset, f, lambda _: None))


@pytest.mark.parametrize("fraction", [0, ROWS], ids=["picked", "scanned"])
@settings(max_examples=examples(12))
@given(
    cuts=st.sets(st.integers(1, ROWS - 1), max_size=5),
    gone=st.sets(st.integers(0, ROWS - 1), max_size=30),
    data=st.data(),
)
def test_rows_at_positions_are_those_of_a_scan(
    tmp_path_factory: pytest.TempPathFactory,
    fraction: int,
    cuts: set[int],
    gone: set[int],
    data: st.DataObject,
) -> None:
    dataset = stored(tmp_path_factory.mktemp("rows") / "t.lance", sorted(cuts), gone)
    layout = layout_of(dataset)
    live = [n for n in range(ROWS) if n not in gone]
    positions = data.draw(st.lists(st.integers(0, len(live) - 1), min_size=1, max_size=20))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PICKED_FRACTION", fraction)
        patch.setattr(module, "PICKED_IDS_FRACTION", fraction)
        found = read_rows(
            dataset, layout, np.array(positions), ["number", "blob", "lists", "id"]
        ).to_pylist()
        ascending = sorted(set(positions))
        ids = row_ids(dataset, layout, np.array(ascending))
    wanted = [live[p] for p in positions]
    assert found == [
        {"number": n, "blob": f"n{n}".encode() if n % 5 else None, "lists": [n, 1], "id": f"n{n}"}
        for n in wanted
    ]
    assert ids.tolist() == [live[p] for p in ascending]


def test_no_row_at_all(tmp_path: Path) -> None:
    dataset = stored(tmp_path / "t.lance", [100], {3})
    found = read_rows(dataset, layout_of(dataset), np.empty(0, np.int64), ["id", "blob"])
    assert found.num_rows == 0
    assert found.schema.names == ["id", "blob"]
