"""Columns kept per file: after a change nothing but new files is read, and answers stay right."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from topology_support import Versions, node_rows

from omnigraph.storage.layout import LiveRows
from omnigraph.storage.table_memory import ColumnCache, ColumnPart, without_rows


def column(*values) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values)])


def live_rows(*places) -> LiveRows:
    return LiveRows(8, offsets=np.array(places, np.int64))


places = st.sets(st.integers(0, 7)).map(sorted)


@given(places, st.booleans(), places, st.booleans())
def test_a_part_narrows_to_what_it_has(read, all_read, live, all_live):
    """Values of the live rows if every one was read; else nothing, never a wrong row."""
    have = range(8) if all_read else read
    part = ColumnPart(
        values=pa.chunked_array([pa.array([f"v{i}" for i in have], pa.string())]),
        live=None if all_read else live_rows(*read),
    )
    wanted = range(8) if all_live else live
    found = part.narrowed(None if all_live else live_rows(*live))
    assert (found is not None) == (set(wanted) <= set(have))
    if found is not None:
        assert found.to_pylist() == [f"v{i}" for i in wanted]


def test_any_rows_go_out_of_a_column():
    whole = pa.chunked_array([pa.array(range(30)), pa.array(range(30, 40))])
    for gone in ([], [0], [39], [0, 1, 29, 30, 39], list(range(0, 40, 2)), list(range(40))):
        left = without_rows(whole, np.array(gone, np.int64))
        assert left.to_pylist() == [n for n in range(40) if n not in gone]
        assert left.type == whole.type


def test_the_least_recently_used_goes_first():
    one = ColumnPart(values=column(*range(100)), live=None)
    cache = ColumnCache(one.nbytes * 2)
    cache.put(("a",), "x", one)
    cache.put(("b",), "x", one)
    assert cache.get(("a",), "x") is one
    cache.put(("c",), "x", one)
    assert cache.get(("b",), "x") is None
    assert cache.get(("a",), "x") is one
    cache.put(("a",), "x", one)
    assert cache.get(("c",), "x") is one, "what replaces itself takes no more room"


def test_nothing_larger_than_the_cache_is_kept():
    part = ColumnPart(values=column(*range(100)), live=LiveRows(100, offsets=np.arange(100)))
    cache = ColumnCache(part.nbytes - 1)
    cache.put(("a",), "x", part)
    assert cache.get(("a",), "x") is None
    empty = ColumnCache(0)
    empty.put(("a",), "x", part)
    assert empty.get(("a",), "x") is None


def ids(table) -> list[str]:
    return table.columns(["id"])["id"].to_pylist()


def test_a_deletion_reads_no_column_again(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, node_rows(f"a{i}" for i in range(200)))
    assert len(ids(first)) == 200
    second = made.remove(first, ["a7"])
    opened = second.reads
    _ = second.layout.offsets(second.layout.fragments[0])
    deletions = second.reads - opened
    assert deletions <= 1, "the file that says what was deleted"
    assert "a7" not in ids(second)
    assert second.reads - opened == deletions
    third = made.remove(second, ["a8", "a199"])
    opened = third.reads
    assert len(ids(third)) == 197
    assert third.reads - opened <= 1
    # And back: the older version needs rows that the newer has not.
    assert len(ids(made.store.open(first.name))) == 200


def test_an_update_reads_nothing_back(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, node_rows(f"a{i}" for i in range(200)))
    ids(first)
    second = made.upsert(first, node_rows(["a7", "b"]))
    asked = []
    read = second.memory._read_fragments
    second.memory._read_fragments = lambda fragments, names: (
        asked.append([f.live_rows for f in fragments]) or read(fragments, names)
    )
    found = ids(second)
    assert not any(asked), "the updated and the new row were written here"
    assert sorted(found) == sorted([f"a{i}" for i in range(200)] + ["b"])


def test_many_small_files_are_read_once(tmp_path):
    made = Versions(tmp_path)
    table = made.append(None, node_rows(["x0"]))
    for i in range(1, 12):
        table = made.append(table, node_rows([f"x{i}"]))
    assert ids(table) == [f"x{i}" for i in range(12)]
    opened = table.reads
    again = made.store.open(table.name)
    before = again.reads
    assert ids(again) == [f"x{i}" for i in range(12)]
    assert again.reads == before
    assert table.reads == opened


def test_a_part_read_after_a_deletion_does_not_serve_the_version_before(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, node_rows("abcd"))
    second = made.reopened(made.remove(first, ["b"]))
    store = second.memory._cache
    assert ids(second) == list("acd")
    before = made.reopened(first)
    before.memory._cache = store
    assert ids(before) == list("abcd")
    assert ids(second) == list("acd")
