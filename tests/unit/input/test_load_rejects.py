"""Where refused rows go: lines or a table, never over the input."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.errors import ConstraintError, InputError, StorageError, UsageError, Violation
from omnigraph.input import rejects
from omnigraph.input.problems import Problem
from omnigraph.input.rejects import RejectFile

PROBLEM = Problem(source="in.jsonl", line=7, column=2, message="not valid JSON")
VIOLATION = Violation(
    rule="range",
    message="@range violation on A.n",
    entity_kind="node",
    type_name="A",
    entity_id="x",
    source="in.jsonl",
    line=9,
)


def test_without_a_path_nothing_is_written() -> None:
    with RejectFile(None) as out:
        assert not out.wanted
        out.problems([(PROBLEM, "text")])


def test_lines_and_tables_hold_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejects, "_BATCH_ROWS", 2)
    for name in ("r.jsonl", "r.parquet"):
        with RejectFile(tmp_path / name) as out:
            assert out.wanted
            out.problems([(PROBLEM, "{oops"), (PROBLEM, None)])
            out.violations([VIOLATION])
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    table = pq.read_table(tmp_path / "r.parquet")
    assert table.schema.equals(rejects.TABLE_SCHEMA)
    rows = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
    assert rows == lines
    assert rows[0] == {
        "reject": "problem", "source": "in.jsonl", "line": 7, "column": 2,
        "message": "not valid JSON", "text": "{oops",
    }  # fmt: skip
    assert rows[2]["rule"] == "range"


def test_a_table_without_rejects_is_a_table(tmp_path: Path) -> None:
    with RejectFile(tmp_path / "r.parquet"):
        pass
    assert pq.read_table(tmp_path / "r.parquet").num_rows == 0


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "graph", "node A { k: String @key }") as graph:
        yield graph


def test_rejects_never_go_over_the_input(
    graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "in" / "a.jsonl"
    file.parent.mkdir()
    file.write_text('{"type": "A", "data": {"k": "a"}}\n')
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    inputs = [file, [str(file)], {"A": [file]}, "in/*.jsonl", "in", file.open("rb")]
    for source in inputs:
        for path in (file, link, "in/../in/a.jsonl"):
            with pytest.raises(UsageError, match="part of the input"):
                graph.load(source, rejects=path, engine="local")
    with pytest.raises(UsageError, match="part of the input"):
        graph.load("in", rejects="in/new.jsonl")
    inputs[-1].close()
    assert file.read_text()
    assert not (tmp_path / "in" / "new.jsonl").exists()
    assert graph.load(file, rejects=tmp_path / "r.jsonl").total_entities == 1


def test_rejects_that_cannot_be_written_are_told(graph, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("nonsense\n")
    with pytest.raises(UsageError, match=r"cannot write rejects to .*: No such file"):
        graph.load(bad, rejects=tmp_path / "none" / "r")
    with pytest.raises(InputError, match=r"bad\.jsonl:1") as caught:
        graph.load(bad, rejects="/dev/full")
    assert "cannot write rejects to /dev/full: No space left" in caught.value.hint
    assert caught.value.details["rejects"]["code"] == "storage_full"
    with pytest.raises(InputError):
        graph.load(bad, rejects=tmp_path / "r.parquet")
    (row,) = pq.read_table(tmp_path / "r.parquet").to_pylist()
    assert (row["reject"], row["line"]) == ("problem", 1)


def test_rejects_that_cannot_be_written_do_not_hide_what_is_wrong_with_the_data(graph) -> None:
    twice = [{"type": "A", "data": {"k": "x"}}] * 2
    with pytest.raises(ConstraintError) as caught:
        graph.load(twice, rejects="/dev/full")
    assert caught.value.total
    assert "cannot write rejects to /dev/full: No space left" in caught.value.hint
    assert graph.load(twice[:1], rejects="/dev/full").total_entities == 1


def test_a_table_of_rejects_that_cannot_be_begun_is_told_before_the_data_is_read(
    graph, tmp_path: Path
) -> None:
    full = tmp_path / "full.parquet"
    full.symlink_to("/dev/full")
    with pytest.raises(
        StorageError, match=r"cannot write rejects to .*full.parquet: No space left"
    ):
        graph.load([{"type": "A", "data": {"k": "x"}}], rejects=full)
    assert graph.snapshot().count("A") == 0


def test_all_problems_go_to_the_file_with_their_lines(graph, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text("".join(f"nonsense {i}\n" for i in range(100)))
    with pytest.raises(InputError) as caught:
        graph.load(bad, rejects=tmp_path / "r.parquet")
    rows = pq.read_table(tmp_path / "r.parquet").to_pylist()
    assert [r["line"] for r in rows] == list(range(1, 101))
    assert [r["text"] for r in rows] == [f"nonsense {i}" for i in range(100)]
    assert caught.value.details["problem_count"] == 100
    assert caught.value.message.endswith("and 80 more problems")
