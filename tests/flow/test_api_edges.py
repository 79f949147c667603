"""The Python API at its edges: wrong arguments are usage errors, and results convert."""

from __future__ import annotations

import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.testing.clock import ManualClock
from support.racers import SCHEMA


def person(*names: str) -> list[dict]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA, actor="ann")
    graph.load(person("a", "b"), actor="bo", message="two people")
    return graph


@pytest.mark.parametrize(
    "call",
    [
        lambda g: omnigraph.open(None),
        lambda g: omnigraph.open(5),
        lambda g: omnigraph.open(b"x"),
        lambda g: omnigraph.init(g.uri + "2", None),
        lambda g: omnigraph.init(g.uri + "2", b"node A {}"),
        lambda g: omnigraph.init(g.uri + "2", "  "),
        lambda g: g.load(person("c"), mode="upsert"),
        lambda g: g.load(person("c"), actor=3),
        lambda g: g.load(person("c"), actor=" "),
        lambda g: g.load(person("c"), message="\ud800"),
        lambda g: g.load(person("c"), message="x" * 5000),
        lambda g: g.load(person("c"), branch=None),
        lambda g: g.load(5),
        lambda g: g.load(b"{}"),
        lambda g: g.load('{"type": "Person"}'),
        lambda g: g.load({"type": "Person"}),
        lambda g: g.load(io.StringIO("")),
        lambda g: g.load(pa.table({"name": ["x"]})),
        lambda g: g.load([{"name": "x"}], type=5),
        lambda g: g.load({"type": "Person", "data": {"name": "x"}}, type="Person"),
        lambda g: g.snapshot(5),
        lambda g: g.snapshot().rows(None),
        lambda g: g.snapshot().rows("Person", columns="name"),
        lambda g: g.snapshot().rows("Person", columns=[]),
        lambda g: g.snapshot().rows("Person", columns=["name", "name"]),
        lambda g: g.snapshot().rows("Person", columns=["nam"]),
        lambda g: g.commits(limit=-1),
        lambda g: g.commits(limit="3"),
        lambda g: g.export(io.StringIO()),
        lambda g: g.export(5),
        lambda g: g.export(io.BytesIO(), types="Person"),
    ],
)
def test_wrong_arguments_are_usage_errors(graph: omnigraph.Graph, call) -> None:
    with pytest.raises(omnigraph.UsageError):
        call(graph)
    assert len(graph.commits()) == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda g: omnigraph.open("x" * 5000),
        lambda g: omnigraph.init(g.uri + "2", "nowhere.pg"),
        lambda g: g.snapshot().rows("Persn"),
        lambda g: g.load([{"name": "x"}], type="Persn"),
        lambda g: g.commit("nothing"),
        lambda g: g.commit(""),
        lambda g: g.load("nowhere.jsonl"),
        lambda g: g.load("nowhere.csv", type="Person"),
    ],
)
def test_what_is_not_there_is_not_found(graph: omnigraph.Graph, call) -> None:
    with pytest.raises(omnigraph.NotFoundError):
        call(graph)


def test_a_closed_handle_says_so(graph: omnigraph.Graph) -> None:
    graph.close()
    graph.close()
    for call in (graph.snapshot, graph.commits, lambda: graph.load(person("c"))):
        with pytest.raises(omnigraph.UsageError, match="is closed"):
            call()


def test_commits_by_the_beginning_of_their_id(graph: omnigraph.Graph) -> None:
    newest = graph.commits()[0]
    assert graph.commit(newest.id.lower()) == newest
    assert graph.commit(newest.id[:-2]) == newest
    with pytest.raises(omnigraph.UsageError, match="2 commits begin with 0"):
        graph.commit("0")


def test_errors_travel_between_processes(graph: omnigraph.Graph) -> None:
    caught: list[omnigraph.OmnigraphError] = []
    for call in (
        lambda: graph.load(person("a")),
        lambda: graph.load([{"type": "Person", "data": {"x": 1}}]),
        lambda: omnigraph.init(graph.uri + "2", "node A { x: Strng }"),
        lambda: omnigraph.open(graph.uri + "3"),
    ):
        with pytest.raises(omnigraph.OmnigraphError) as error:
            call()
        caught.append(error.value)
    for error in caught:
        back = pickle.loads(pickle.dumps(error))
        assert type(back) is type(error)
        assert back.to_dict() == error.to_dict()
        assert str(back) == str(error)


def test_sources_of_every_kind(graph: omnigraph.Graph, tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text('{"type": "Person", "data": {"name": "file"}}\n')
    graph.load(file)
    graph.load([str(file)], mode="merge")
    graph.load(io.BytesIO(b'{"type": "Person", "data": {"name": "stream"}}'))
    graph.load(person("record"))
    graph.load({"type": "Person", "data": {"name": n}} for n in ["generator"])
    graph.load(pa.table({"name": ["arrow"]}), type="Person")
    graph.load(pd.DataFrame({"name": ["pandas"]}), type="Person")
    graph.load([{"name": "row"}], type="Person")
    graph.load(
        {
            "City": pa.table({"name": ["x"]}),
            "LivesIn": pd.DataFrame({"from": ["row"], "to": ["x"]}),
        }
    )
    graph.load([{"src": "a", "dst": "b", "since": 1999}], type="knows")
    names = set(graph.snapshot().rows("Person").to_pandas()["name"])
    assert names == {"a", "b", "file", "stream", "record", "generator", "arrow", "pandas", "row"}
    assert graph.snapshot().rows("Knows").to_dicts()[0]["since"] == 1999


def test_results_convert(graph: omnigraph.Graph) -> None:
    commits = graph.commits()
    assert [c["actor_id"] for c in commits.to_dicts()] == ["bo", "ann"]
    assert commits.to_arrow()["message"].to_pylist() == ["two people", None]
    assert list(commits.to_pandas()["kind"]) == ["load", "init"]
    assert [c.actor for c in graph.commits(actor="ann")] == ["ann"]
    assert len(graph.commits(limit=1)) == 1
    snapshot = graph.snapshot()
    assert snapshot.to_pandas().set_index("type_name").loc["Person", "entity_count"] == 2
    rows = snapshot.rows("Person", columns=["name"])
    assert len(rows) == 2
    assert rows.to_arrow().schema == pa.schema([pa.field("name", pa.string(), nullable=False)])
    assert [r["name"] for r in rows] == ["a", "b"]
    assert snapshot.rows("City").to_dicts() == []


def test_schema_text_is_kept_byte_for_byte(tmp_path: Path) -> None:
    text = "// ünïcode\r\nnode A { x: I32? }\r\n"
    (tmp_path / "{odd}.pg").write_bytes(text.encode())
    with omnigraph.init(tmp_path / "g", str(tmp_path / "{odd}.pg")) as graph:
        assert graph.schema == text
    with omnigraph.open(tmp_path / "g") as graph:
        assert graph.schema == text


def test_export_to_a_path(graph: omnigraph.Graph, tmp_path: Path) -> None:
    assert graph.export(tmp_path / "dump.jsonl", types=["Person", "Person"]) == 2
    assert (tmp_path / "dump.jsonl").read_text().count("\n") == 2
    with pytest.raises(omnigraph.UsageError, match="cannot write"):
        graph.export(tmp_path)
    with pytest.raises(omnigraph.StorageError, match="cannot write /dev/full: No space left"):
        graph.export("/dev/full")
    with pytest.raises(omnigraph.StorageError, match="cannot write /dev/full: No space left"):
        graph.changes.baseline("/dev/full")


def test_threads_share_one_handle(graph: omnigraph.Graph) -> None:
    def work(n: int) -> int:
        graph.load(person(f"t{n}"))
        return graph.snapshot().rows("Person").to_arrow().num_rows

    with ThreadPoolExecutor(6) as pool:
        counts = list(pool.map(work, range(24)))
    assert graph.snapshot().count("Person") == 26
    assert max(counts) == 26
    assert len(graph.commits()) == 26


def test_lineage_time_never_runs_backwards(tmp_path: Path) -> None:
    clock = ManualClock()
    with omnigraph.init(tmp_path / "g", SCHEMA, clock=clock) as graph:
        clock.advance(10)
        graph.load(person("a"))
        clock.set_us(1)  # Another machine's clock is years behind.
        graph.load(person("b"))
        times = [c.created_at_us for c in graph.commits()]
        assert times == sorted(times, reverse=True)


def test_a_load_that_brings_nothing_is_no_commit(graph: omnigraph.Graph) -> None:
    for source in ([], io.BytesIO(b"\n\n")):
        result = graph.load(source)
        assert result.commit is None
        assert result.to_dict()["commit"] is None
    empty = graph.load({"City": pa.table({"name": pa.array([], pa.string())})}, mode="overwrite")
    assert empty.commit is None
    cleared = graph.load(pa.table({"name": pa.array([], pa.string())}), type="Person",
                         mode="overwrite")  # fmt: skip
    assert cleared.changes["node:Person"].deleted == 2
    assert graph.snapshot().count("Person") == 0
    graph.load(person("again"))
    assert graph.snapshot().count("Person") == 1
