"""Control objects on a disk: what the system does directly is what the store would have done."""

from __future__ import annotations

import os
from pathlib import Path

import obstore
import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects

NAMES = [
    "plain.json",
    "folder/plain.json",
    "_refs/branches/a%20b%2Fc/1.json",
    "%25.json",
    "with space.json",
    "Ärger/ø.json",
    "tilde~1 (2)+=&.json",
]


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(locate(str(tmp_path / "g")), create=True)


def _by_store(objects: Objects, name: str) -> bytes:
    return bytes(obstore.get(objects._store, name).bytes())


@pytest.mark.parametrize("name", NAMES)
def test_an_object_is_where_the_store_looks_for_it(objects: Objects, name: str) -> None:
    for content in (b"first", b"", b"replaced"):  # The first time a folder is missing, too.
        objects.put(name, content)
        assert _by_store(objects, name) == content
    objects.copy(name, f"{name}.copy")
    assert _by_store(objects, f"{name}.copy") == b"replaced"
    assert sorted(objects.names("")) == sorted([name, f"{name}.copy"])
    objects.delete([name, f"{name}.copy", f"{name}.never"])
    assert list(objects.names("")) == []


@pytest.mark.parametrize("name", NAMES)
def test_what_the_store_wrote_is_found_and_removed(objects: Objects, name: str) -> None:
    obstore.put(objects._store, name, b"by the store", use_multipart=False)
    objects.copy(name, "another/place")
    assert _by_store(objects, "another/place") == b"by the store"
    objects.delete([name])
    assert list(objects.names("")) == ["another/place"]


def test_a_copy_takes_the_place_of_what_is_there(objects: Objects) -> None:
    objects.put("new", b"new")
    objects.put("old", b"old")
    objects.copy("new", "old")
    objects.put("new", b"newer")
    assert _by_store(objects, "old") == b"new"


def test_a_draft_that_a_dead_writer_left_is_no_object(objects: Objects) -> None:
    objects.put("x", b"x")
    root = objects.location.local_path
    (root / f"x#{os.getpid()}123").write_bytes(b"half")
    assert list(objects.names("")) == ["x"]


def test_what_cannot_be_written_copied_or_removed_is_told(objects: Objects) -> None:
    objects.put("file", b"")
    with pytest.raises(StorageError, match="while writing file/below"):
        objects.put("file/below", b"x")
    with pytest.raises(StorageError, match="copying missing to"):
        objects.copy("missing", "there")
    objects.put("folder/x", b"")
    with pytest.raises(StorageError, match="deleting folder"):
        objects.delete(["folder"])
    assert sorted(objects.names("")) == ["file", "folder/x"]
    assert sorted(os.listdir(objects.location.local_path)) == ["file", "folder"]
