"""Numbers for ids: a dictionary that only grows, and the rows of one version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_support import Versions, node_rows

from omnigraph.query.topology import vertices as module
from omnigraph.query.topology.vertices import NOTHING, PinnedVertices, VertexSpace
from support.examples import examples

TEXTS = st.sampled_from(["", "a", "b", "aa", "é", "\u0000", "x y", *(f"p{i}" for i in range(40))])


def texts(values) -> pa.StringArray:
    return pa.array(list(values), pa.string())


def numbers(found) -> list[int]:
    return np.asarray(found).tolist()


@st.composite
def histories(draw):
    step = st.tuples(st.sampled_from(["find", "intern"]), st.lists(TEXTS, max_size=12))
    return draw(st.lists(step, max_size=12))


@settings(max_examples=examples(80))
@given(histories(), st.sampled_from([0, 1, 3, 2_000]), st.sampled_from([0, 1, 8]))
def test_a_space_is_a_dictionary(history, few, scans):
    """Whether few ids are asked or many, by scan or by hash: the answers are a dict's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", few)
        patch.setattr(module, "ASKED_MAX", 2)
        patch.setattr(module, "SCANS_PER_TABLE", scans)
        patch.setattr(module, "SCANNED_MAX", few)
        patch.setattr(module, "RECENT_MAX", few)
        space, model = VertexSpace(), {}
        for what, asked in history:
            if what == "intern":
                for text in asked:
                    model.setdefault(text, len(model))
                found = space.intern(texts(asked))
            else:
                found = space.find(texts(asked))
            assert numbers(found) == [model.get(t, NOTHING) for t in asked]
            assert [space.number_of(t) for t in asked] == numbers(found)
            assert len(space) == len(model)
            assert space.ids.to_pylist() == list(model)


def test_numbers_never_change_while_a_space_grows():
    space = VertexSpace()
    first = numbers(space.intern(texts(f"a{i}" for i in range(3_000))))
    assert first == list(range(3_000))
    for start in range(0, 3_000, 500):
        space.intern(texts(f"b{i}" for i in range(start, start + 500)))
    assert numbers(space.find(texts(f"a{i}" for i in range(3_000)))) == first
    one_by_one = [numbers(space.find(texts([f"b{i}"])))[0] for i in range(0, 3_000, 113)]
    assert one_by_one == [3_000 + i for i in range(0, 3_000, 113)]
    assert space.text(np.array([0, NOTHING, 5_999])).to_pylist() == ["a0", None, "b2999"]


def test_few_ids_after_a_table_are_found_without_making_it_anew(monkeypatch):
    """The case of every small commit: a table is there, a handful of ids is new."""
    space = VertexSpace()
    space.intern(texts(f"a{i}" for i in range(100)))
    for _ in range(module.SCANS_PER_TABLE + 1):
        space.find(texts(["a7"]))
    made = []
    build = module.IdTable.build
    monkeypatch.setattr(
        module.IdTable, "build", staticmethod(lambda ids: made.append(len(ids)) or build(ids))
    )
    for i in range(50):
        assert numbers(space.intern(texts([f"new{i}", "a3"]))) == [100 + i, 3]
    assert made == []


def test_threads_that_meet_the_same_new_ids_agree():
    space, workers = VertexSpace(), 8
    together = Barrier(workers)

    def work(seed: int) -> dict[str, int]:
        mine = [f"p{(i * (seed + 1)) % 97}" for i in range(400)]
        together.wait()
        seen: dict[str, int] = {}
        for start in range(0, len(mine), 20):
            some = mine[start : start + 20]
            for text, number in zip(some, numbers(space.intern(texts(some))), strict=True):
                assert seen.setdefault(text, number) == number
        return seen

    with ThreadPoolExecutor(workers) as pool:
        answers = list(pool.map(work, range(workers)))
    merged: dict[str, int] = {}
    for answer in answers:
        for text, number in answer.items():
            assert merged.setdefault(text, number) == number
    assert sorted(merged.values()) == list(range(len(space)))
    assert space.ids.to_pylist() == sorted(merged, key=merged.__getitem__)


# ---------------------------------------------------------------- rows of one version


@settings(max_examples=examples(30))
@given(st.permutations(range(9)), st.integers(0, 9), st.lists(st.integers(-1, 14), max_size=12))
def test_pinned_vertices_map_both_ways(numbers_, kept, asked):
    own = np.array(numbers_[:kept], np.int64)
    pinned = PinnedVertices.of(own, 9)
    row_of = {int(v): i for i, v in enumerate(own)}
    found = pinned.rows(np.array(asked, np.int64))
    assert numbers(found) == [row_of.get(v, NOTHING) for v in asked]
    assert [pinned.row(v) for v in asked] == numbers(found)
    rows = np.array([r for r in asked if r < kept], np.int64)
    assert numbers(pinned.vertices(rows)) == [NOTHING if r < 0 else int(own[r]) for r in rows]


def test_rows_of_a_version_follow_its_deletions(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, node_rows("abcde"))
    second = made.remove(first, ["b", "d"])
    third = made.append(second, node_rows("xb"))
    space = VertexSpace()
    for table in (third, first, second):
        ids = table.columns(["id"])["id"].to_pylist()
        pinned = space.rows(table)
        assert pinned.row_count == len(ids)
        assert numbers(pinned.rows(space.find(texts(ids)))) == list(range(len(ids)))
        assert space.text(pinned.vertices(np.arange(len(ids)))).to_pylist() == ids
    # A number whose id a version does not have is no row of it.
    assert numbers(space.rows(second).rows(space.find(texts("bdxq")))) == [NOTHING] * 4


def test_a_version_that_only_grew_reads_only_what_is_new(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, node_rows(f"a{i}" for i in range(500)))
    second = made.append(first, node_rows(["b"]))
    space = VertexSpace()
    space.rows(first)
    again = made.reopened(second)
    asked = []
    read = again.fragment_columns
    again.fragment_columns = lambda fragments, names: (
        asked.append([f.physical_rows for f in fragments]) or read(fragments, names)
    )
    space.rows(again)
    assert asked == [[1]]
    space.rows(again)
    assert asked == [[1]]


def test_an_empty_version(tmp_path):
    made = Versions(tmp_path)
    table = made.append(None, node_rows("ab"))
    empty = made.remove(table, ["a", "b"])
    space = VertexSpace()
    pinned = space.rows(empty)
    assert pinned.row_count == 0
    space.intern(texts("ab"))
    assert numbers(pinned.rows(np.array([0, 1, NOTHING]))) == [NOTHING] * 3
