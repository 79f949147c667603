"""Walks over commit graphs of any shape agree with what sets of ancestors say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.snapshot import GraphCommit, ManifestPlace, Snapshot

WINDOW = 3
"""Commits a snapshot carries here, so that walks have to open others."""


class Line:
    """A commit graph in memory; a snapshot of it carries the newest few of its line."""

    def __init__(self) -> None:
        self.commits: list[GraphCommit] = []
        self.opened = 0

    def add(self, parent: GraphCommit | None, merged: GraphCommit | None) -> GraphCommit:
        number = len(self.commits)
        commit = GraphCommit(
            id=f"C{number:03}",
            parent_id=parent.id if parent else None,
            merged_parent_id=merged.id if merged else None,
            branch="main",
            manifest_version=number,
            kind="load",
            actor=None,
            message=None,
            created_at_us=0,
            changes={},
            generation=1 + max(p.generation if p else 0 for p in (parent, merged)),
            merged_place=merged.place if merged else None,
        )
        self.commits.append(commit)
        return commit

    def by_id(self, commit_id: str | None) -> GraphCommit | None:
        return self.commits[int(commit_id[1:])] if commit_id else None

    def parents(self, commit: GraphCommit) -> list[GraphCommit]:
        both = (self.by_id(commit.parent_id), self.by_id(commit.merged_parent_id))
        return [parent for parent in both if parent is not None]

    def ancestors(self, commit: GraphCommit) -> set[str]:
        """With itself."""
        return {commit.id}.union(*(self.ancestors(p) for p in self.parents(commit)))

    def snapshot(self, commit: GraphCommit) -> Snapshot:
        window, current = [], commit
        while current is not None and len(window) < WINDOW:
            window.append(current)
            current = self.by_id(current.parent_id)
        return Snapshot(
            graph_id="G",
            branch="main",
            version=commit.manifest_version,
            schema_hash="h",
            pins={},
            commits=tuple(window),
        )

    def lineage(self) -> Lineage:
        line = self

        class Walked(Lineage):
            def snapshot(self, place: ManifestPlace) -> Snapshot:
                line.opened += 1
                return line.snapshot(line.commits[place.version])

        return Walked(lambda path: None)  # pyright: ignore[reportArgumentType]


@st.composite
def lines(draw: st.DrawFn) -> Line:
    line = Line()
    line.add(None, None)
    for number in range(1, draw(st.integers(1, 14))):
        parent = line.commits[draw(st.integers(0, number - 1))]
        merged = draw(st.none() | st.integers(0, number - 1))
        other = line.commits[merged] if merged not in (None, int(parent.id[1:])) else None
        line.add(parent, other)
    return line


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
