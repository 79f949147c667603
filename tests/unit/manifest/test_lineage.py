"""Walks over commit graphs of any shape agree with what sets of ancestors say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lineage_support import Line, lines


@given(lines(), st.data())
def test_merge_bases_are_the_common_ancestors_that_nothing_common_descends_from(
    line: Line, data: st.DataObject
) -> None:
    mine, theirs = (data.draw(st.sampled_from(line.commits)) for _ in range(2))
    common = line.ancestors(mine) & line.ancestors(theirs)
    covered = {
        ancestor
        for c in common
        for parent in line.parents(line.by_id(c))  # pyright: ignore[reportArgumentType]
        for ancestor in line.ancestors(parent)
    }
    found = line.lineage().merge_bases(line.snapshot(mine), line.snapshot(theirs))
    assert {c.id for c in found} == common - covered
    assert len(found) == len({c.id for c in found})


@given(lines(), st.data())
def test_everything_behind_a_commit_is_walked_once_and_children_come_first(
    line: Line, data: st.DataObject
) -> None:
    head = data.draw(st.sampled_from(line.commits))
    walked = [c.id for c in line.lineage().reachable(line.snapshot(head))]
    assert len(walked) == len(set(walked))
    assert set(walked) == line.ancestors(head)
    for commit_id in walked:
        for parent in line.parents(line.by_id(commit_id)):  # pyright: ignore[reportArgumentType]
            assert walked.index(commit_id) < walked.index(parent.id)


@given(lines(), st.data())
def test_a_line_is_the_first_parents(line: Line, data: st.DataObject) -> None:
    head = data.draw(st.sampled_from(line.commits))
    expected, current = [], head
    while current is not None:
        expected.append(current.id)
        current = line.by_id(current.parent_id)
    assert [c.id for c in line.lineage().first_parents(line.snapshot(head))] == expected


def test_two_lines_merged_into_each_other_have_two_bases() -> None:
    line = Line()
    root = line.add(None, None)
    a, b = line.add(root, None), line.add(root, None)
    left, right = line.add(a, b), line.add(b, a)
    found = line.lineage().merge_bases(line.snapshot(left), line.snapshot(right))
    assert {c.id for c in found} == {a.id, b.id}


def test_near_bases_cost_no_look_at_the_far_past() -> None:
    line = Line()
    tip = line.add(None, None)
    for _ in range(200):
        tip = line.add(tip, None)
    left, right = line.add(tip, None), line.add(tip, None)
    found = line.lineage().merge_bases(line.snapshot(left), line.snapshot(right))
    assert [c.id for c in found] == [tip.id]
    assert line.opened == 0
