"""The layers of ARCHITECTURE.md, and the two doors to foreign engines, hold in every file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "omnigraph"

# From the ground up. A package may import from itself and from what stands before it.
LAYERS = (
    ("errors", "clock", "deadline", "version", "choices", "logs"),
    ("ids", "failpoints", "lang", "text_file", "output_file", "interrupts", "work_time", "arrow"),
    ("show",),
    ("schema",),
    ("storage", "tabular"),
    ("manifest",),
    ("rules", "housekeeping"),
    ("write",),
    ("input", "results"),
    ("query", "branch", "infer"),
    ("upkeep",),
    ("spark",),
    ("api",),
    ("aio",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
# lance and obstore have one importer, so an upgrade or a replacement has one place.
FOREIGN = {
    "lance": "storage",
    "lance_namespace": "storage",
    "obstore": "storage",
    "botocore": "storage",
    "pyspark": "spark",
}
FILES = sorted(SRC.rglob("*.py"))


def package_of(file: Path) -> str:
    part = file.relative_to(SRC).parts[0]
    return part.removesuffix(".py")


def imports(file: Path) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.lineno, node.module))
            if node.module == "omnigraph":
                found += [(node.lineno, f"omnigraph.{a.name}") for a in node.names]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SRC)))
def test_imports_point_down(file: Path) -> None:
    own = package_of(file)
    if own in ("testing", "__init__"):  # Test instruments and the public surface see everything.
        return
    assert own in RANK, f"{own} has no layer yet: decide where it stands"
    for line, module in imports(file):
        if not module.startswith("omnigraph."):
            continue
        other = module.split(".")[1]
        assert other != "testing", f"{file}:{line}: the product never imports its test instruments"
        assert RANK[other] < RANK[own] or other == own, f"{file}:{line}: {own} imports {other}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SRC)))
def test_foreign_engines_have_one_importer(file: Path) -> None:
    own = package_of(file)
    for line, module in imports(file):
        owner = FOREIGN.get(module.split(".")[0])
        if owner is not None and own != "testing":
            assert own == owner, f"{file}:{line}: only {owner} may import {module}"


def test_the_page_for_contributors_has_these_layers_in_this_order() -> None:
    page = (SRC.parents[1] / "CONTRIBUTING.md").read_text()
    rows = page[page.index("| Layer |") :].partition("\n\n")[0].splitlines()[2:]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(RANK)
    assert [RANK[name] for name in named] == sorted(RANK.values())


def test_spark_holds_what_imports_pyspark() -> None:
    folder = SRC / "spark"
    without = {
        str(file.relative_to(folder))
        for file in folder.rglob("*.py")
        if file.name != "__init__.py" and not any(m.startswith("pyspark") for _, m in imports(file))
    }
    assert not without, "these know no engine: where do they belong?"


LOADS_LOCALLY = """
import sys, omnigraph
with omnigraph.init(sys.argv[1], "node A { k: String @key }") as graph:
    graph.load([{"type": "A", "data": {"k": "a"}}])
    graph.upkeep.cleanup(keep=1, engine="local")
print([name for name in sys.modules if name.startswith(("omnigraph.spark", "pyspark"))])
"""


def test_nothing_local_enters_through_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADS_LOCALLY, str(tmp_path / "graph")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_no_module_imports_itself_through_others() -> None:
    """Imports inside of functions count: they hide a cycle, they do not remove it."""
    modules = {module_name(file): file for file in FILES}
    order: list[str] = []
    open_: list[str] = []

    def visit(name: str) -> None:
        assert name not in open_, " -> ".join([*open_[open_.index(name) :], name])
        if name in order:
            return
        open_.append(name)
        for other in imported_modules(modules[name], modules):
            visit(other)
        order.append(open_.pop())

    for name in modules:
        visit(name)


def module_name(file: Path) -> str:
    parts = file.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(file: Path, modules: dict[str, Path]) -> set[str]:
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name in modules}
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            inner = {f"{node.module}.{a.name}" for a in node.names}
            found |= inner & modules.keys()
            if inner - modules.keys():
                found.add(node.module)
    return found - {module_name(file)}
