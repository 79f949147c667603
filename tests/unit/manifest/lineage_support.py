"""Commit graphs in memory, of any shape, that a lineage can be asked about."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.manifest.kept import reclaimed
from omnigraph.manifest.lineage import Lineage
from omnigraph.manifest.snapshot import MAIN_PATH, GraphCommit, ManifestPlace, Snapshot

WINDOW = 3
"""Commits a snapshot carries here, so that walks have to open others."""


class Line:
    """A commit graph in memory; a snapshot of it carries the newest few of its line."""

    def __init__(self) -> None:
        self.commits: list[GraphCommit] = []
        self.opened = 0
        self.reclaimed: set[int] = set()

    def add(self, parent: GraphCommit | None, merged: GraphCommit | None) -> GraphCommit:
        number = len(self.commits)
        commit = GraphCommit(
            id=f"C{number:03}",
            parent_id=parent.id if parent else None,
            merged_parent_id=merged.id if merged else None,
            branch="main",
            place=ManifestPlace(path=MAIN_PATH, version=number),
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
                if place.version in line.reclaimed:
                    raise reclaimed(place)
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
