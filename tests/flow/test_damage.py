"""Missing, truncated or altered objects: loud, typed, and never an older state shown as the newest."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph.manifest.format import FORMAT
from support.racers import SCHEMA
from support.releases import release_of_format

REFERENCED = {
    "table manifest": "nodes/*/_graph/*.manifest",
    "data file": "nodes/*/data/*.lance",
    "schema": "_schema/*.json",
    "manifest": "__manifest/_versions/*.manifest",
    "manifest data": "__manifest/data/*.lance",
}


def remove(file: Path) -> None:
    file.unlink()


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def alter(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    content[-9] ^= 0xFF
    file.write_bytes(content)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        for name in ("a", "b"):
            graph.load([{"type": "Person", "data": {"name": name}}])
    return tmp_path / "graph"


def read(root: Path) -> list[dict]:
    with omnigraph.open(root) as graph:
        return graph.snapshot().rows("Person").to_dicts()


@pytest.mark.parametrize("damage", [remove, truncate, empty, alter])
@pytest.mark.parametrize("what", REFERENCED)
def test_a_damaged_object_is_reported_as_corruption(root: Path, what: str, damage) -> None:
    files = list(root.glob(REFERENCED[what]))
    assert files
    for file in files:
        damage(file)
    with pytest.raises(omnigraph.OmnigraphError) as caught:
        read(root)
    if what == "manifest" and damage is remove:
        # Not one version is left, but the hint remembers that there was a graph.
        assert "manifest version 3" in caught.value.message
    assert caught.value.kind is omnigraph.ErrorKind.CORRUPTION
    assert caught.value.hint


def test_losing_only_the_newest_manifest_is_not_a_silent_rollback(root: Path) -> None:
    newest = min(root.glob("__manifest/_versions/*.manifest"))
    newest.unlink()
    with pytest.raises(omnigraph.CorruptionError, match=r"manifest version 3 of .* is missing"):
        read(root)


@pytest.mark.parametrize("damage", [remove, truncate, empty])
def test_the_hint_is_only_a_hint(root: Path, damage) -> None:
    damage(root / "__manifest" / "_head.json")
    assert [r["name"] for r in read(root)] == ["a", "b"]


def test_a_lagging_hint_shows_the_newest_state(root: Path) -> None:
    (root / "__manifest" / "_head.json").write_text('{"version":1}')
    assert [r["name"] for r in read(root)] == ["a", "b"]


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with release_of_format(FORMAT + 1):
        omnigraph.init(tmp_path / "graph", SCHEMA).close()
    with pytest.raises(omnigraph.FormatError) as caught:
        omnigraph.open(tmp_path / "graph")
    assert caught.value.kind is omnigraph.ErrorKind.FORMAT_NEWER
    assert caught.value.hint == "upgrade omnigraph first"


def test_a_format_older_than_the_oldest_is_refused(tmp_path: Path) -> None:
    omnigraph.init(tmp_path / "graph", SCHEMA).close()
    with (
        release_of_format(FORMAT + 2, oldest=FORMAT + 1),
        pytest.raises(omnigraph.FormatError) as caught,
    ):
        omnigraph.open(tmp_path / "graph")
    assert caught.value.kind is omnigraph.ErrorKind.FORMAT_OLDER
