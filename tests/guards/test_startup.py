"""What a command imports: most of the time of a short one goes there (benchmarks/startup.py).

Every command runs in a process of its own and tells which modules it ended with. The bounds leave
some room for other releases of Python and of packages. Whoever passes one has usually added an
import at the top of a module that every command imports: let the function import it that needs it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
SCHEMA = "node Person { name: String @key age: I32? }\n"
ROW = '{"type": "Person", "data": {"name": "a", "age": 1}}\n'

_TELL = """
import atexit, json, os, sys
told = sys.argv.pop(1)
sys.argv[0] = "omnigraph"
atexit.register(lambda: open(told, "w").write(json.dumps(sorted(sys.modules))))
from omnigraph.cli.entry import main
main()
"""

UNUSED = ("pandas", "lance_namespace", "lance_namespace_urllib3_client", "pydantic", "pyspark")
"""What no command on this machine uses, whatever is installed."""
LARGE = ("lance", "pyarrow", "numpy", "obstore", "importlib.metadata")
"""What a command without a graph does not need."""

# Measured with Python 3.11: 174, 181, 181; 480, 487, 549, 598, 660, 572.
WITHOUT_GRAPH = {
    "--version": 190,
    "--help": 197,
    "query --help": 197,
}
WITH_GRAPH = {
    "branch list {graph}": 515,
    "commit list {graph}": 520,
    "status {graph}": 585,
    "query {graph} -e {query}": 635,
    "mutate {graph} -e {mutation}": 700,
    "load {graph} --data {rows} --mode merge": 610,
}
WORDS = {
    "query": "match { $p: Person } return { $p.name }",
    "mutation": 'update Person set { age: 2 } where name = "a"',
}


def imported(told: Path, *args: str, env: Mapping[str, str] | None = None) -> list[str]:
    """The modules that a process has imported when a command ends."""
    path = os.pathsep.join([str(SRC), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", _TELL, str(told), *args],
        env={**os.environ, "PYTHONPATH": path, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(told.read_text())


def check(modules: list[str], most: int, unwanted: tuple[str, ...]) -> None:
    found = [name for name in unwanted if name in modules]
    assert not found, f"imported and not used: {', '.join(found)}"
    own = sorted(name for name in modules if name.startswith("omnigraph"))
    assert len(modules) <= most, f"{len(modules)} modules, of ours: {' '.join(own)}"


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A graph of one row, and what commands say about it."""
    place = tmp_path_factory.mktemp("startup")
    (place / "schema.pg").write_text(SCHEMA)
    (place / "rows.jsonl").write_text(ROW)
    found = {**WORDS, "graph": str(place / "graph"), "rows": str(place / "rows.jsonl")}
    told = place / "modules"
    imported(told, "init", found["graph"], "--schema", str(place / "schema.pg"))
    imported(told, "load", found["graph"], "--data", found["rows"], "--mode", "append")
    return found


@pytest.mark.parametrize("line", WITHOUT_GRAPH)
def test_without_a_graph_neither_lance_nor_arrow(line: str, tmp_path: Path) -> None:
    modules = imported(tmp_path / "modules", *line.split())
    check(modules, WITHOUT_GRAPH[line], UNUSED + LARGE)


def test_completion_imports_neither_lance_nor_arrow(tmp_path: Path) -> None:
    env = {
        "_OMNIGRAPH_COMPLETE": "bash_complete",
        "COMP_WORDS": "omnigraph branch l",
        "COMP_CWORD": "2",
    }
    modules = imported(tmp_path / "modules", env=env)
    assert "click.shell_completion" in modules
    check(modules, 190, UNUSED + LARGE)


@pytest.mark.parametrize("line", WITH_GRAPH)
def test_a_command_imports_what_it_uses(line: str, words: dict[str, str], tmp_path: Path) -> None:
    args = [part.format_map(words) for part in line.split()]
    check(imported(tmp_path / "modules", *args), WITH_GRAPH[line], UNUSED)


def test_reading_does_not_import_the_write_machine(words: dict[str, str], tmp_path: Path) -> None:
    for line in ("branch list {graph}", "query {graph} -e {query}"):
        args = [part.format_map(words) for part in line.split()]
        modules = imported(tmp_path / "modules", *args)
        for name in ("write.publish", "branch.merge.run", "upkeep.check", "schema.parser"):
            assert f"omnigraph.{name}" not in modules, line
