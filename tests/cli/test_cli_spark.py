"""`load` and `export` on Spark from the command line: what they say, and what bad input does.

The commands find the session of the test process: it is the active one.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_support import DATA, answer, commit_count, ok, process, run

SPARK = ("--engine", "spark")
PORTS = "code,name,berths\nAAR,Aarhus,12\nOSL,Oslo,4\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with inputs of every kind, and the current one."""
    folder = tmp_path / "files"
    folder.mkdir()
    monkeypatch.chdir(folder)
    good = DATA.encode()
    written: dict[str, bytes] = {
        "good.jsonl": good,
        "cut.jsonl.gz": gzip.compress(good * 500)[:-60],
        "latin.jsonl": good + '{"type":"Port","data":{"name":"Møn"}}\n'.encode("latin-1"),
        "wrong.jsonl": good
        + b'{"type":"Port","data":{"code":"X","name":"n","berths":"many"}}\n'
        + b'not json\n{"type":"Nope","data":{}}\n',
        "rules.jsonl": good + b'{"edge":"CallsAt","from":"100","to":"XXX","data":{"on":"2026-01-02"}}\n',
        "ports.csv": PORTS.encode(),
        "short.csv": b"code,name,berths\nAAR,Aarhus,12\nOSL,Oslo,x\nBGO,Bergen\n",
        "extra.csv": b"code,name,berths,nonsense\nAAR,Aarhus,12,1\n",
        "empty.csv": b"",
        "broken.parquet": b"PAR1 nonsense PAR1",
        "more/a.jsonl": good,
        "more/b.txt": b"hello\n",
    }  # fmt: skip
    for name, content in written.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / "none").mkdir()
    table = pa.table({"code": ["BGO"], "name": ["Bergen"], "berths": pa.array([3], pa.uint32())})
    pq.write_table(table, "ports.parquet")
    pq.write_table(pa.table({"code": ["A"], "name": ["B"], "berths": ["many"]}), "types.parquet")
    return folder


def objects(graph: Path) -> set[str]:
    return {str(p) for p in graph.rglob("*") if p.is_file()}


def test_many_files_of_all_kinds_are_one_commit_each(spark, empty_graph, files) -> None:
    said = ok("load", empty_graph, "--data", "good.jsonl", "--mode", "append", *SPARK, "--as", "al")
    assert said.stdout.startswith("Loaded 4 entities (2 Vessel, 1 Port, 1 CallsAt) into ")
    assert "+4" in said.stdout
    said = ok("load", empty_graph, "--data", "ports.csv", "--data", "ports.parquet",
              "--type", "Port", "--mode", "merge")  # fmt: skip
    assert "+2, 1 unchanged" in said.stdout
    assert commit_count(empty_graph) == 3
    found = answer("load", empty_graph, "--data", "more/a*.jsonl", "--mode", "merge", *SPARK)
    assert found["total_entities"] == 4
    # Edges without a key are new ones, whatever the mode.
    assert found["commit"]["changes"]["edge:CallsAt"]["inserted"] == 1


def test_a_dry_run_says_what_would_be(spark, graph, files) -> None:
    arguments = ("load", graph, "--data", "ports.csv", "--type", "Port", "--mode", "merge")
    before = objects(graph)
    said = ok(*arguments, "--dry-run").stdout
    assert said.startswith("Checked 2 entities (2 Port) for ")
    assert said.endswith("nothing was published; it would be +1, 1 unchanged\n")
    found = answer(*arguments, "--dry-run")
    assert (found["dry_run"], found["commit"]) == (True, None)
    assert found["changes"] == {"node:Port": {"inserted": 1, "updated": 0, "deleted": 0}}
    assert objects(graph) == before


BAD_INPUT: list[tuple[tuple[str, ...], str]] = [
    (("cut.jsonl.gz",), "cut.jsonl.gz: the gzip data is cut off after line"),
    (("latin.jsonl",), "latin.jsonl:5: not valid UTF-8: byte 0xf8"),
    (("wrong.jsonl",), 'wrong.jsonl:5: Port.berths: expected U32, got "many"'),
    (("wrong.jsonl",), "wrong.jsonl:6:1: not valid JSON"),
    (("wrong.jsonl",), 'wrong.jsonl:7: unknown node type "Nope"'),
    (("rules.jsonl",), "rules.jsonl:5: dst 'XXX' not found in Port"),
    (("short.csv", "--type", "Port"), "short.csv:3: column 'berths': expected U32, got \"x\""),
    (("short.csv", "--type", "Port"), "short.csv:4: expected 3 values, got 2"),
    (("extra.csv", "--type", "Port"), 'extra.csv:1: Port has no property "nonsense"'),
    (("empty.csv", "--type", "Port"), "empty.csv:1: the first line of a CSV file names"),
    (("ports.csv", "--type", "Prt"), "no type 'Prt' in this graph"),
    (("broken.parquet", "--type", "Port"), "broken.parquet: cannot be read as Parquet"),
    (("types.parquet", "--type", "Port"), "types.parquet: column 'berths'"),
    (("none",), "none: the folder holds no files"),
    (("more",), "more/b.txt:1:1: not valid JSON"),
    (("missing.jsonl",), "missing.jsonl: no such file"),
    (("good.jsonl", "--data", "missing.jsonl"), "missing.jsonl: no such file"),
    (("*.nope",), "*.nope: no file matches"),
]
BAD_USAGE: list[tuple[tuple[str, ...], str]] = [
    (("ports.csv",), "--type Person"),
    (("good.jsonl", "--type", "Port"), "good.jsonl: JSONL names its types itself"),
    (("good.jsonl", "--rejects", "none"), "cannot write rejects to none: Is a directory"),
    (("good.jsonl", "--rejects", "no/such"), "cannot write rejects to no/such: No such file"),
    (("good.jsonl", "--rejects", "good.jsonl"), "which is part of the input"),
    (("more", "--rejects", "more/r.jsonl"), "which is part of the input"),
]


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize(("words", "message"), BAD_INPUT)
def test_bad_input_is_told_with_its_place_and_leaves_nothing(
    spark, empty_graph, files, words: tuple[str, ...], message: str, engine: str
) -> None:
    before = objects(empty_graph)
    done = run("load", empty_graph, "--mode", "append", "--engine", engine, "--data", *words)
    assert done.exit_code == 1, done.output
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.output
    assert objects(empty_graph) == before


@pytest.mark.parametrize("engine", ["local", "spark"])
@pytest.mark.parametrize(("words", "message"), BAD_USAGE)
def test_bad_usage_is_told_before_anything_is_read(
    spark, empty_graph, files, words: tuple[str, ...], message: str, engine: str
) -> None:
    done = run("load", empty_graph, "--mode", "append", "--engine", engine, "--data", *words)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert (files / "good.jsonl").read_text(encoding="utf-8") == DATA
    assert commit_count(empty_graph) == 1


FIRST_LOOK = [
    *BAD_USAGE,
    *(
        (words, message)
        for words, message in BAD_INPUT
        if words[0]
        in ("extra.csv", "empty.csv", "types.parquet", "broken.parquet", "none", "*.nope")
        or "missing.jsonl" in words
        or "Prt" in words
    ),
]


def _no_session(*args: object, **kwargs: object) -> None:
    raise AssertionError("a session was started")


@pytest.mark.parametrize(("words", "message"), FIRST_LOOK)
def test_what_a_first_look_shows_is_told_before_a_session_starts(
    empty_graph, files, monkeypatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr("omnigraph.spark.load.pipeline_session", _no_session)
    done = run("load", empty_graph, "--mode", "append", *SPARK, "--data", *words)
    assert done.exit_code in (1, 2), done.output
    assert message in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--output", "more"), "more is not empty"),
        (("--output", "new", "--type", "Prt"), "no type 'Prt' in this graph"),
    ],
)
def test_an_export_that_is_bound_to_fail_is_refused_before_a_session_starts(
    empty_graph, files, monkeypatch, words: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr("omnigraph.api.view.SnapshotView.spark", _no_session)
    done = run("export", empty_graph, *SPARK, *words)
    assert message in done.stderr, done.output
    assert not (files / "new").exists()


def test_stdin_is_not_for_spark(empty_graph) -> None:
    done = run("load", empty_graph, "--mode", "append", *SPARK, "--data", "-")
    assert done.exit_code == 2
    assert "Spark reads files, not stdin" in done.stderr


@pytest.mark.parametrize("name", ["r.jsonl", "r.parquet"])
def test_everything_that_is_wrong_goes_to_a_file_or_a_table(
    spark, empty_graph, files, name: str
) -> None:
    bad = "".join(f'{{"type":"Port","data":{{"code":"{i}","berths":-1}}}}\n' for i in range(50))
    Path("bad.jsonl").write_text(bad)
    done = run("load", empty_graph, "--mode", "append", *SPARK, "--data", "bad.jsonl",
               "--rejects", name, "--json")  # fmt: skip
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["code"], found["problem_count"]) == ("input", 50)
    assert len(found["problems"]) == 20
    told: list[dict[str, Any]]
    if name.endswith(".parquet"):
        told = pq.read_table(name).to_pylist()
    else:
        told = [json.loads(line) for line in Path(name).read_text().splitlines()]
    assert sorted(row["line"] for row in told) == list(range(1, 51))
    assert {row["reject"] for row in told} == {"problem"}
    assert told[0]["text"].startswith('{"type":"Port"')


_STRIKE = """
import signal, threading
from omnigraph.cli.meter import Meter
def show_phase(self, said):
    if said.total:  # Told by another thread: this one waits for Spark.
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
Meter.show_phase = show_phase
from omnigraph.cli.main import main
main()
"""


def test_an_interrupt_while_spark_works_is_one_line(spark_stopped, empty_graph, files) -> None:
    command = ("load", empty_graph, "--mode", "append", *SPARK, "--data", "good.jsonl")
    done = process(*command, code=_STRIKE, env={"OMNIGRAPH_SPARK_MEMORY": "512m"})
    assert done.returncode == 130, done.stderr
    assert done.stdout == b""
    assert done.stderr == b"interrupted; nothing was published\n"
    assert done.stderr.count(b"\n") == 1
    assert commit_count(empty_graph) == 1


# -- export --------------------------------------------------------------------------------------


def test_an_export_in_parts_loads_back(spark, graph, files, schema_file, tmp_path: Path) -> None:
    said = ok("export", graph, *SPARK, "--output", "out")
    assert said.stdout == ""
    assert said.stderr == "Exported 4 entities to out\n"
    assert json.loads(Path("out/_export.json").read_text())["rows"] == 4
    parts = sorted(str(p) for p in Path("out").rglob("*.jsonl"))
    assert parts == [f"out/{t}/part-00000.jsonl" for t in
                     ("edges/CallsAt", "nodes/Port", "nodes/Vessel")]  # fmt: skip
    copy = tmp_path / "copy"
    ok("init", copy, "--schema", schema_file)
    data = [word for part in parts for word in ("--data", part)]
    ok("load", copy, "--mode", "append", *data)
    assert ok("export", copy).stdout == ok("export", graph).stdout


def test_an_old_commit_in_parquet(spark, graph, files) -> None:
    commit = answer("commit", "list", graph)["commits"][0]["graph_commit_id"]
    ok("load", graph, "--data", "ports.csv", "--type", "Port", "--mode", "merge")
    found = answer("export", graph, *SPARK, "--format", "parquet", "--commit", commit[:20],
                   "--type", "Port", "--output", "old")  # fmt: skip
    file = "nodes/Port/part-00000.parquet"
    port = {"type": "Port", "kind": "node", "rows": 1, "files": [file]}
    assert found == {
        "output": "old", "format": "parquet", "graph_commit_id": commit, "rows": 1, "types": [port],
    }  # fmt: skip
    assert pq.read_table(f"old/{file}")["code"].to_pylist() == ["AAR"]
    assert ok("export", graph, "--type", "Port", "--commit", commit).stdout.count("\n") == 1
    assert ok("export", graph, "--type", "Port").stdout.count("\n") == 2


def test_a_local_export_to_a_file_can_answer_programs(graph, files) -> None:
    found = answer("export", graph, "--output", "all.jsonl")
    assert (found["output"], found["format"], found["rows"]) == ("all.jsonl", "jsonl", 4)
    assert len(Path("all.jsonl").read_text(encoding="utf-8").splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (SPARK, 2, "an export on Spark is a folder"),
        ((*SPARK, "--output", "-"), 2, "an export on Spark is a folder"),
        ((*SPARK, "--output", "more"), 2, "more is not empty"),
        ((*SPARK, "--output", "good.jsonl"), 1, "cannot create good.jsonl"),
        ((*SPARK, "--output", "x", "--type", "Prt"), 1, "did you mean `Port`?"),
        ((*SPARK, "--output", "x", "--commit", "zz"), 1, "no commit"),
        (("--format", "parquet"), 2, "an export to parquet is a folder"),
        (("--output", "s3://bucket/x"), 2, "add --engine spark"),
        (("--json",), 2, "give --output too"),
    ],
)
def test_exports_that_make_no_sense(
    spark, graph, files, words: tuple[str, ...], code: int, message: str
) -> None:
    done = run("export", graph, *words)
    assert done.exit_code == code, done.output
    assert message in done.output
    assert not Path("x").exists() or not list(Path("x").iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "match { $p: Port } return { $p.code } order { $p.code }",
        'match { $p: Port  fuzzy($p.code, "aar", 3) } return { $p.code, $p.name } order { $p.code }',
        """match { $p: Port  $v callsAt $p } return { $v.name, bm25($p.code, "aar cph") as score }
           order { score }""",
    ],
)
def test_a_query_gives_the_same_answer_on_both_engines(spark, graph, files, text: str) -> None:
    asked = ("query", graph, "-e", text)
    here, there = answer(*asked), answer(*asked, *SPARK)
    assert here["row_count"] > 0
    assert here == there
