"""Graphs of networkx, GraphML, Neo4j and Kuzu become graphs here."""

from __future__ import annotations

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import networkx
import pytest

import omnigraph


def imported(tmp_path: Path, source: Any) -> omnigraph.Graph:
    inferred = omnigraph.infer_schema(source)
    graph = omnigraph.init(tmp_path / "imported", inferred.schema)
    graph.load(inferred.source, mapping=inferred.mapping or None)
    assert graph.upkeep.check(full=True).ok
    return graph


def counts(graph: omnigraph.Graph) -> dict[str, int]:
    return {t.name: graph.snapshot().count(t.name) for t in graph.catalog.types()}


def test_a_plain_graph_of_networkx(tmp_path: Path):
    with imported(tmp_path, networkx.karate_club_graph()) as graph:
        assert counts(graph) == {"Node": 34, "Edge": 78}
        assert graph.snapshot().rows("Edge").to_dicts()[0]["weight"] == 4


def test_what_to_networkx_made_comes_back(tmp_path: Path):
    schema = """
    node Person { name: String @key  age: I32? }
    node City { name: String @key }
    edge LivesIn: Person -> City { since: I32? }
    """
    records = [
        {"type": "Person", "data": {"name": "1", "age": 36}},
        {"type": "City", "data": {"name": "1"}},
        {"edge": "LivesIn", "from": "1", "to": "1", "data": {"since": 3}},
    ]
    with omnigraph.init(tmp_path / "g", schema) as graph:
        graph.load(records)
        made = graph.snapshot().to_networkx()
    with imported(tmp_path, made) as graph:
        assert counts(graph) == {"Person": 1, "City": 1, "LivesIn": 1}
        assert graph.catalog.edges["LivesIn"].target == "City"
        assert graph.snapshot().rows("LivesIn").to_dicts()[0]["since"] == 3


def test_a_graphml_file(tmp_path: Path):
    made = networkx.DiGraph()
    made.add_node("a", type="Person", name="Ada <&>", age=36)
    made.add_node("b", type="Person", name="Bob")
    made.add_node("t", type="City")
    made.add_edge("a", "b", label="KNOWS_WELL", since=1840, strong=True)
    made.add_edge("a", "t", label="LIVES_IN")
    made.add_edge("t", "t", label="LIVES_IN")
    networkx.write_graphml(made, tmp_path / "x.graphml")
    with imported(tmp_path, tmp_path / "x.graphml") as graph:
        assert counts(graph) == {
            "Person": 2, "City": 1, "KnowsWell": 1,
            "PersonLivesInCity": 1, "CityLivesInCity": 1,
        }  # fmt: skip
        ada = graph.snapshot().rows("Person").to_dicts()[0]
        assert (ada["name"], ada["age"]) == ("Ada <&>", 36)
        knows = graph.snapshot().rows("KnowsWell").to_dicts()[0]
        assert (knows["since"], knows["strong"]) == (1840, True)


def test_a_dump_of_neo4j(tmp_path: Path):
    (tmp_path / "people.csv").write_text(
        "personId:ID(Person),name,age:int,tags:string[],:LABEL\n"
        '1,Ada,36,x;y,Person\n2,"Bob, jr.",,,Person;Admin\n'
    )
    (tmp_path / "cities.csv").write_text("id:ID(City),:LABEL\n1,City\n")
    (tmp_path / "rels.csv").write_text(
        ":START_ID(Person),:END_ID(City),:TYPE,since:long\n1,1,LIVES_IN,1990\n2,1,LIVES_IN,\n"
    )
    files = [tmp_path / f"{name}.csv" for name in ("people", "cities", "rels")]
    with imported(tmp_path, files) as graph:
        assert counts(graph) == {"Person": 2, "City": 1, "LivesIn": 2}
        assert graph.snapshot().rows("Person").to_dicts()[0]["tags"] == ["x", "y"]


@pytest.mark.parametrize("headed", [True, False])
def test_an_export_of_kuzu(tmp_path: Path, headed: bool):
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "schema.cypher").write_text(
        "CREATE NODE TABLE `Person` (`name` STRING,`age` INT64, PRIMARY KEY(`name`));\n"
        "CREATE NODE TABLE City (id INT64, PRIMARY KEY(id));\n"
        "CREATE REL TABLE `LivesIn` (FROM `Person` TO `City`, `since` INT64, MANY_MANY);\n"
    )
    option = " (header=true)" if headed else " (header=false)"
    (folder / "copy.cypher").write_text(
        f'COPY `Person` (`name`,`age`) FROM "Person.csv"{option};\n'
        f'COPY `City` (`id`) FROM "City.csv"{option};\n'
        f'COPY `LivesIn` (`since`) FROM "LivesIn.csv"{option};\n'
    )
    for name, head, rows in (
        ("Person", "name,age", "Ada,36\nBob,\n"),
        ("City", "id", "7\n"),
        ("LivesIn", "from,to,since", "Ada,7,1990\n"),
    ):
        (folder / f"{name}.csv").write_text((head + "\n" if headed else "") + rows)
    with imported(tmp_path, folder) as graph:
        assert counts(graph) == {"Person": 2, "City": 1, "LivesIn": 1}
        assert graph.snapshot().rows("LivesIn").to_dicts()[0]["since"] == 1990
        assert graph.snapshot().rows("Person").to_dicts()[0]["age"] == 36


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("x.graphml", "<graphml>", "cannot be read as GraphML"),
        ("x.graphml", "<graphml/>", "there are no nodes"),
        ("x.graphml", "<graphml><node id='a'/><edge source='a' target='b'/></graphml>", "'b'"),
        ("x.graphml", "<graphml><node id='a'/><node id='a'/></graphml>", "occurs twice"),
        ("n.csv", "a:ID,n:int\n1,x\n", "n.csv:2: 'x' is no int"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, text: str, words: str):
    (tmp_path / name).write_text(text)
    with pytest.raises(omnigraph.InputError, match=words):
        omnigraph.infer_schema(tmp_path / name)


DUMP = Path(__file__).parents[1] / "fixtures" / "kuzu-0.11"


@pytest.mark.parametrize("headed", [True, False])
def test_what_kuzu_itself_wrote(tmp_path: Path, headed: bool):
    """``fixtures/make_kuzu_dump.py``; without headers its files differ in nothing else."""
    folder = Path(shutil.copytree(DUMP, tmp_path / "dump"))
    if not headed:
        copies = (folder / "copy.cypher").read_text()
        (folder / "copy.cypher").write_text(copies.replace("header=true, ", ""))
        for file in folder.glob("*.csv"):
            file.write_text(file.read_text().split("\n", 1)[1])
    with imported(tmp_path, folder) as graph:
        assert counts(graph) == {
            "Person": 3, "City": 3, "OddName": 1,
            "LivesIn": 1, "PersonKnowsPerson": 1, "PersonKnowsCity": 1,
        }  # fmt: skip
        ada, bob, broken = graph.snapshot().rows("Person").to_dicts()
        assert ada["id"] == 'Ada, "the" first'
        assert (ada["age"], ada["height"], ada["ok"]) == (36, 1.7, True)
        assert (ada["born"], ada["seen"].isoformat()) == (
            date(1815, 12, 10), "2020-01-01T10:00:00+00:00",
        )  # fmt: skip
        assert (ada["nums"], ada["price"], ada["s"]) == ([1, 2], "12.50", "{a: 1, b: k}")
        assert (bob["tags"], bob["height"]) == ([], None)
        assert broken["id"] == "line\nbreak; 'quoted'"
        # An empty text is one, and not the same as nothing.
        titles = [row["title"] for row in graph.snapshot().rows("City").to_dicts()]
        assert titles == ["Turin", "", "x"]
        (lives,) = graph.snapshot().rows("LivesIn").to_dicts()
        assert (lives["src"], lives["dst"], lives["note"]) == ("Bob", "0", "a,b")


def test_an_export_of_kuzu_as_parquet_says_what_to_do(tmp_path: Path):
    folder = Path(shutil.copytree(DUMP, tmp_path / "dump"))
    copies = (folder / "copy.cypher").read_text()
    (folder / "copy.cypher").write_text(copies.replace(".csv", ".parquet"))
    with pytest.raises(omnigraph.InputError, match=r"Person\.parquet is no CSV file") as caught:
        omnigraph.infer_schema(folder)
    assert 'format="csv"' in (caught.value.hint or "")
