"""`omnigraph schema infer`: its text is a schema, and the command in it loads the files."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from cli_support import answer, ok, run

AIRPORTS = "IATA,name\nTRN,Turin\nCPH,Copenhagen\n"
ROUTES = "from airport,to airport,km\nTRN,CPH,1200\n"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "air ports.csv").write_text(AIRPORTS)
    (tmp_path / "routes.csv").write_text(ROUTES)
    return tmp_path


def test_the_commands_in_its_comments_run(data: Path) -> None:
    text = ok("schema", "infer", "Airport=air ports.csv", "routes.csv").stdout
    (data / "this.pg").write_text(text)
    ok("schema", "check", "this.pg")
    comments = [
        line.removeprefix("//").strip()
        for line in text.splitlines()[2:]
        if line.startswith("//   ")
    ]
    commands = shlex.split(" ".join(line.removesuffix("\\") for line in comments))
    cut = commands.index("omnigraph", 1)
    ok(*commands[1:cut])
    assert "2 Airport, 1 Route" in ok(*commands[cut + 1 :]).stdout


def test_json_has_the_same(data: Path) -> None:
    told = answer("schema", "infer", "Airport=air ports.csv", "routes.csv")
    assert [(t["name"], t["kind"], t["rows"]) for t in told["types"]] == [
        ("Airport", "node", 2),
        ("Route", "edge", 1),
    ]
    assert told["mapping"]["Route"] == {"src": "from airport", "dst": "to airport", "km": "km"}
    assert told["load"][:2] == ["load", "./graph"]


def test_what_is_wrong_is_said(data: Path) -> None:
    for args, words in (
        (("routes.csv", "routes.csv"), "two tables would be the type Route"),
        (("missing.csv",), "missing.csv"),
    ):
        result = run("schema", "infer", *args)
        assert result.exit_code in (1, 2)
        assert words in result.stderr
