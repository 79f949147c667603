"""``durability="fsync"``: everything the new state needs is on disk before the write is acknowledged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omnigraph
from omnigraph.failpoints import FailPoint, armed
from omnigraph.storage import objects

SCHEMA = """
node Person { name: String @key  photo: Blob? }
edge Knows: Person -> Person
"""
HOUSEKEEPING = ("__recovery/", "_head.json", "_transactions/", ".manifest-", "latest_version_hint")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Every path in the order it was synced."""
    paths: list[Path] = []
    real = objects._sync

    def record(path: Path) -> None:
        real(path)
        paths.append(path)

    monkeypatch.setattr(objects, "_sync", record)
    return paths


def needed(root: Path) -> set[Path]:
    """All files of a graph except those that no reader needs."""
    return {
        p for p in root.rglob("*") if p.is_file() and not any(h in str(p) for h in HOUSEKEEPING)
    }


def rows(i: int) -> list[dict]:
    return [
        {"type": "Person", "data": {"name": f"p{i}", "photo": bytes(200_000)}},
        {"edge": "Knows", "from": f"p{i}", "to": f"p{i}"},
    ]


def test_everything_is_synced_before_the_acknowledgement(
    tmp_path: Path, synced: list[Path]
) -> None:
    root = tmp_path / "graph"
    with omnigraph.init(root, SCHEMA, durability="fsync") as graph:
        assert needed(root) <= set(synced)
        assert tmp_path in synced, "the folder that names the root"
        for i in range(2):
            before = needed(root)
            synced.clear()
            graph.load(rows(i))
            new = needed(root) - before
            assert new <= set(synced), new - set(synced)
            assert {p.parent for p in new} <= set(synced), "a new name needs its folder"
        synced.clear()
        before = needed(root)
        graph.load(rows(0)[:1], mode="merge")
        assert needed(root) - before <= set(synced)


def test_tables_are_synced_before_the_commit_and_the_commit_after_it(
    tmp_path: Path, synced: list[Path]
) -> None:
    root = tmp_path / "graph"
    with omnigraph.init(root, SCHEMA, durability="fsync") as graph:
        at_commit: list[Path] = []
        synced.clear()
        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: at_commit.extend(synced)):
            graph.load(rows(0))
        assert any("/nodes/" in str(p) for p in at_commit)
        assert any("/edges/" in str(p) for p in at_commit)
        assert any("/__manifest/data/" in str(p) for p in at_commit)
        versions = root / "__manifest" / "_versions"
        assert not any(p.parent == versions for p in at_commit)
        assert any(p.parent == versions for p in synced)
        assert versions in synced


def test_the_default_syncs_nothing(tmp_path: Path, synced: list[Path]) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.load(rows(0))
    assert not synced


def test_unknown_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(omnigraph.UsageError, match="durability"):
        omnigraph.init(tmp_path / "graph", SCHEMA, durability="paranoid")
    assert not os.path.exists(tmp_path / "graph")
