"""Addresses and positions on real tables: deletions, many fragments, numbers out of order."""

from __future__ import annotations

from types import SimpleNamespace

import lance
import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_support import Versions, node_rows

from omnigraph.storage.layout import Fragment, Layout, LiveRows, hidden
from omnigraph.storage.table_memory import ColumnCache
from omnigraph.storage.tables import Table
from support.examples import examples


def stored(table: Table) -> tuple[np.ndarray, list[str]]:
    """What Lance says: address and id of every live row, in storage order."""
    found = table.dataset.scanner(
        columns=["id"], with_row_address=True, scan_in_order=True
    ).to_table()
    return found["_rowaddr"].to_numpy().astype(np.int64), found["id"].to_pylist()


def check(table: Table) -> None:
    layout = table.layout
    addresses, ids = stored(table)
    everything = np.arange(len(ids))
    assert layout.row_count == len(ids)
    assert layout.all_addresses().tolist() == addresses.tolist()
    assert layout.positions(addresses).tolist() == everything.tolist()
    assert layout.addresses_at(everything).tolist() == addresses.tolist()
    backwards = everything[::-1]
    assert layout.positions(addresses[backwards]).tolist() == backwards.tolist()
    assert layout.addresses_at(backwards).tolist() == addresses[backwards].tolist()
    twice = np.repeat(everything[::2], 2)
    assert layout.positions(addresses[twice]).tolist() == twice.tolist()
    assert table.columns(["id"])["id"].to_pylist() == ids
    if ids:
        some = everything[:: max(1, len(ids) // 3)]
        assert table.take(some, ["id"])["id"].to_pylist() == [ids[i] for i in some]
    none = np.empty(0, np.int64)
    assert layout.positions(none).tolist() == layout.addresses_at(none).tolist() == []


def raw(dataset: lance.LanceDataset) -> Table:
    name = SimpleNamespace(path="t", version=dataset.version)
    return Table(name, dataset, None, ColumnCache(1 << 20))


def test_one_fragment(tmp_path):
    made = Versions(tmp_path)
    table = made.append(None, node_rows("abcdef"))
    check(table)
    check(made.remove(table, ["a"]))
    check(made.remove(table, ["c", "f"]))
    check(made.remove(table, list("abcdef")))


def test_deletions_in_several_fragments(tmp_path):
    made = Versions(tmp_path)
    table = made.append(None, node_rows("abcdef"))
    table = made.append(table, node_rows("ghijkl"))
    table = made.append(table, node_rows("m"))
    for gone in (["b", "h"], ["a", "l"], ["m"], ["c", "d", "e", "f"]):
        table = made.remove(table, gone)
        check(table)
    check(made.append(table, node_rows("a")))


def test_numbers_with_gaps_after_compaction(tmp_path):
    """Compaction writes small fragments anew under a higher number: their rows move to the end."""
    place = str(tmp_path / "t")
    for number in range(4):
        rows = pa.table({"id": [f"{number}-{i}" for i in range(3 if number < 2 else 400)]})
        lance.write_dataset(rows, place, mode="append" if number else "create")
    dataset = lance.dataset(place)
    dataset.optimize.compact_files(target_rows_per_fragment=100)
    assert [f.fragment_id for f in dataset.get_fragments()] == [2, 3, 4]
    assert stored(raw(dataset))[1][-1] == "1-2"
    check(raw(dataset))
    dataset.delete("id in ('0-1', '1-2', '2-0', '2-399', '3-5')")
    check(raw(lance.dataset(place)))


def test_numbers_out_of_order():
    """Lance lists fragments by their numbers today; nothing here relies on it."""
    live = {7: [0, 2], 9: [1, 3, 4]}
    fragments = [
        Fragment(id=7, files=("a",), deletion="d", physical_rows=3, live_rows=2),
        Fragment(id=2, files=("b",), deletion=None, physical_rows=2, live_rows=2),
        Fragment(id=9, files=("c",), deletion="e", physical_rows=5, live_rows=3),
        Fragment(id=0, files=("d",), deletion=None, physical_rows=1, live_rows=1),
    ]

    def live_rows(fragment: Fragment) -> LiveRows:
        return LiveRows(fragment.physical_rows, offsets=np.array(live[fragment.id], np.int64))

    layout = Layout(fragments, live_rows)
    places = [(7, 0), (7, 2), (2, 0), (2, 1), (9, 1), (9, 3), (9, 4), (0, 0)]
    addresses = np.array([(fragment << 32) | offset for fragment, offset in places])
    assert layout.all_addresses().tolist() == addresses.tolist()
    for order in (np.arange(8), np.arange(8)[::-1], np.array([5, 5, 0, 7, 2])):
        assert layout.positions(addresses[order]).tolist() == order.tolist()
        assert layout.addresses_at(order).tolist() == addresses[order].tolist()
    gone = layout.live_without(np.array([1, 4, 7]))
    assert {number: left.offsets.tolist() for number, left in gone.items()} == {
        7: [0],
        9: [3, 4],
        0: [],
    }


def test_emptied_fragments_between_others(tmp_path):
    """A fragment may lose its last row and stay listed."""
    made = Versions(tmp_path)
    table = made.append(None, node_rows("abc"))
    for letter in "defg":
        table = made.append(table, node_rows(letter))
    table = made.remove(table, ["d"])
    check(table)
    check(made.remove(table, ["f", "a"]))


def test_a_table_without_rows_has_no_addresses():
    layout = Layout([], lambda fragment: LiveRows(0))
    assert layout.row_count == 0
    assert layout.all_addresses().tolist() == []


@settings(max_examples=examples(10))
@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.lists(st.sets(st.integers(0, 19), max_size=6), max_size=3),
)
def test_any_deletions(tmp_path_factory, sizes, deletions):
    made = Versions(tmp_path_factory.mktemp("layout"))
    table, number = None, 0
    for size in sizes:
        table = made.append(table, node_rows(f"n{number + i}" for i in range(size)))
        number += size
    for gone in deletions:
        there = stored(table)[1]
        ids = sorted(there[i] for i in gone if i < len(there))
        if ids:
            before = table.layout
            positions = np.sort(table.positions("id", pa.array(ids)))
            predicted = before.live_without(positions)
            table = made.remove(table, ids)
            for fragment in table.layout.fragments:
                if fragment.id in predicted:
                    live = table.layout.offsets(fragment)
                    assert predicted[fragment.id].offsets.tolist() == live.tolist()
        check(table)
        check(made.reopened(table))


ROWS = 12
some = st.sets(st.integers(0, ROWS - 1))


def live_of(left: set[int], *, by_gone: bool) -> LiveRows:
    gone = sorted(set(range(ROWS)) - left)
    known = {"gone": gone} if by_gone else {"offsets": sorted(left)}
    return LiveRows(ROWS, **{name: np.array(v, np.int64) for name, v in known.items()})


@given(some, some, st.booleans(), st.booleans())
def test_live_rows_are_a_set(left, other, by_gone, other_by_gone):
    live, second = live_of(left, by_gone=by_gone), live_of(other, by_gone=other_by_gone)
    assert live.offsets.tolist() == sorted(left)
    assert live.gone.tolist() == sorted(set(range(ROWS)) - left)
    assert live.numbers(live.offsets).tolist() == list(range(len(left)))
    assert live.offsets_at(np.arange(len(left))).tolist() == sorted(left)
    assert live.without(np.array(sorted(other & left), np.int64)).offsets.tolist() == sorted(
        left - other
    )
    assert live.has(second) == (other <= left)
    assert live.has(None) == (len(left) == ROWS)
    assert hidden(live, second).tolist() == sorted(left - other)
    assert hidden(None, second).tolist() == sorted(set(range(ROWS)) - other)
    assert hidden(live, None).tolist() == []


def test_following_a_deletion_costs_what_has_gone():
    """Not what is left: a write to a large table makes no array of its length."""
    nothing = np.empty(0, np.int64)
    fragments = [
        Fragment(id=0, files=("a",), deletion="d", physical_rows=1 << 31, live_rows=(1 << 31) - 2)
    ]
    live = LiveRows(1 << 31, gone=nothing).without(np.array([3, 9]))
    layout = Layout(fragments, lambda _: live)
    places = np.array([0, 3, 7, (1 << 31) - 3])
    assert layout.addresses_at(places).tolist() == [0, 4, 8, (1 << 31) - 1]
    assert layout.positions(np.array([0, 4, 10])).tolist() == [0, 3, 8]
    after = layout.live_without(np.array([3]))[0]
    assert after.gone.tolist() == [3, 4, 9]
    assert hidden(live, after).tolist() == [4]
