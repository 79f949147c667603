"""`omnigraph import`: files that no schema describes become a graph."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import networkx
import pytest
from cli_support import answer, ok, run

DUMP = Path(__file__).parents[1] / "fixtures" / "kuzu-0.11"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def graphml(here: Path) -> list[str]:
    made = networkx.DiGraph()
    made.add_node("a", type="Person", age=36)
    made.add_node("b", type="Person")
    made.add_edge("a", "b", label="KNOWS_WELL", since=1840)
    networkx.write_graphml(made, here / "friends.graphml")
    return ["friends.graphml"]


def neo4j(here: Path) -> list[str]:
    (here / "people.csv").write_text("id:ID(Person),age:int,:LABEL\na,36,Person\nb,,Person\n")
    (here / "rels.csv").write_text(
        ":START_ID(Person),:END_ID(Person),:TYPE,since:long\na,b,KNOWS_WELL,1840\n"
    )
    return ["people.csv", "rels.csv"]


def kuzu(here: Path) -> list[str]:
    shutil.copytree(DUMP, here / "dump")
    return ["dump"]


def records(here: Path) -> list[str]:
    (here / "r.jsonl").write_text(
        '{"type": "Person", "data": {"name": "a"}}\n{"type": "Person", "data": {"name": "b"}}\n'
        '{"edge": "Knows", "from": "a", "to": "b"}\n'
    )
    return ["r.jsonl"]


def rows(here: Path) -> list[str]:
    (here / "persons.jsonl").write_text('{"name": "a"}\n{"name": "b"}\n')
    return ["persons.jsonl"]


SOURCES = {
    graphml: {"Person": 2, "KnowsWell": 1},
    neo4j: {"Person": 2, "KnowsWell": 1},
    kuzu: {
        "City": 3, "LivesIn": 1, "OddName": 1, "Person": 3,
        "PersonKnowsCity": 1, "PersonKnowsPerson": 1,
    },
    records: {"Person": 2, "Knows": 1},
    rows: {"Person": 2},
}  # fmt: skip


def counted(place: str) -> dict[str, int]:
    return {d["type_name"]: d["entity_count"] for d in answer("snapshot", place)["datasets"]}


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.__name__)
def test_a_graph_of_what_is_there(here: Path, source) -> None:
    data = [word for name in source(here) for word in ("--data", name)]
    done = ok("import", "./graph", *data, "--as", "alice")
    assert done.stdout.startswith("Loaded ")
    assert done.stderr == "Created ./graph\n"
    assert counted("graph") == SOURCES[source]
    assert answer("log", "graph")["commits"][0]["actor_id"] == "alice"
    assert run("import", "./graph", *data).exit_code == 1  # It is there.


@pytest.mark.parametrize("source", SOURCES, ids=lambda s: s.__name__)
def test_the_commands_that_an_inferred_schema_names_run(here: Path, source) -> None:
    text = ok("schema", "infer", *source(here)).stdout
    (here / "this.pg").write_text(text)
    lines = [line[2:].strip() for line in text.splitlines()[2:] if line.startswith("//   ")]
    for command in " ".join(line.removesuffix("\\") for line in lines).split("omnigraph ")[1:]:
        ok(*shlex.split(command))
    assert counted("graph") == SOURCES[source]


def test_an_answer_for_programs(here: Path) -> None:
    assert answer("import", "./graph", "--data", *rows(here))["total_entities"] == 2


def test_what_is_wrong_creates_nothing(here: Path) -> None:
    (here / "x.graphml").write_text("<graphml>")
    found = run("import", "./graph", "--data", "x.graphml")
    assert (found.exit_code, "cannot be read as GraphML" in found.stderr) == (1, True)
    assert not (here / "graph").exists()


def test_a_folder_that_holds_other_things_is_asked_about(here: Path) -> None:
    (here / "full").mkdir()
    (here / "full" / "notes").write_text("")
    assert run("import", "full", "--data", *rows(here)).exit_code == 2
    ok("import", "full", "--data", "persons.jsonl", "--yes")
