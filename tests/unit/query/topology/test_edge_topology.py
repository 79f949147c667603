"""From version to version: what a commit changes is folded in, and only its files are read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_support import BASE, SIDES, Topology, Versions, check, edge_rows, reads

from omnigraph.query.topology import edges as module
from omnigraph.query.topology import overlay
from omnigraph.query.topology.adjacency import TARGET_MASK
from omnigraph.query.topology.edge_parts import EdgeParts
from omnigraph.query.topology.edges import EdgeTopology
from omnigraph.query.topology.vertices import VertexSpace
from support.examples import examples


def test_one_edge_is_folded_in_and_only_its_file_is_read(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, edge_rows(BASE))
    second = made.append(first, edge_rows([("new", "p1", "fresh")]))
    topology = Topology()
    check(topology, first)
    builds, refreshes = topology.made
    assert (builds, refreshes) == (6, 0)
    again = made.reopened(second)
    asked = reads(again)
    opened = again.reads
    adjacency = topology.edges.adjacency(again, "out", per_edge=False)
    assert asked == [1], "only the new fragment"
    # One new file: its footer and its two columns.
    assert again.reads - opened <= 3
    assert len(adjacency.keys) == len(BASE) + 1
    check(topology, again)
    assert topology.made == (builds, 6)


def test_an_asked_version_is_kept(tmp_path):
    table = Versions(tmp_path).append(None, edge_rows(BASE))
    topology = Topology()
    made = topology.edges.adjacency(table, "out", per_edge=False)
    assert topology.edges.has(table, "out", per_edge=False)
    assert not topology.edges.has(table, "out", per_edge=True)
    assert not topology.edges.has(table, "in", per_edge=False)
    assert topology.edges.adjacency(table, "out", per_edge=False) is made
    assert topology.made == (1, 0)


def test_deletions_are_folded_in_and_read_no_edges(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, edge_rows(BASE))
    topology = Topology()
    check(topology, first)
    before = topology.made
    # The second deletion is on the same fragment: a new file replaces the first one's.
    second = made.remove(first, ["e3"])
    third = made.remove(second, ["e4", "e20"])
    for number, version in enumerate((second, third), start=1):
        again = made.reopened(version)
        asked = reads(again)
        for side in SIDES:
            topology.edges.adjacency(again, side, per_edge=False)
            topology.edges.adjacency(again, side, per_edge=True)
        assert asked == []
        assert topology.made == (before[0], 6 * number)
        check(topology, again)
    # Back in time the deleted edges are there again, and the oldest version is still known.
    check(topology, first)
    check(topology, second)


def test_removing_one_of_two_parallel_edges_keeps_the_pair(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, edge_rows([("a", "x", "y"), ("b", "x", "y"), ("c", "y", "x")]))
    second = made.remove(first, ["a"])
    third = made.remove(second, ["b"])
    topology = Topology()
    for version in (first, second, third, first):
        check(topology, version)


def test_an_updated_edge(tmp_path):
    """An upsert hides the old row and brings the new one in another file, ends and all."""
    made = Versions(tmp_path)
    first = made.append(None, edge_rows(BASE))
    topology = Topology()
    check(topology, first)
    second = made.upsert(first, edge_rows([("e5", "p0", "moved"), ("e41", "a", "b")]))
    check(topology, second)
    assert topology.made[0] == 6
    check(topology, made.upsert(second, edge_rows([("e5", "p0", "again")])))
    check(topology, first)


def test_a_small_overwrite_is_folded_in_and_a_large_one_is_made_anew(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, edge_rows(BASE))
    other = [(f"f{i}", f"p{i}", "hub") for i in range(30)]
    second = made.replace(first, edge_rows(other))
    topology = Topology()
    check(topology, first)
    check(topology, second)
    assert topology.made == (6, 6)
    large = [(f"g{i}", f"p{i % 50}", f"q{i % 31}") for i in range(module.SMALL_CHANGE_MIN + 1)]
    third = made.replace(second, edge_rows(large))
    check(topology, third)
    assert topology.made == (12, 6)


def test_two_lineages_that_deleted_apart(tmp_path):
    """Neither deletion is the newer one: what one branch hides the other still shows."""
    made = Versions(tmp_path)
    base = made.append(None, edge_rows([(f"e{i}", "hub", f"p{i}") for i in range(6)]))
    ours, theirs = made.remove(base, ["e0"]), made.remove(base, ["e1"])
    further = made.remove(theirs, ["e2", "e3"])
    for order in ((ours, theirs), (theirs, ours), (ours, further), (further, ours, theirs, base)):
        topology = Topology()
        for version in (*order, *order):
            check(topology, made.reopened(version))


def test_two_lineages_whose_files_have_the_same_place(tmp_path):
    """The second fragment of each has the same number: equal addresses, different edges."""
    made = Versions(tmp_path)
    base = made.append(None, edge_rows(BASE))
    ours = made.append(base, edge_rows([("x", "p1", "ours")]))
    theirs = made.append(base, edge_rows([("y", "p1", "theirs")]))
    assert [f.id for f in ours.layout.fragments] == [f.id for f in theirs.layout.fragments]
    topology = Topology()
    for version in (base, ours, theirs, ours):
        check(topology, version)
    assert topology.made[0] == 6


def test_old_versions_and_branches_share_files(tmp_path):
    """Known files are numbered once, whichever version asks for them."""
    made = Versions(tmp_path)
    first = made.append(None, edge_rows(BASE))
    second = made.append(first, edge_rows([("x", "p1", "p2")]))
    branch = made.append(first, edge_rows([("y", "p1", "p3")]))
    topology = Topology()
    topology.edges.adjacency(second, "out", per_edge=False)
    for version in (first, branch):
        again = made.reopened(version)
        asked = reads(again)
        topology.edges.adjacency(again, "out", per_edge=False)
        assert sum(asked) <= 1


def test_forgotten_versions_are_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "BYTES_MAX", 1_500)
    made = Versions(tmp_path)
    versions = [made.append(None, edge_rows(BASE[:3]))]
    for edge in BASE[3:12]:
        versions.append(made.append(versions[-1], edge_rows([edge])))
    topology = Topology()
    for version in (*versions, *reversed(versions)):
        check(topology, version)
    assert 1 <= len(topology.edges._versions) < len(versions)
    assert topology.edges.nbytes <= 1_500
    known = {f.files for k in topology.edges._versions.values() for f in k.layout.fragments}
    assert set(topology.edges._parts._parts) <= known


def test_all_edges_gone_and_new_ones_after(tmp_path):
    made = Versions(tmp_path)
    first = made.append(None, edge_rows(BASE))
    none = made.remove(first, [i for i, _, _ in BASE])
    after = made.append(none, edge_rows([("z", "p1", "p2")]))
    topology = Topology()
    for version in (first, none, after, none, first):
        check(topology, version)


ids = st.sampled_from([f"e{i}" for i in range(12)])
ends = st.sampled_from(list("abcd"))
changes = st.lists(
    st.one_of(
        st.tuples(st.just("upsert"), st.lists(st.tuples(ids, ends, ends), min_size=1, max_size=4)),
        st.tuples(st.just("remove"), st.lists(ids, min_size=1, max_size=4)),
        st.tuples(st.just("back"), st.integers(1, 4)),
    ),
    max_size=7,
)


@settings(max_examples=examples(12))
@given(changes, st.integers(0, 3), st.sampled_from([(1 << 16, 16), (0, 0), (0, 2)]))
def test_any_history_with_branches(tmp_path_factory, history, small, laid_over):
    """Versions grow from any earlier one; every one is checked, then all of them again."""
    made = Versions(tmp_path_factory.mktemp("history"))
    versions = [made.append(None, edge_rows([("e0", "a", "b"), ("e1", "a", "a")]))]
    topology = Topology()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SMALL_CHANGE_MIN", small * 2)
        patch.setattr(module, "BYTES_MAX", 1_000 * small)
        patch.setattr(overlay, "LAID_OVER_MIN", laid_over[0])
        patch.setattr(overlay, "OVERLAY_PART", laid_over[1])
        base = versions[0]
        for what, detail in history:
            have = set(base.dataset.to_table(columns=["id"])["id"].to_pylist())
            if what == "upsert":
                rows = {i: (i, s, d) for i, s, d in detail}
                base = made.upsert(base, edge_rows(rows.values()))
            elif what == "remove":
                gone = sorted(set(detail) & have)
                base = made.remove(base, gone) if gone else base
            else:
                base = versions[-min(detail, len(versions))]
            versions.append(base)
            check(topology, base)
        for version in versions:
            check(topology, version)


def test_two_ends_of_different_types(tmp_path):
    made = Versions(tmp_path)
    table = made.append(None, edge_rows([("a", "x", "x"), ("b", "y", "x")]))
    people, places = VertexSpace(), VertexSpace()
    places.intern(pa.array(["other", "x"], pa.string()))
    topology = EdgeTopology(EdgeParts(people, places))
    adjacency = topology.adjacency(table, "in", per_edge=False)
    (x,) = places.find(pa.array(["x"])).tolist()
    assert adjacency.ranges(np.array([0, x]))[1].tolist() == [0, 2]
    assert people.text(adjacency.keys & TARGET_MASK).to_pylist() == ["x", "y"]
