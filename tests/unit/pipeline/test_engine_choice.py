"""Which engine a load takes: by what was asked for, what the input is, and how large."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import UsageError
from omnigraph.pipeline import engine, session
from omnigraph.pipeline.engine import Engine, choose_engine, input_bytes


class Frame:
    """As much of a Spark DataFrame as the choice looks at."""

    def mapInArrow(self) -> None: ...


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.jsonl"
    path.write_text("x" * 1000)
    return path


def test_what_is_asked_for_is_taken(file: Path) -> None:
    for name in Engine:
        assert choose_engine(name, file) is name
    with pytest.raises(UsageError, match="unknown engine 'sprak'"):
        choose_engine("sprak", file)


def test_what_only_spark_reads_is_for_spark(file: Path) -> None:
    folder = file.parent
    sources = [
        "a.csv", "a.CSV", Path("a.parquet"), "a.jsonl.gz", "a.jsonl.zst", "s3://b/a.jsonl", folder,
        [file, "b.parquet"], {"A": file, "B": "b.csv"}, Frame(), {"A": Frame()},
    ]  # fmt: skip
    for source in sources:
        assert choose_engine("auto", source) is Engine.SPARK, source
    assert choose_engine("auto", file, needs_spark=True) is Engine.SPARK


def test_what_is_small_or_no_file_is_for_this_process(file: Path) -> None:
    table = pa.table({"a": [1]})
    for source in (file, [file, str(file)], [], [{"type": "A"}], io.BytesIO(b"x"), table, b"x",
                   {"A": table}, "missing.jsonl", None):  # fmt: skip
        assert choose_engine("auto", source) is Engine.LOCAL, source


def test_from_the_measured_size_on_it_is_spark_if_there_is_one(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "AUTO_BYTES", 2_000)
    available = True
    monkeypatch.setattr(session, "spark_available", lambda: available)
    assert input_bytes([file, file]) == 2_000
    assert choose_engine("auto", file) is Engine.LOCAL
    assert choose_engine("auto", [file, file]) is Engine.SPARK
    available = False
    assert choose_engine("auto", [file, file]) is Engine.LOCAL


def test_sizes_of_what_has_none() -> None:
    assert input_bytes([{"type": "A"}]) is None
    assert input_bytes("missing.jsonl") is None


def test_what_the_local_engine_would_ignore_is_refused(tmp_path: Path, file: Path) -> None:
    with omnigraph.init(tmp_path / "graph", "node A { k: String @key }") as graph:
        with pytest.raises(UsageError, match="a Spark session is given, and the engine is local"):
            graph.load(file, engine="local", spark=object())
        with pytest.raises(UsageError, match="a mapping of columns is given"):
            graph.load(file, engine="local", mapping={"k": "key"})
