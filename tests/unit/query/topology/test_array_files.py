"""Arrays in files: whole and right, or not there; and never an error because of the folder."""

from __future__ import annotations

import os
import random
import resource
from pathlib import Path

import numpy as np
import pytest

from omnigraph.query.topology import array_files as module
from omnigraph.query.topology.array_files import ArrayFiles

META = {"who": "test", "numbers": [1, 2, 3]}
CONTENT = {
    "keys": np.arange(5_000, dtype=np.int64) * 7,
    "small": np.array([3, 1, 2], np.uint32),
    "octets": np.frombuffer(b"some text", np.uint8),
    "none": np.empty(0, np.int64),
}


def saved(files: ArrayFiles, prefix: str = "t-", content=CONTENT) -> str:
    new = files.create(prefix, {n: (a.dtype, len(a)) for n, a in content.items()})
    assert new is not None
    for name, array in content.items():
        new.arrays[name][:] = array
    new.publish(META)
    return next(files.newest(prefix))


@pytest.fixture
def files(tmp_path: Path) -> ArrayFiles:
    return ArrayFiles(tmp_path / "cache", 1 << 20)


def is_right(found) -> bool:
    return found.meta == META and all(
        found.arrays[name].dtype == array.dtype and (found.arrays[name] == array).all()
        for name, array in CONTENT.items()
    )


def test_what_was_written_is_read(files) -> None:
    found = files.open(saved(files))
    assert found is not None
    assert is_right(found)
    with pytest.raises(ValueError, match="read-only"):
        found.arrays["keys"][0] = 1


def test_arrays_that_were_published_cannot_be_changed(files) -> None:
    new = files.create("t-", {"a": (np.int64, 3)})
    new.arrays["a"][:] = 1
    new.publish({})
    with pytest.raises(ValueError, match="read-only"):
        new.arrays["a"][0] = 2


def test_an_unfinished_file_is_not_seen(files) -> None:
    new = files.create("t-", {"a": (np.int64, 3)})
    assert list(files.newest("t-")) == []
    new.discard()
    assert list(files._folder.iterdir()) == []


def test_a_file_cut_anywhere_is_none(files) -> None:
    path = files._folder / saved(files)
    whole = path.read_bytes()
    for length in (0, 1, 50, len(whole) // 2, *range(len(whole) - 200, len(whole))):
        path.write_bytes(whole[:length])
        assert files.open(path.name) is None, length
    path.write_bytes(whole + b"x")
    assert files.open(path.name) is None


def test_any_changed_byte_of_an_array_or_its_description_is_noticed(files) -> None:
    path = files._folder / saved(files)
    whole = path.read_bytes()
    dice = random.Random(5)
    # Arrays begin at whole 64 bytes; what fills the gaps between them is no content.
    places = [*range(0, 40_000, 997), 40_000, 40_011, 40_064, 40_072]
    places += range(whole.index(b'{"meta"'), len(whole))
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << dice.randrange(8)
        path.write_bytes(bytes(changed))
        assert files.open(path.name) is None, place


def test_two_exchanged_blocks_are_noticed(files) -> None:
    count = 4 * module.BLOCK_WORDS
    files = ArrayFiles(files._folder, 1 << 30)
    path = files._folder / saved(files, content={**CONTENT, "keys": np.arange(count)})
    whole = bytearray(path.read_bytes())
    size = 8 * module.BLOCK_WORDS
    whole[:size], whole[size : 2 * size] = whole[size : 2 * size], whole[:size]
    path.write_bytes(bytes(whole))
    assert files.open(path.name) is None


@pytest.mark.parametrize("content", [b"", b"foreign", b"\0" * 10_000, module.MAGIC * 3])
def test_a_foreign_file_is_none(files, content) -> None:
    files._folder.mkdir()
    path = files._folder / f"t-x{module.SUFFIX}"
    path.write_bytes(content)
    assert files.open(path.name) is None


def test_a_file_that_vanishes_stays_readable_where_it_is_mapped(files) -> None:
    name = saved(files)
    found = files.open(name)
    files.drop(name)
    assert files.open(name) is None
    assert is_right(found)


def test_two_writers_of_one_kind_do_not_meet(files) -> None:
    one = files.create("t-", {"a": (np.int64, 2)})
    two = files.create("t-", {"a": (np.int64, 2)})
    one.arrays["a"][:], two.arrays["a"][:] = 1, 2
    two.publish({"number": 2})
    one.publish({"number": 1})
    found = [files.open(name) for name in files.newest("t-")]
    assert sorted((f.meta["number"], f.arrays["a"].tolist()) for f in found) == [
        (1, [1, 1]),
        (2, [2, 2]),
    ]


def test_the_least_recently_used_give_way(files) -> None:
    size = {"a": (np.int64, 40_000)}
    names = []
    for number in range(3):
        new = files.create(f"{number}-", size)
        new.publish({})
        (name,) = files.newest(f"{number}-")
        names.append(name)
        os.utime(files._folder / name, ns=(number, number))
    files.open(names[0])  # Now the second is the one that was not used for longest.
    files.create("3-", size).publish({})
    left = {p.name[0] for p in files._folder.iterdir()}
    assert left == {"0", "2", "3"}
    assert sum(p.stat().st_size for p in files._folder.iterdir()) <= 1 << 20


def test_more_than_fits_is_not_written(files) -> None:
    assert files.create("t-", {"a": (np.int64, 1 << 20)}) is None


def test_what_a_dead_process_left_goes_after_a_while(files) -> None:
    new = files.create("t-", {"a": (np.int64, 3)})
    (left,) = files._folder.iterdir()
    files.create("u-", {"a": (np.int64, 3)}).publish({})
    assert left.exists(), "its writer may be at work"
    os.utime(left, (0, 0))
    files.create("v-", {"a": (np.int64, 3)}).publish({})
    assert not left.exists()
    new.publish({})  # It comes too late, and harms nothing.
    assert list(files.newest("t-")) == []


def test_a_folder_that_cannot_be_made(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    files = ArrayFiles(tmp_path / "file" / "cache", 1 << 20)
    assert files.create("t-", {"a": (np.int64, 3)}) is None
    assert list(files.newest("t-")) == []
    assert files.open("t-x.arrays") is None
    files.drop("t-x.arrays")


def test_a_full_disk_is_told_before_anything_is_mapped(files) -> None:
    """The system's limit on the size of a file stands for a disk without room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        assert files.create("t-", {"a": (np.int64, 50_000)}) is None
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(files._folder.iterdir()) == []
