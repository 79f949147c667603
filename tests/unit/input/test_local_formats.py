"""Every format by this process: the same rows, lines and problems as by the tasks of Spark."""

from __future__ import annotations

import gzip
import io
import json
import os
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from input_cases import CATALOG, parse_here

from omnigraph.errors import InputError, UsageError
from omnigraph.ids import SeededIds
from omnigraph.input.loaded_rows import LoadedRows
from omnigraph.input.sources import sort_out
from omnigraph.input.threads import read_input
from support.places import lines

ROWS = pa.table(
    {
        "id": [f"a{i}" for i in range(2500)],
        "s": ['t, "x"\nz', None, "", "ü", "w"] * 500,
        "i": [1, None, -3, 4, 5] * 500,
        "d": [0.5, None, 1e300, -2.0, 0.1] * 500,
    }
)


def as_csv(rows: pa.Table, path: Path, delimiter: str = ",") -> None:
    out = io.BytesIO()
    pcsv.write_csv(rows, out, pcsv.WriteOptions(delimiter=delimiter))
    path.write_bytes(out.getvalue())


def as_arrow(rows: pa.Table, path: Path, make: Any = pa.ipc.new_file) -> None:
    with make(str(path), rows.schema) as writer:
        writer.write_table(rows, max_chunksize=400)


def packed(path: Path, kind: str) -> None:
    raw = path.read_bytes()
    codec = {"gz": "gzip", "zst": "zstd"}[kind]
    with pa.CompressedOutputStream(f"{path}.{kind}", codec) as out:
        out.write(raw)
    path.unlink()


WRITERS = {
    "in.csv": as_csv,
    "in.tsv": lambda rows, path: as_csv(rows, path, "\t"),
    "in.parquet": lambda rows, path: pq.write_table(rows, path, row_group_size=700),
    "in.arrow": as_arrow,
    "in.feather": as_arrow,
    "in.arrows": lambda rows, path: as_arrow(rows, path, pa.ipc.new_stream),
}


def write(folder: Path, name: str, rows: pa.Table = ROWS) -> Path:
    """A file of any format; ``.gz`` and ``.zst`` behind it pack it."""
    plain = name.removesuffix(".gz").removesuffix(".zst")
    WRITERS[plain](rows, folder / plain)
    if plain != name:
        packed(folder / plain, name.rpartition(".")[2])
    return folder / name


FORMATS = [*WRITERS, "in.csv.gz", "in.tsv.zst"]


def read(source: Any, type_name: str | None = None, **options: Any) -> dict[str, LoadedRows]:
    given = sort_out(source, type_name=type_name, columns=options.pop("columns", None))
    return read_input(given, CATALOG, SeededIds(1), **options)


def columns(rows: pa.Table) -> dict[str, list[Any]]:
    return {name: rows[name].to_pylist() for name in ("id", "s", "i", "d")}


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_read_as_by_tasks(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    here = read(path, "All")["node:All"]
    tasks = parse_here(str(path), type_name="All", range_bytes=10_000)
    assert columns(here.rows) == columns(tasks.rows["node:All"])
    assert lines(here.origins) == tasks.rows["node:All"]["_line"].to_pylist()
    assert here.origins.at(7)[0] == str(path)
    assert here.rows["i"].to_pylist() == ROWS["i"].to_pylist()


@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_of_a_file_is_read_like_the_file(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name)
    plain = columns(read(path, "All")["node:All"].rows)
    content = path.read_bytes()
    if ".tsv" in name:
        content = write(tmp_path, name.replace("tsv", "csv")).read_bytes()
    stream = io.BytesIO(content)
    assert columns(read(stream, "All")["node:All"].rows) == plain
    assert not stream.closed


def test_a_pipe_is_read_once_and_closed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    given = sort_out(pipe, type_name="Bare")
    assert not given.repeatable
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"note\na\nb\n"))
    writer.start()
    loaded = read_input(given, CATALOG, SeededIds(1))
    writer.join()
    assert loaded["node:Bare"].rows["note"].to_pylist() == ["a", "b"]
    assert loaded["node:Bare"].origins.at(1) == (str(pipe), 3)


def test_folders_patterns_and_several_files(tmp_path: Path) -> None:
    for part in (1, 2):
        (tmp_path / f"{part}.csv").write_text(f"note\n{part}\n")
    (tmp_path / "_SUCCESS").write_text("")
    paths = [tmp_path / "2.csv", tmp_path / "1.csv"]
    notes = {
        str(source): read(source, "Bare")["node:Bare"].rows["note"].to_pylist()
        for source in (tmp_path, f"{tmp_path}/*.csv", paths)
    }
    assert [*notes.values()] == [["1", "2"], ["1", "2"], ["2", "1"]]
    mixed = [paths[0], io.BytesIO(b"note\n7\n")]
    assert read(mixed, "Bare")["node:Bare"].rows["note"].to_pylist() == ["2", "7"]


def test_a_mapping_of_types_to_files_and_tables(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("imo,name\n1,x\n")
    loaded = read({"Vessel": tmp_path / "v.csv", "Bare": pa.table({"note": ["a"]})})
    assert {key: rows.rows.num_rows for key, rows in loaded.items()} == {
        "node:Vessel": 1,
        "node:Bare": 1,
    }


def test_columns_may_be_called_otherwise(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("Nr,Called,More\n1,x,y\n")
    table = pa.table({"Nr": [1], "Called": ["x"], "More": ["y"]})
    for source in (tmp_path / "v.csv", table, table.to_pandas(), pl.from_arrow(table),
                   table.to_pylist()):  # fmt: skip
        rows = read(source, "Vessel", columns={"imo": "Nr", "name": "Called"})["node:Vessel"].rows
        assert rows.select(["imo", "name"]).to_pylist() == [{"imo": 1, "name": "x"}]
    with pytest.raises(InputError, match=r'no column "Nr\." for "imo" .did you mean'):
        read(table, "Vessel", columns={"imo": "Nr.", "name": "Called"})


def test_tables_of_polars_and_of_whatever_speaks_arrow() -> None:
    class Batch:
        def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
            return pa.record_batch({"note": ["b"]}).__arrow_c_array__(requested_schema)

    assert read(pl.DataFrame({"note": ["a"]}), "Bare")["node:Bare"].rows["note"][0].as_py() == "a"
    assert read(Batch(), "Bare")["node:Bare"].rows["note"][0].as_py() == "b"
    with pytest.raises(UsageError, match="a table needs its type"):
        read(pl.DataFrame({"note": ["a"]}))


@pytest.mark.parametrize("name", ["in.csv", "in.parquet", "in.arrow"])
def test_a_file_without_rows_mentions_its_type(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name, ROWS.slice(0, 0))
    assert read(path, "All")["node:All"].rows.num_rows == 0


BAD = {
    "bad.csv": b'i,s\n1,a\nx,b\n3\n4,"c\n',
    "bad.tsv": b"i\ts\n1\ta\nx\tb\n",
    "latin1.csv": b"i,s\n1,\xfc\n",
    "cut.csv.gz": gzip.compress(b"i,s\n" + b"1,a\n" * 9999)[:-9],
    "no.csv.gz": b"\x1f\x8b",
    "header.csv": b"i,q\n",
    "twice.csv": b"i,i\n",
    "empty.csv": b"",
    "no.parquet": b"PAR1 and no more",
    "no.arrow": b"ARROW1 and no more",
    "bad.jsonl": b'{"type":"Bare"}\n{"type":"Bar"}\n{"type"}\n',
    "plain.csv": b"[1,2]",
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told_as_by_tasks(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(BAD[name])
    type_name = None if "jsonl" in name else "All"
    with pytest.raises((InputError, UsageError)) as here:
        read(path, type_name)
    try:
        problems = [p.to_dict() for p in parse_here(str(path), type_name=type_name).problems]
        assert here.value.details["problems"] == problems
        assert problems
    except (InputError, UsageError) as tasks:
        assert (type(here.value), here.value.message) == (type(tasks), tasks.message)
        assert here.value.details == tasks.details


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_files_of_one_type_need_it(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, name.replace("a.", "in."))
    with pytest.raises(UsageError, match="file needs its type"):
        read(path)


def test_bad_values_of_columns_are_told_with_their_rows(tmp_path: Path) -> None:
    rows = pa.table({"i": pa.array([1, 2**40, 3, -(2**40)], pa.int64())})
    for name in ("in.parquet", "in.arrow", "in.arrows"):
        with pytest.raises(InputError) as caught:
            read(write(tmp_path, name, rows), "All")
        assert [p["line"] for p in caught.value.details["problems"]] == [2, 4]


def test_texts_of_dictionaries_are_texts(tmp_path: Path) -> None:
    rows = pa.table({"note": pa.array(["a", "b", "a"]).dictionary_encode()})
    for name in ("in.arrow", "in.parquet"):
        loaded = read(write(tmp_path, name, rows), "Bare")
        assert loaded["node:Bare"].rows["note"].to_pylist() == ["a", "b", "a"]


def test_progress_counts_the_bytes_of_files(tmp_path: Path) -> None:
    for name in FORMATS:
        path, seen = write(tmp_path, name), list[int]()
        read([path, path], "All", progress=seen.append)
        assert seen == sorted(seen), name
        assert 0 < seen[-1] <= 2 * path.stat().st_size, name


def test_jsonl_may_be_packed_and_in_folders(tmp_path: Path) -> None:
    line = json.dumps({"type": "Bare", "data": {"note": "a"}}).encode() + b"\n"
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(line * 3))
    (tmp_path / "b.jsonl").write_bytes(line)
    assert read(tmp_path)["node:Bare"].rows.num_rows == 4
    stream = io.BytesIO(gzip.compress(line * 5))
    assert read(stream)["node:Bare"].rows.num_rows == 5
