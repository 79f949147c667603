"""`omnigraph query`: formats, values, parameters, which state is read."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from cli_support import answer, ok, process, run

from omnigraph.query.exec import rank

SCHEMA = """\
node All {
  k: String @key
  b: Bool?
  i: I32?
  l: I64?
  u: U64?
  f: F32?
  d: F64?
  on: Date?
  at: DateTime?
  tags: [String]?
  days: [Date]?
  vec: Vector(2)?
  raw: Blob?
}
edge Knows: All -> All { since: I32? }
"""
ROW = (
    '{"type":"All","data":{"k":"a","b":true,"i":-1,"l":-9223372036854775808,'
    '"u":18446744073709551615,"f":0.1,"d":1e300,"on":"2026-01-31","at":"2026-01-31T12:00:00.25Z",'
    '"tags":["x","y, \\"z\\""],"days":["1969-12-31"],"vec":[1,0.5],"raw":"base64:AAE="}}\n'
)
REST = (
    '{"type":"All","data":{"k":"b","tags":[]}}\n'
    '{"type":"All","data":{"k":"c\\n\\"d\\",\\u001b[31m"}}\n'
    '{"type":"All","data":{"k":""}}\n'
    '{"edge":"Knows","from":"a","to":"b","data":{"since":2001}}\n'
)
COLUMNS = ("k", "b", "i", "l", "u", "f", "d", "on", "at", "tags", "days", "vec")
EVERYTHING = (
    "match { $a: All } return { "
    + " ".join(f"$a.{c} as {c}" for c in COLUMNS)
    + " } order { $a.k }"
)
VALUES = {
    "k": "a",
    "b": True,
    "i": -1,
    "l": -(2**63),
    "u": 2**64 - 1,
    "f": 0.1,
    "d": 1e300,
    "on": "2026-01-31",
    "at": "2026-01-31T12:00:00.250Z",
    "tags": ["x", 'y, "z"'],
    "days": ["1969-12-31"],
    "vec": [1, 0.5],
}


@pytest.fixture(scope="module")
def all_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("all")
    (folder / "all.pg").write_text(SCHEMA)
    ok("init", folder / "g", "--schema", folder / "all.pg")
    ok("load", folder / "g", "--data", "-", "--mode", "append", stdin=ROW + REST)
    return folder / "g"


def test_json(all_graph: Path) -> None:
    told = answer("query", all_graph, "-e", EVERYTHING)
    assert list(told) == [
        "query_name", "target", "row_count", "columns", "rows", "graph_commit_id",
    ]  # fmt: skip
    assert told["query_name"] is None
    assert told["target"] == {"branch": "main", "commit": None}
    assert (told["row_count"], told["columns"]) == (4, list(COLUMNS))
    empty, first, second, third = told["rows"]
    assert first == VALUES
    assert second == dict.fromkeys(COLUMNS) | {"k": "b", "tags": []}
    assert (empty["k"], third["k"]) == ("", 'c\n"d",\x1b[31m')
    assert told["graph_commit_id"] == answer("snapshot", all_graph)["graph_commit_id"]
    assert ok("query", all_graph, "-e", EVERYTHING, "--format", "json").stdout == (
        ok("query", all_graph, "-e", EVERYTHING, "--json").stdout
    )


def test_a_whole_node_and_a_missing_one(all_graph: Path) -> None:
    text = "match { $a: All optional { $a knows $b } } return { $a $b } order { $a.k } offset 1"
    first, second, _ = answer("query", all_graph, "-e", text)["rows"]
    assert list(first["a"]) == ["@id", *(c for c in COLUMNS if c != "vec")]
    assert (first["a"]["@id"], first["b"]["@id"], second["b"]) == ("a", "b", None)
    assert first["a"]["at"] == VALUES["at"]


def test_no_rows(all_graph: Path) -> None:
    text = 'match { $a: All { k: "nobody" } } return { $a.k }'
    assert answer("query", all_graph, "-e", text)["rows"] == []
    assert ok("query", all_graph, "-e", text, "--format", "csv").stdout_bytes == b"a.k\r\n"
    assert ok("query", all_graph, "-e", text, "--format", "kv").stdout == ""
    assert ok("query", all_graph, "-e", text).stdout.splitlines()[-1].startswith("0 rows in ")
    lines = ok("query", all_graph, "-e", text, "--format", "jsonl").stdout.splitlines()
    assert [json.loads(x)["row_count"] for x in lines] == [0]


def test_jsonl(all_graph: Path) -> None:
    lines = ok("query", all_graph, "-e", EVERYTHING, "--format", "jsonl").stdout.splitlines()
    facts, *rows = [json.loads(line) for line in lines]
    assert facts["kind"] == "metadata"
    told = answer("query", all_graph, "-e", EVERYTHING)
    assert rows == told.pop("rows")
    assert facts == {"kind": "metadata"} | told


def test_csv(all_graph: Path) -> None:
    done = process("query", all_graph, "-e", EVERYTHING, "--format", "csv")
    text = done.stdout.decode()
    assert text.count("\r\n") == 5
    header, empty, first, second, third = csv.reader(io.StringIO(text, newline=""))
    assert header == list(COLUMNS)
    assert first == [
        "a", "true", "-1", "-9223372036854775808", "18446744073709551615", "0.1", "1e+300",
        "2026-01-31", "2026-01-31T12:00:00.250Z", '["x","y, \\"z\\""]', '["1969-12-31"]', "[1,0.5]",
    ]  # fmt: skip
    assert (second[9], third[0], set(third[1:])) == ("[]", 'c\n"d",\x1b[31m', {""})
    # An empty text is not a missing one.
    assert text.splitlines()[1].startswith('"",,')
    assert empty[0] == ""


def test_kv(all_graph: Path) -> None:
    blocks = ok("query", all_graph, "-e", EVERYTHING, "--format", "kv").stdout.split("\n\n")
    assert len(blocks) == 4
    assert blocks[1].splitlines()[0] == "k: a"
    assert blocks[2].splitlines()[1] == "b: null"
    assert blocks[3].splitlines()[0] == r'k: c\n"d",\x1b[31m'
    assert all(len(b.strip("\n").splitlines()) == len(COLUMNS) for b in blocks)


def test_arrow(all_graph: Path) -> None:
    done = process("query", all_graph, "-e", EVERYTHING, "--format", "arrow")
    table = pa.ipc.open_stream(done.stdout).read_all()
    assert table.column_names == list(COLUMNS)
    assert table.column("u").to_pylist()[1] == 2**64 - 1
    head = answer("snapshot", all_graph)["graph_commit_id"]
    assert table.schema.metadata == {b"graph_commit_id": head.encode()}


def test_table(all_graph: Path) -> None:
    text = "match { $a: All } return { $a.k $a.i } order { $a.k desc } limit 2"
    lines = ok("query", all_graph, "-e", text).stdout.splitlines()
    assert lines[:-1] == [
        "a.k               a.i",
        "─────────────────────",
        r'c\n"d",\x1b[31m  null',
        "b                null",
    ]
    assert lines[-1].startswith("2 rows in ")
    quiet = ok("query", all_graph, "-e", text, "--quiet").stdout.splitlines()
    assert quiet == lines[:-1]


def test_numbers_that_are_not_finite_are_strings(tmp_path: Path) -> None:
    from omnigraph.cli.rows import csv_chunks, json_chunks
    from omnigraph.results import QueryResult

    values = pa.array([float("nan"), float("inf"), float("-inf"), 1.5, None])
    result = QueryResult(
        pa.table({"x": values, "y": pa.array([[float("inf"), None]] * 5)}),
        query_name=None, branch="main", commit_id="C", manifest_version=1,
    )  # fmt: skip
    told = json.loads(b"".join(json_chunks(result, pinned=True)))
    assert [r["x"] for r in told["rows"]] == ["NaN", "Infinity", "-Infinity", 1.5, None]
    assert told["rows"][0]["y"] == ["Infinity", None]
    assert told["target"] == {"branch": "main", "commit": "C"}
    assert b'NaN,"[""Infinity"",null]"\r\n' in b"".join(csv_chunks(result))


def test_many_rows_come_completely_in_every_format(empty_graph: Path) -> None:
    lines = "".join(
        f'{{"type":"Port","data":{{"code":"{n}","name":"p","berths":1}}}}\n' for n in range(3_000)
    )
    ok("load", empty_graph, "--data", "-", "--mode", "append", stdin=lines)
    text = "match { $p: Port } return { $p.code }"
    for form, extra in (("csv", 1), ("jsonl", 1), ("kv", 2_999), ("table", 3)):
        found = ok("query", empty_graph, "-e", text, "--format", form).stdout
        assert len(found.splitlines()) == 3_000 + extra, form
    assert len(answer("query", empty_graph, "-e", text)["rows"]) == 3_000


# ---------------------------------------------------------------- texts and parameters

QUERIES = """\
query calls($imo: I64, $flag: String?) { match { $v: Vessel { imo: $imo } } return { $v.name $flag } }
query ports($codes: [String], $from: Date?) { match { $p: Port  $p.code in $codes } return { $p.name $from } }
query add($code: String) { insert Port { code: $code, name: "n", berths: 1 } }
"""


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    file = tmp_path / "fleet.gq"
    file.write_text(QUERIES)
    return file


def test_a_query_of_a_file_by_its_name(graph: Path, queries: Path) -> None:
    told = answer("query", graph, "calls", "--query", queries, "--param", "imo=100")
    assert told["query_name"] == "calls"
    assert told["rows"] == [{"v.name": "Alba", "flag": None}]
    said = run("query", graph, "--query", queries)
    assert said.exit_code == 2
    assert "calls, ports, add" in said.stderr
    said = run("query", graph, "cals", "--query", queries)
    assert said.exit_code == 2
    assert "did you mean `calls`?" in said.stderr


def test_the_graph_may_be_named_elsewhere(graph: Path, queries: Path) -> None:
    args = ("--query", queries, "--param", "imo=100")
    assert answer("query", "calls", *args, "--store", graph)["row_count"] == 1
    env = {"OMNIGRAPH_STORE": str(graph)}
    assert answer("query", "calls", *args, env=env)["row_count"] == 1
    assert answer("query", graph, "calls", *args, env={"OMNIGRAPH_STORE": "x"})["row_count"] == 1
    text = "match { $v: Vessel } return { count($v) as n }"
    assert answer("query", "-e", text, env=env)["rows"] == [{"n": 2}]
    assert answer("query", graph, "-e", text, env={"OMNIGRAPH_STORE": "x"})["rows"] == [{"n": 2}]


def test_a_text_from_stdin(graph: Path) -> None:
    text = "match { $v: Vessel } return { $v.imo } order { $v.imo }"
    assert answer("query", graph, "--query", "-", stdin=text)["rows"][0] == {"v.imo": 100}
    said = run("query", graph, "--query", "-", stdin="match { $v: Vesel } return { $v }")
    assert said.stderr.startswith("error: <stdin>:1:13: Q101: ")


@pytest.mark.parametrize(
    "args",
    [
        ["--params", '{"codes": ["AAR", "X"], "from": "2026-01-01"}'],
        ["--param", 'codes=["AAR", "X"]', "--param", "from=2026-01-01"],
        ["--params", '{"codes": ["AAR", "X"]}', "--param", "$from=2026-01-01"],
    ],
)
def test_parameters(graph: Path, queries: Path, args: list[str]) -> None:
    told = answer("query", graph, "ports", "--query", queries, *args)
    assert told["rows"] == [{"p.name": "Aarhus", "from": "2026-01-01"}]


def test_parameters_from_a_file(graph: Path, queries: Path, tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text('{"imo": "100", "flag": "12"}')
    args = ("query", graph, "calls", "--query", queries)
    assert answer(*args, "--params-file", file)["rows"] == [{"v.name": "Alba", "flag": "12"}]
    stdin = '{"imo": 100}'
    assert answer(*args, "--params-file", "-", stdin=stdin)["row_count"] == 1


def test_text_parameters_are_taken_as_they_stand(graph: Path, queries: Path) -> None:
    args = ("query", graph, "calls", "--query", queries, "--param", "imo=100", "--param")
    for value in ("12", "null", "a=b", '"q"', ""):
        assert answer(*args, f"flag={value}")["rows"][0]["flag"] == value


def test_an_older_state(graph: Path) -> None:
    text = "match { $v: Vessel } return { count($v) as n }"
    first = answer("commit", "list", graph)["commits"][-1]["graph_commit_id"]
    told = answer("query", graph, "-e", text, "--commit", first.lower())
    assert told["rows"] == [{"n": 0}]
    assert told["target"] == {"branch": "main", "commit": first}
    assert told["graph_commit_id"] == first


# ---------------------------------------------------------------- what goes wrong

READ = "match { $v: Vessel } return { $v.name }"
PAIRS = "match { $v: Vessel $w: Vessel } return { $v.name $w.imo }"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ([], 2, "no query is given"),
        (["-e", READ, "--query", "x.gq"], 2, "two queries are given"),
        (["-e", READ, "--params", "{}", "--params-file", "x"], 2, "both given"),
        (["--query", "-", "--params-file", "-"], 2, "stdin is named twice"),
        (["-e", READ, "--params", "{"], 1, "not valid JSON"),
        (["-e", READ, "--params", "[1]"], 1, "a JSON object"),
        (["-e", READ, "--params", '{"a": 1, "a": 2}'], 1, "twice"),
        (["-e", READ, "--params", '{"a": 1}'], 1, "unknown parameter 'a'"),
        (["-e", READ, "--param", "a"], 2, "write --param name=value"),
        (["-e", READ, "--param", "=a"], 2, "write --param name=value"),
        (["-e", READ, "--param", "a=1", "--param", "a=2"], 2, "given twice"),
        (["-e", READ, "--params", '{"a": 1}', "--param", "a=2"], 2, "given twice"),
        (["-e", "", "--json"], 1, ""),
        (["-e", "match {"], 1, "Q015"),
        (["-e", "delete Vessel where imo = 1"], 2, "omnigraph mutate"),
        (["-e", READ, "--format", "xml"], 2, "jsonl"),
        (["-e", READ, "--json", "--format", "csv"], 2, "contradict"),
        (["-e", READ, "--branch", "nope"], 1, "no branch 'nope'"),
        (["-e", READ, "--commit", "nope"], 1, "no commit nope"),
        (["-e", READ, "--commit", " "], 2, "must not be empty"),
        (["-e", READ, "--timeout", "0"], 2, "timeout"),
        (["-e", READ, "--timeout", "nan"], 2, "timeout"),
        (["-e", READ, "--memory", "lots"], 2, "500M"),
        (["-e", READ, "--memory", "0"], 2, "500M"),
        (["-e", PAIRS, "--memory", "1"], 1, "the limit is 1 B"),
        (["--query", "nowhere.gq"], 1, "no query file nowhere.gq"),
        (["-e", READ, "--params-file", "nowhere.json"], 1, "no parameter file nowhere.json"),
        (["-e", "query a($n: I64) { " + READ.replace("Vessel", "Vessel {imo: $n}") + " }"], 1, "missing"),
        (["name", "extra", "-e", READ], 2, "extra"),
    ],
)  # fmt: skip
def test_refusals_are_told_without_a_traceback(
    graph: Path, args: list[str], code: int, words: str
) -> None:
    said = run("query", graph, *args, stdin="{}")
    assert said.exit_code == code, said.stderr
    assert said.stderr.startswith("error: ")
    assert words in said.stderr
    assert "internal error" not in said.stderr
    told = run("query", graph, *[a for a in args if a != "--json"], "--json", stdin="{}")
    if "--format" not in args:
        assert told.exit_code == code
        assert json.loads(told.stdout)["error"]


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", bytes(range(256))])
def test_a_binary_file(graph: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.gq"
    file.write_bytes(content)
    said = run("query", graph, "--query", file)
    assert (said.exit_code, "it is not UTF-8 text" in said.stderr) == (2, True)
    said = run("query", graph, "-e", READ, "--params-file", file)
    assert (said.exit_code, "it is not UTF-8 text" in said.stderr) == (2, True)


def test_a_folder_is_no_file(graph: Path, tmp_path: Path) -> None:
    said = run("query", graph, "--query", tmp_path)
    assert said.exit_code == 2
    assert "cannot read the query file" in said.stderr


def test_findings_name_the_file(graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "bad.gq"
    file.write_text("match { $v: Vessel }\nreturn { $v.nam }\n")
    said = run("query", graph, "--query", file)
    assert said.exit_code == 1
    assert said.stderr.splitlines()[0].startswith(f"error: {file}:2:")
    assert "^^^" in said.stderr
    told = json.loads(run("query", graph, "--query", file, "--json").stdout)
    assert (told["source"], told["diagnostics"][0]["line"]) == (str(file), 2)


def test_several_wrong_parameters_are_listed(graph: Path, queries: Path) -> None:
    said = run("query", graph, "calls", "--query", queries, "--param", "imo=x", "--param", "b=1")
    assert said.exit_code == 1
    lines = said.stderr.splitlines()
    assert lines[0] == "error: 2 problems with the parameters"
    assert len(lines) == 3


def test_format_json_makes_errors_json_too(graph: Path) -> None:
    told = run("query", graph, "-e", "match {", "--format", "json")
    assert json.loads(told.stdout)["code"] == "query"


@pytest.mark.parametrize("size", ["1G", "1.5g", "500M", "100000k", "2GiB", "900mb", "123456789"])
def test_sizes(graph: Path, size: str) -> None:
    ok("query", graph, "-e", READ, "--memory", size, "--timeout", "60")


def test_arrow_is_not_for_a_terminal(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.cli.commands.queries.is_terminal", lambda stream: True)
    said = run("query", graph, "-e", READ, "--format", "arrow")
    assert said.exit_code == 2
    assert "rows.arrow" in said.stderr


# ---------------------------------------------------------------- notices


def test_a_large_search_without_an_index_is_remarked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, search = tmp_path / "g", 'match { $d: Doc  search($d.body, "red") } return { $d.slug }'
    (tmp_path / "doc.pg").write_text("node Doc { slug: String @key  body: String @index }")
    ok("init", "--schema", tmp_path / "doc.pg", place)
    lines = [f'{{"type":"Doc","data":{{"slug":"d{i}","body":"red"}}}}\n' for i in range(20)]
    ok("load", "--data", "-", "--mode", "append", place, stdin="".join(lines))
    quiet = answer("query", place, "-e", search)
    assert "notices" not in quiet, "twenty rows are few"
    said = ok("query", place, "-e", search)
    assert said.stderr == ""
    monkeypatch.setattr(rank, "NOTED_ROWS", dict.fromkeys(rank.NOTED_ROWS, 20))
    line = (
        "20 of 20 rows of node:Doc are in no text index on body: the answer is the same; "
        "'omnigraph optimize' builds it"
    )
    told = answer("query", place, "-e", search)
    (notice,) = told.pop("notices")
    assert told == quiet, "the rest of the document is as it was"
    assert notice == {
        "code": "rows_not_indexed",
        "type_key": "node:Doc",
        "property": "body",
        "kind": "text",
        "rows": 20,
        "rows_uncovered": 20,
        "next_step": "omnigraph optimize",
        "message": line,
    }
    for form in ("table", "csv", "jsonl", "kv"):
        shown = ok("query", place, "-e", search, "--format", form)
        assert shown.stderr.endswith(f"note: {line}\n"), form
        assert (line in shown.stdout) == (form == "jsonl"), "its first line is about the answer"
    assert ok("query", place, "-e", search, "--quiet").stderr == ""
    assert answer("explain", place, "-e", search)["notices"] == [notice]
    assert f"note: {line}\n" in ok("explain", place, "-e", search).stdout
    ok("optimize", place)
    assert "notices" not in answer("query", place, "-e", search)
    assert answer("explain", place, "-e", search)["notices"] == []
