"""`omnigraph mutate` and `omnigraph explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_support import answer, commit_count, ok, run

ADD = 'insert Port { code: "OSL", name: "Oslo", berths: 7 }'
READ = "match { $v: Vessel } return { $v.name }"


def test_an_insert_is_one_commit(graph: Path) -> None:
    said = ok("mutate", graph, "-e", ADD, "--as", "bob", "--message", "a port")
    first, second = said.stdout.splitlines()
    assert first.startswith("Changed 1 node in ")
    newest = answer("commit", "list", graph)["commits"][0]
    assert second == f"commit {newest['graph_commit_id']} on main  +1"
    assert (newest["actor_id"], newest["message"], newest["kind"]) == ("bob", "a port", "mutation")


def test_json(graph: Path) -> None:
    text = "query gone($code: String) { delete Port where code = $code }"
    told = answer("mutate", graph, "-e", text, "--param", "code=AAR", "--as", "bob")
    commit = told.pop("commit")
    assert told == {
        "branch": "main",
        "query_name": "gone",
        "affected_nodes": 1,
        "affected_edges": 1,
        "actor_id": "bob",
    }
    assert commit["changes"]["edge:CallsAt"]["deleted"] == 1


def test_what_changes_nothing_makes_no_commit(graph: Path) -> None:
    before = commit_count(graph)
    text = 'update Vessel set { flag: "dk" } where imo = '
    said = ok("mutate", graph, "-e", text + "100").stdout
    assert said.startswith("No change in ")
    assert said.endswith(": 1 node matched, as asked already\n")
    assert "nothing matched" in ok("mutate", graph, "-e", text + "101").stdout
    assert answer("mutate", graph, "-e", text + "101")["commit"] is None
    assert commit_count(graph) == before


def test_quiet(graph: Path) -> None:
    assert ok("mutate", graph, "-e", ADD, "--quiet").stdout == ""


def test_a_named_mutation_of_a_file(graph: Path, tmp_path: Path) -> None:
    file = tmp_path / "w.gq"
    file.write_text(
        "query add($code: String, $n: U32) { insert Port { code: $code, name: $code, berths: $n } }\n"
        f"query all() {{ {READ} }}\n"
    )
    args = ("mutate", graph, "add", "--query", file)
    assert answer(*args, "--param", "code=X", "--param", "n=3")["affected_nodes"] == 1
    said = run("mutate", graph, "all", "--query", file)
    assert (said.exit_code, "omnigraph query" in said.stderr) == (2, True)
    said = run(*args, "--param", "code=Y", "--param", "n=-3")
    assert (said.exit_code, said.stderr.startswith("error: parameter 'n'")) == (1, True)


def test_a_stated_commit_must_be_the_newest(graph: Path) -> None:
    head = answer("snapshot", graph)["graph_commit_id"]
    assert answer("mutate", graph, "-e", ADD, "--if-commit", head.lower())["commit"]
    again = ADD.replace("OSL", "BGO")
    said = run("mutate", graph, "-e", again, "--if-commit", head)
    assert said.exit_code == 4
    assert "nothing was published" in said.stderr
    told = run("mutate", graph, "-e", again, "--if-commit", head, "--json")
    assert told.exit_code == 4
    assert json.loads(told.stdout)["code"] == "precondition_failed"
    assert answer("query", graph, "-e", "match { $p: Port } return { count($p) as n }")["rows"] == [
        {"n": 2}
    ]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ('insert Port { code: "X" }', 1, "Q603"),
        ('insert Prot { code: "X" }', 1, "did you mean `Port`?"),
        ('insert CallsAt { from: "100", to: "NO", on: date("2026-01-01") }', 1, "'NO' not found"),
        ("update Vessel set { imo: 1 } where imo = 100", 1, "Q607"),
        (READ, 2, "omnigraph query"),
        (ADD + ' delete Port where code = "AAR"', 1, "Q612"),
        ("", 1, "Q013"),
    ],
)
def test_refusals_publish_nothing(graph: Path, text: str, code: int, words: str) -> None:
    before = commit_count(graph)
    said = run("mutate", graph, "-e", text)
    assert said.exit_code == code, said.stderr
    assert words in said.stderr
    told = run("mutate", graph, "-e", text, "--json")
    assert (told.exit_code, bool(json.loads(told.stdout)["error"])) == (code, True)
    assert commit_count(graph) == before


def test_an_unknown_branch(graph: Path) -> None:
    said = run("mutate", graph, "-e", ADD, "--branch", "nope")
    assert (said.exit_code, "no branch 'nope'" in said.stderr) == (1, True)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_interrupts(graph: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    def strike(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    output = "JsonOutput" if flags else "TextOutput"
    with monkeypatch.context() as patched:
        patched.setattr(f"omnigraph.cli.output.{output}.show", strike)
        said = run("mutate", graph, "-e", ADD, *flags)
    head = answer("snapshot", graph)["graph_commit_id"]
    assert (said.exit_code, said.stderr) == (130, f"interrupted; commit {head} was published\n")
    with monkeypatch.context() as patched:
        patched.setattr("omnigraph.api.graph.Graph.mutate", strike)
        said = run("mutate", graph, "-e", ADD, *flags)
    assert (said.exit_code, "nothing was published" in said.stderr) == (130, True)
    with monkeypatch.context() as patched:
        patched.setattr("omnigraph.api.view.SnapshotView.query", strike)
        said = run("query", graph, "-e", READ, *flags)
    assert (said.exit_code, said.stderr) == (130, "interrupted\n")


# ---------------------------------------------------------------- explain


def test_explain(graph: Path) -> None:
    text = "match { $v: Vessel $v callsAt $p } return { $v.name, $p.code }"
    lines = ok("explain", graph, "-e", text).stdout.splitlines()
    assert lines[0].startswith("return ")
    told = answer("explain", graph, "-e", text)
    assert told["text"].splitlines() == lines
    assert [s["step"] for s in told["steps"]] == [line.strip() for line in lines]
    assert [s["depth"] for s in told["steps"]][:2] == [0, 1]
    assert told["target"] == {"branch": "main", "commit": None}
    assert "rows" not in told["steps"][0]


def test_explain_analyze(graph: Path) -> None:
    text = "query q($n: I64) { match { $v: Vessel { imo: $n } } return { $v.name } }"
    ok("explain", graph, "-e", text)
    told = answer("explain", graph, "-e", text, "--analyze", "--param", "n=100")
    assert told["row_count"] == 1
    assert told["steps"][0]["rows"] == 1
    assert {"elapsed_ms", "requests", "calls"} <= set(told["steps"][-1])
    assert run("explain", graph, "-e", text, "--analyze").exit_code == 1


def test_explain_takes_no_mutation(graph: Path) -> None:
    assert run("explain", graph, "-e", ADD).exit_code == 2
