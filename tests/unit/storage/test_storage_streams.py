from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import ErrorKind, StorageError
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.streams import move, open_input, open_output, remove_below


def test_what_is_written_can_be_read_and_moved(store_root: str):
    place = locate(store_root)
    table = pa.table({"n": pa.array(range(1000)), "s": ["x" * 50] * 1000})
    with open_output(place, "a/b/table.parquet") as out:
        pq.write_table(table, out)
        assert out.tell() > 0
    assert pq.read_table(open_input(place, "a/b/table.parquet")).equals(table)
    move(place, "a/b/table.parquet", "c/moved.parquet")
    assert list(Objects(place).names("")) == ["c/moved.parquet"]
    with (
        open_output(place, "c/stream.arrow") as out,
        pa.ipc.new_stream(out, table.schema) as stream,
    ):
        stream.write_table(table)
    assert pa.ipc.open_stream(open_input(place, "c/stream.arrow")).read_all().equals(table)


def test_larger_than_one_part_of_an_upload(store_root: str):
    place = locate(store_root)
    pieces = [bytes([n]) * (3 << 20) for n in range(9)]
    with open_output(place, "large") as out:
        assert [out.write(memoryview(p)) for p in pieces] == [3 << 20] * 9
    assert open_input(place, "large").read() == b"".join(pieces)


@pytest.mark.parametrize("size", [1, 15 << 20])
def test_nothing_appears_when_the_work_fails(size: int, store_root: str):
    place = locate(store_root)
    with pytest.raises(KeyError), open_output(place, "half") as out:
        out.write(b"x" * size)
        raise KeyError("work")
    assert list(Objects(place).names("")) == []


def test_removing_takes_only_what_is_below(store_root: str):
    place = locate(store_root)
    objects = Objects(place, create=True)
    for name in ("_parts/one/a", "_parts/one/b/c", "_parts/two/a", "_parts/one.txt"):
        objects.put(name, b"x")
    remove_below(place, "_parts/one")
    assert sorted(objects.names("")) == ["_parts/one.txt", "_parts/two/a"]
    remove_below(place, "_parts/one")
    if place.local_path is not None:
        assert not Path(place.local_path, "_parts", "one").exists()


def test_an_object_that_is_not_there(store_root: str):
    place = locate(store_root)
    Objects(place, create=True)
    with pytest.raises(StorageError) as caught:
        open_input(place, "nothing")
    assert caught.value.kind is ErrorKind.STORAGE_NOT_FOUND


def test_secrets_of_a_place_are_not_shown():
    place = locate("s3://bucket/x", {"AWS_SECRET_ACCESS_KEY": "hush"})
    assert "hush" not in repr(place) and place.options["aws_secret_access_key"] == "hush"
