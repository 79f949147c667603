"""The documentation is a test: what it shows runs, what it names exists, its tables are complete."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import (
    ROOT,
    anchors,
    assert_shown,
    blocks,
    code_of,
    commands,
    links,
    name_of,
    pages,
    run_page,
    table_rows,
)

import omnigraph
from omnigraph.cli.failure import EXIT_CODES
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint
from omnigraph.manifest import codec
from omnigraph.query.check.expressions import FUNCTIONS
from omnigraph.query.codes import QueryCode
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.query.parse.lexical import BODY_WORDS, COMPARISON_WORDS, QUERY_ANNOTATIONS
from omnigraph.schema.codes import HintCode, SchemaCode
from omnigraph.schema.migrate.steps import LintCode
from omnigraph.schema.words import ANNOTATIONS, TYPE_WORDS

GUIDE = ROOT / "docs" / "guide"
DEV = ROOT / "docs" / "dev"
SPARK = GUIDE / "spark.md"
EXECUTED = [ROOT / "README.md", *(p for p in sorted(GUIDE.glob("*.md")) if p != SPARK)]
FOREIGN = re.compile(r"/(?:home|Users|tmp|work|root)/\w")


@pytest.mark.parametrize("page", EXECUTED, ids=name_of)
def test_everything_a_page_shows_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("OMNIGRAPH_STORE", "OMNIGRAPH_ACTOR"):
        monkeypatch.delenv(name, raising=False)
    assert run_page(page, tmp_path) > 0


def test_all_pages_run_one_after_another_in_one_folder_on_the_base_install(tmp_path: Path) -> None:
    """As a reader goes through them: no page takes a file or a graph of another."""
    first = [ROOT / "README.md", GUIDE / "getting-started.md"]
    pages_in_order = [*first, *(p for p in EXECUTED if p not in first)]
    script = Path(__file__).with_name("base_install.py")
    env = {k: v for k, v in os.environ.items() if not k.startswith("OMNIGRAPH_")}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), env.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script), str(tmp_path), *map(str, pages_in_order)],
        capture_output=True,
        text=True,
        env=env,
    )
    assert (done.returncode, done.stdout) == (0, f"{len(pages_in_order)} pages\n"), done.stderr


@pytest.mark.parametrize("page", [*EXECUTED, SPARK], ids=name_of)
def test_a_page_says_in_its_text_how_its_files_are_called(page: Path) -> None:
    """What stands behind a fence is not shown to readers."""
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        if len(block.words) > 1:
            above = "\n".join(text.splitlines()[: block.line - 1]).rstrip().split("\n\n")[-1]
            assert f"`{block.words[1]}`" in above, f"{name_of(page)}:{block.line}"


def test_no_two_pages_write_the_same_file() -> None:
    written = {(b.words[1], p) for p in [*EXECUTED, SPARK] for b in blocks(p) if len(b.words) > 1}
    names = [name for name, _ in written]
    assert sorted(n for n in set(names) if names.count(n) > 1) == []


def test_everything_the_page_about_spark_shows_runs(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the session of the test process: it is the one that the program has already."""
    test_everything_a_page_shows_runs(SPARK, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name_of(page)}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{name_of(page)}: {link}"


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_page_names_a_place_on_somebodys_machine(page: Path) -> None:
    assert not FOREIGN.search(page.read_text(encoding="utf-8")), name_of(page)


def test_the_readme_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in text
    assert "make test" in text


def test_every_error_kind_is_explained_with_its_exit_code() -> None:
    told = {}
    for row in table_rows(GUIDE / "errors.md"):
        if len(row) == 4 and row[2].isdigit():
            told |= {kind: (code_of(row[0])[0], int(row[2])) for kind in code_of(row[1])}
    assert set(told) == {str(kind) for kind in ErrorKind}
    for kind, (error_class, exit_code) in told.items():
        assert exit_code == EXIT_CODES[ErrorKind(kind)], kind
        assert issubclass(getattr(omnigraph, error_class), omnigraph.OmnigraphError), kind
    classes = {error_class for error_class, _ in told.values()}
    exported = {name for name in omnigraph.__all__ if name.endswith("Error")}
    assert classes == exported - {"OmnigraphError"}


def test_every_diagnostic_code_is_explained() -> None:
    rows = table_rows(GUIDE / "schema.md")
    told = {code_of(r[0])[0]: r[1] for r in rows if re.match(r"`S\d{3}`", r[0])}
    assert told == {str(code): code.explanation for code in SchemaCode}


def test_every_code_of_a_schema_change_is_explained() -> None:
    rows = table_rows(GUIDE / "schema-evolution.md")
    told = {code_of(r[0])[0]: r[1] for r in rows if re.match(r"`(?:OG-|M)", r[0])}
    assert told == {str(code): code.explanation for code in (*LintCode, *HintCode)}


def test_every_diagnostic_code_of_queries_is_explained() -> None:
    rows = table_rows(GUIDE / "query-language.md")
    told = {code_of(r[0])[0]: r[1] for r in rows if re.match(r"`[QL]\d{3}`", r[0])}
    assert told == {str(code): code.explanation for code in (*SyntaxCode, *QueryCode)}


def test_every_word_of_the_query_language_is_in_the_grammar_or_a_table() -> None:
    page = GUIDE / "query-language.md"
    text = page.read_text(encoding="utf-8")
    for word in (*BODY_WORDS, *COMPARISON_WORDS, *QUERY_ANNOTATIONS):
        assert f'"{word}"' in text or f'"@{word}"' in text, word
    cells = [code for row in table_rows(page) for code in code_of(row[0])]
    for name in FUNCTIONS:
        assert any(cell.startswith(f"{name}(") for cell in cells) or f"`{name}`" in text, name


def test_every_word_of_the_schema_language_is_in_a_table() -> None:
    cells = [code for row in table_rows(GUIDE / "schema.md") for code in code_of(row[0])]
    for word in TYPE_WORDS:
        assert any(re.match(rf"{word}\b", cell) for cell in cells), word
    for word in ANNOTATIONS:
        assert any(re.match(rf"@{word}\b", cell) for cell in cells), word


def test_the_format_page_names_every_column_of_the_manifest() -> None:
    told = [code for row in table_rows(ROOT / "docs" / "format.md") for code in code_of(row[0])]
    for name in codec.to_table(_genesis()).column_names:
        assert name in told, name


def _objects_told() -> list[re.Pattern[str]]:
    return [
        re.compile(re.sub(r"<[^>]+>", "[^/]+", re.escape(code)))
        for row in table_rows(ROOT / "docs" / "format.md")
        for code in code_of(row[0])
        if "/" in code
    ]


def test_the_format_page_names_every_object_of_a_kept_graph() -> None:
    for graph in (ROOT / "tests" / "fixtures").glob("*/graph"):
        files = [p.relative_to(graph).as_posix() for p in graph.rglob("*") if p.is_file()]
        assert files
        for name in files:
            assert any(p.fullmatch(name) for p in _objects_told()), name


def test_the_format_page_names_every_object_of_a_graph(tmp_path: Path) -> None:
    patterns = _objects_told()
    with omnigraph.init(tmp_path / "g", "node A { k: String @key  raw: Blob? }") as graph:
        graph.load([{"type": "A", "data": {"k": "a", "raw": b"x" * 100_000}}])
        graph.load([{"type": "A", "data": {"k": "a", "raw": b"y"}}], mode="merge")
        graph.branches.create("a/b", description="text")
        graph.load([{"type": "A", "data": {"k": "b"}}], branch="a/b")
        graph.branches.rename("a/b", "c")
        graph.tags.create("v/1", "c")
    files = [p for p in (tmp_path / "g").rglob("*") if p.is_file()]
    assert files
    for file in files:
        name = file.relative_to(tmp_path / "g").as_posix()
        assert any(p.fullmatch(name) for p in patterns), name


def test_the_write_path_page_names_every_failpoint() -> None:
    text = (DEV / "write-path.md").read_text(encoding="utf-8")
    for point in FailPoint:
        assert f"`{point}`" in text, point


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_tests_that_a_page_refers_to_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path, name in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text):
        assert (ROOT / path).is_file(), f"{name_of(page)}: {path}"
        if name:
            source = (ROOT / path).read_text(encoding="utf-8")
            assert f"def {name}(" in source, f"{name_of(page)}: {path}::{name}"


def test_every_recovery_scenario_has_its_test_and_every_such_test_its_scenario() -> None:
    page = DEV / "recovery-scenarios.md"
    groups = re.findall(r"^## (\d+)\. ", page.read_text(encoding="utf-8"), re.M)
    assert groups == [str(number) for number in range(1, 11)]
    named: set[str] = set()
    for scenario, holds, tests in (row for row in table_rows(page) if len(row) == 3):
        if scenario != "Scenario" and set(scenario) != {"-"}:
            found = re.findall(r"`(tests/[\w/]+\.py::\w+)`", tests)
            assert holds, scenario
            assert found, scenario
            named.update(found)
    modules = [*(ROOT / "tests" / "flow").glob("test_scenarios_*.py")]
    for file in [*modules, ROOT / "tests" / "crash" / "test_recovery_kill.py"]:
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M):
            assert f"{file.relative_to(ROOT)}::{name}" in named, name


def test_budgets_are_the_ones_that_the_cost_tests_hold() -> None:
    held = {
        statement.targets[0].id: ast.literal_eval(statement.value)
        for file in sorted((ROOT / "tests" / "cost").glob("test_*.py"))
        for statement in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and statement.targets[0].id.endswith("_MAX")
    }
    told = {
        constant: int(re.findall(r"\d+", row[1])[0])
        for row in table_rows(DEV / "cost-budgets.md")
        for constant in code_of(row[-1])
        if constant.endswith("_MAX")
    }
    assert told == held


def test_every_folder_of_tests_is_described() -> None:
    told = {code for row in table_rows(DEV / "testing.md") for code in code_of(row[0])}
    folders = {p.name for p in (ROOT / "tests").iterdir() if any(p.rglob("test_*.py"))}
    assert {f"tests/{name}" for name in folders} <= told


def test_the_quickstart_runs(tmp_path: Path) -> None:
    source = Path(omnigraph.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "quickstart.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(source), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


def test_the_wildcard_matches_text_and_lines() -> None:
    assert_shown("a 12 b\nx\ny\nend\n", "a … b\n…\nend", "here")
    with pytest.raises(AssertionError):
        assert_shown("a\nb\n", "a …\n", "here")


def test_console_blocks_are_split_into_commands() -> None:
    found = [c for b in blocks(ROOT / "README.md") if b.language == "console" for c in commands(b)]
    assert found
    assert all(command for command, _ in found)


def _genesis() -> codec.Snapshot:
    commit = codec.GraphCommit(
        id="0" * 26,
        parent_id=None,
        merged_parent_id=None,
        branch="main",
        place=codec.ManifestPlace(path="__manifest", version=1),
        kind="init",
        actor=None,
        message=None,
        created_at_us=0,
        changes={},
    )
    return codec.Snapshot(
        graph_id="1" * 26,
        branch="main",
        version=1,
        schema_hash="2" * 64,
        pins={},
        commits=(commit,),
    )
