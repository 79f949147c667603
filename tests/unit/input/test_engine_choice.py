"""Which engine a load takes: by what was asked for, and how large the input is."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.api import engines as loading
from omnigraph.api.engines import Engine, choose_engine
from omnigraph.errors import UsageError
from omnigraph.input.sources import sort_out


class Frame:
    """As much of a Spark DataFrame as the choice looks at."""

    def mapInArrow(self) -> None: ...


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("x" * 1000)
    return path


def chosen(name: str, source: Any, type_name: str | None = None, *, spark: bool = True) -> Engine:
    given = sort_out(source, type_name=type_name)
    return choose_engine(name, given, spark_available=lambda: spark)


def test_what_is_asked_for_is_taken(file: Path) -> None:
    for name in Engine:
        assert chosen(name, file) is name
    with pytest.raises(UsageError, match="unknown engine 'sprak'"):
        chosen("sprak", file)


def test_what_spark_holds_is_for_spark() -> None:
    assert chosen("auto", Frame(), "A") is Engine.SPARK
    assert chosen("auto", {"A": Frame()}) is Engine.SPARK


def test_whatever_is_small_is_for_this_process(file: Path) -> None:
    table = pa.table({"a": [1]})
    for source in (file, [file, str(file)], [], [{"type": "A"}], io.BytesIO(b"x"), {"A": table},
                   "missing.jsonl", file.parent, f"{file.parent}/*.jsonl", {"A": file}):  # fmt: skip
        assert chosen("auto", source) is Engine.LOCAL, source
    for source in (table, "a.csv", Path("a.parquet"), "a.csv.gz"):
        assert chosen("auto", source, "A") is Engine.LOCAL, source


def test_from_the_measured_size_on_it_is_spark_if_there_is_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "AUTO_BYTES", 2_000)
    assert sort_out([file, file]).size_bytes == 2_000
    assert chosen("auto", file) is Engine.LOCAL
    assert chosen("auto", [file, file]) is Engine.SPARK
    assert chosen("auto", [file, file], spark=False) is Engine.LOCAL


def test_sizes_of_what_has_none() -> None:
    assert sort_out([{"type": "A"}]).size_bytes is None
    assert sort_out("missing.jsonl").size_bytes is None


def test_what_the_local_engine_would_ignore_is_refused(tmp_path: Path, file: Path) -> None:
    with omnigraph.init(tmp_path / "graph", "node A { k: String @key }") as graph:
        with pytest.raises(UsageError, match="a Spark session is given, and the engine is local"):
            graph.load(file, engine="local", spark=object())
        with pytest.raises(UsageError, match="a Spark DataFrame is for Spark"):
            graph.load(Frame(), type="A", engine="local")
