"""`omnigraph load --data TYPE=FILE --map PROPERTY=COLUMN`: several typed files, one commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_support import answer, ok, run

SCHEMA = """
node Airport { code: String @key  name: String? }
edge Route: Airport -> Airport { km: I32?  @key(@src, @dst) }
"""
AIRPORTS = "iata,label\nTRN,Turin\nCPH,Copenhagen\n"
ROUTES = "a,b,far\nTRN,CPH,1200\n"
MAPS = (
    "--map", "Airport.code=iata", "--map", "Airport.name=label",
    "--map", "Route.src=a", "--map", "Route.dst=b", "--map", "Route.km=far",
)  # fmt: skip


@pytest.fixture
def flights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "a.csv").write_text(AIRPORTS)
    (tmp_path / "r.csv").write_text(ROUTES)
    ok("init", "g", "--schema", "s.pg")
    return tmp_path


def test_several_typed_files_are_one_commit_with_their_columns_mapped(flights: Path) -> None:
    load = ("load", "g", "--data", "Airport=a.csv", "--data", "Route=r.csv", "--mode", "append")
    told = answer(*load, *MAPS)
    assert told["total_entities"] == 3
    assert len(answer("commit", "list", "g")["commits"]) == 2
    rows = ok("export", "g").stdout
    assert '{"code":"CPH","name":"Copenhagen"' in rows.replace('"id":"CPH",', "")
    assert '"km":1200' in rows


def test_columns_of_one_type_need_no_type_before_them(flights: Path) -> None:
    maps = ("--map", "code=iata", "--map", "name=label")
    for data in (("--data", "a.csv", "--type", "Airport"), ("--data", "Airport=a.csv")):
        assert answer("load", "g", *data, *maps, "--mode", "merge")["total_entities"] == 2


def test_a_file_with_an_equals_sign_is_a_file(flights: Path) -> None:
    (flights / "Year=1").mkdir()
    (flights / "Year=1" / "a.jsonl").write_text('{"type":"Airport","data":{"code":"X"}}')
    assert (
        answer("load", "g", "--data", "Year=1/a.jsonl", "--mode", "append")["total_entities"] == 1
    )
    (flights / "A=b.csv").write_text("code\nY\n")
    typed = ("load", "g", "--data", "Airport=A=b.csv", "--mode", "append")
    assert answer(*typed)["total_entities"] == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--data", "Airport=a.csv", "--data", "r.jsonl"], "'r.jsonl' does not"),
        (["--data", "Airport=a.csv", "--map", "code"], "'code' is not PROPERTY=COLUMN"),
        (["--data", "Airport=a.csv", "--map", "Ruote.km=far"], "which type is meant"),
        (
            ["--data", "Airport=a.csv", "--data", "Route=r.csv", "--map", "km=far"],
            "which type is meant",
        ),
        (["--data", "Airport=a.csv", "--map", "code=x", "--map", "Airport.code=y"], "twice"),
        (["--data", "Airport=a.csv", "--map", "code=nope"], 'no column "nope"'),
        (["--data", "Airprt=a.csv"], "did you mean"),
        (["--data", "a.jsonl", "--map", "code=x"], "which type is meant"),
    ],
)
def test_what_does_not_go_together_is_said(flights: Path, options: list[str], words: str) -> None:
    result = run("load", "g", *options, "--mode", "append")
    assert result.exit_code in (1, 2)
    assert words in result.stderr
    assert len(answer("commit", "list", "g")["commits"]) == 1


def test_an_export_to_csv_is_a_folder_that_loads_back(flights: Path) -> None:
    ok("load", "g", "--data", "Airport=a.csv", "--data", "Route=r.csv", "--mode", "append", *MAPS)
    told = answer("export", "g", "--format", "csv", "--output", "out")
    assert (told["rows"], told["format"]) == (3, "csv")
    done = ok("export", "g", "--format", "parquet", "--output", "out2")
    assert "Exported 3 entities to out2" in done.output
    ok("init", "h", "--schema", "s.pg")
    data = ("--data", "Airport=out/nodes/Airport/", "--data", "Route=out2/edges/Route/")
    assert answer("load", "h", *data, "--mode", "append")["total_entities"] == 3
    assert sorted(ok("export", "h").stdout.splitlines()) == sorted(
        ok("export", "g").stdout.splitlines()
    )
    result = run("export", "g", "--format", "csv")
    assert "is a folder" in result.stderr
