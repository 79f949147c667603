"""A schema from data: the text is valid, and the same data loads with it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph

AIRPORTS = "iata,name,country,lat,opened,hub,zip\n" + "".join(
    f"A{i:02},Airport {i},{('uk', 'dk', 'it')[i % 3]},{i}.5,19{10 + i}-01-02,"
    f"{'true' if i % 2 else 'false'},{i:05}\n"
    for i in range(30)
)
ROUTES = "src_airport,dst_airport,km,airline\n" + "".join(
    f"A{i:02},A{i + 1:02},{i * 10},{'' if i % 2 else 'XX'}\n" for i in range(29)
)
STAFF = "id,full name,airport_iata\n1,Ann,A00\n2,Bob,A01\n"


def loaded(tmp_path: Path, inferred: omnigraph.Inferred) -> omnigraph.Graph:
    graph = omnigraph.init(tmp_path / "graph", inferred.schema)
    graph.load(inferred.source, mapping=inferred.mapping or None)
    return graph


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    for name, text in (("airports", AIRPORTS), ("routes", ROUTES), ("staff", STAFF)):
        (tmp_path / f"{name}.csv").write_text(text)
    return [tmp_path / f"{name}.csv" for name in ("airports", "routes", "staff")]


def test_types_keys_enums_and_foreign_keys_are_found(files: list[Path], tmp_path: Path):
    inferred = omnigraph.infer_schema(files)
    with loaded(tmp_path, inferred) as graph:
        catalog = graph.catalog
        airport = catalog.nodes["Airport"]
        assert {p.name: str(p.type) for p in airport.properties} == {
            "iata": "String",
            "name": "String",
            "country": "enum(dk, it, uk)",
            "lat": "F64",
            "opened": "Date",
            "hub": "Bool",
            "zip": "String",
        }
        assert airport.key == ("iata",)
        route = catalog.edges["Route"]
        assert (route.source, route.target) == ("Airport", "Airport")
        assert {p.name: str(p.type) for p in route.properties} == {
            "km": "I64",
            "airline": "String?",
        }
        link = catalog.edges["StaffAirportIata"]
        assert (link.source, link.target) == ("Staff", "Airport")
        counts = {t.name: graph.snapshot().count(t.name) for t in catalog.types()}
        assert counts == {"Airport": 30, "Route": 29, "Staff": 2, "StaffAirportIata": 2}
        assert graph.snapshot().rows("Staff").to_dicts()[0]["full_name"] == "Ann"
        assert graph.upkeep.check(full=True).ok


def test_data_frames_and_typed_files_keep_their_types(tmp_path: Path):
    people = pandas.DataFrame({"id": [1, 2, 3], "score": [0.5, None, 1.5], "name": ["a", "b", "c"]})
    knows = polars.DataFrame({"source": [1, 2], "target": [2, 3], "since": [1990, 1991]})
    pq.write_table(
        pa.table({"face": pa.array([[0.5, 1.0]], pa.list_(pa.float32(), 2)), "raw": [b"x"]}),
        tmp_path / "faces.parquet",
    )
    source: dict[str, Any] = {
        "Person": people, "Knows": knows, "Face": tmp_path / "faces.parquet",
    }  # fmt: skip
    with loaded(tmp_path, omnigraph.infer_schema(source)) as graph:
        person = graph.catalog.nodes["Person"]
        assert person.key == ("person_id",)
        assert str(person.by_name["person_id"].type) == "I64"
        assert str(person.by_name["score"].type) == "F64?"
        assert graph.catalog.edges["Knows"].source == "Person"
        face = graph.catalog.nodes["Face"]
        assert [str(p.type) for p in face.properties] == ["Vector(2)", "Blob"]
        assert graph.snapshot().count("Knows") == 2


@pytest.mark.parametrize(
    "text",
    [
        "a\n",
        "a,b\n1,\n,2\n",
        "Über Name,from,_rowid,id\nx,1,2,\n",
        "1st,2nd\n1,2\n",
        "ünïcode\n☃\n",
        'quoted\n"a, ""b""\nc"\n',
        "n\n9223372036854775808\n-1\n",
        "n\n18446744073709551616\n",
        "flag,none\ntrue,\nFALSE,\n",
        'list\n"[1, 2]"\n[]\n',
        "name,Name\na,b\n",
        "code\n" + "\n".join(["007"] * 40) + "\n",
        "word\n" + "\n".join(["node", "edge", "null"] * 20) + "\n",
        "\ufeffname\nx\n",
        "a,b\r\n1,2\r\n",
    ],
)
def test_whatever_is_inferred_is_valid_and_loads(tmp_path: Path, text: str):
    (tmp_path / "things.csv").write_bytes(text.encode())
    inferred = omnigraph.infer_schema(tmp_path / "things.csv")
    rows = next(t.table.rows for t in inferred.types)
    with loaded(tmp_path, inferred) as graph:
        assert graph.snapshot().count("Thing") == rows


def test_packed_files_and_folders_are_read(tmp_path: Path):
    folder = tmp_path / "cities"
    folder.mkdir()
    (folder / "1.csv.gz").write_bytes(gzip.compress(b"name\nTurin\n"))
    (folder / "2.csv").write_bytes(b"name\nOslo\n")
    inferred = omnigraph.infer_schema({"City": folder})
    with loaded(tmp_path, inferred) as graph:
        assert graph.snapshot().count("City") == 2


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b"", "names its columns"),
        ("a.parquet", b"PAR1nonsense", "cannot be read"),
        ("a.csv", b"a,b\n1\n2,3\n", "cannot be read"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, words: str):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(omnigraph.InputError, match=words):
        omnigraph.infer_schema(tmp_path / name)


def test_what_cannot_be_a_schema_is_refused(tmp_path: Path):
    (tmp_path / "a.csv").write_text("x\n1\n")
    with pytest.raises(omnigraph.UsageError, match="the type A"):
        omnigraph.infer_schema([tmp_path / "a.csv", tmp_path / "a.csv"])
    with pytest.raises(omnigraph.UsageError, match="nothing to infer"):
        omnigraph.infer_schema([])
    with pytest.raises(omnigraph.NotFoundError):
        omnigraph.infer_schema(tmp_path / "b.csv")


RECORDS = """
{"type": "Person", "data": {"name": "Ada", "born": "1815-12-10", "score": 1.5, "tags": ["x"]}}
{"type": "Person", "data": {"name": "Bob", "seen": "2026-01-31T12:00:00Z", "score": 2}}

{"type": "City", "data": {"code": 7}}
{"edge": "Knows", "from": "Ada", "to": "Bob", "data": {"since": 1990}}
{"edge": "LivesIn", "from": "Ada", "to": "7"}
"""


@pytest.mark.parametrize("packed", [False, True])
def test_records_of_a_graph_name_their_types(tmp_path: Path, packed: bool):
    file = tmp_path / ("records.jsonl.gz" if packed else "records.jsonl")
    content = RECORDS.encode()
    file.write_bytes(gzip.compress(content) if packed else content)
    inferred = omnigraph.infer_schema(file)
    assert f"--data {file}" in inferred.schema
    with loaded(tmp_path, inferred) as graph:
        assert {p.name: str(p.type) for p in graph.catalog.nodes["Person"].properties} == {
            "name": "String", "born": "Date?", "score": "F64", "tags": "[String]?",
            "seen": "DateTime?",
        }  # fmt: skip
        knows, lives = graph.catalog.edges["Knows"], graph.catalog.edges["LivesIn"]
        assert (knows.source, knows.target) == ("Person", "Person")
        assert (lives.source, lives.target) == ("Person", "City")
        assert graph.catalog.nodes["City"].key == ("code",)
        asked = "match { $a: Person  $a livesIn $c } return { $a.name, $c.code }"
        assert graph.query(asked).to_dicts() == [{"a.name": "Ada", "c.code": 7}]
        assert graph.upkeep.check(full=True).ok


@pytest.mark.parametrize("text", ['{"id": 1, "day": "2026-01-31"}\n{"id": 2}\n', None])
def test_plain_rows_of_json_are_a_table(tmp_path: Path, text: str | None):
    file = tmp_path / "days.jsonl"
    file.write_text(text or '[{"id": 1, "day": "2026-01-31"}, {"id": 2}]')
    inferred = omnigraph.infer_schema(file)
    assert "omnigraph import ./graph --schema this.pg" in inferred.schema
    with loaded(tmp_path, inferred) as graph:
        assert str(graph.catalog.nodes["Day"].by_name["day"].type) == "Date?"
        assert graph.snapshot().count("Day") == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"type": "A", "data": {"n": 1}}\n{"n": 1}\n', "a.jsonl:2: not a record"),
        ('{"n": 1}\n{"n":\n', "a.jsonl:2: not JSON"),
        ('{"n": 1}\n7\n', "a.jsonl:2: not an object"),
        ('{"type": "A", "data": {}}\n', "no columns"),
        (
            '{"type": "A", "data": {"k": "x"}}\n{"edge": "E", "from": "x", "to": "y"}\n',
            "edges of the type E name nodes that are not there",
        ),
    ],
)
def test_what_is_wrong_with_json_is_said(tmp_path: Path, text: str, words: str):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(omnigraph.InputError, match=words):
        omnigraph.infer_schema(tmp_path / "a.jsonl")


def test_records_and_tables_are_inferred_apart(tmp_path: Path, files: list[Path]):
    (tmp_path / "a.jsonl").write_text('{"type": "A", "data": {"n": 1}}\n')
    with pytest.raises(omnigraph.UsageError, match="holds records of a graph"):
        omnigraph.infer_schema([tmp_path / "a.jsonl", files[0]])
