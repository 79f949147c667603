"""House rules that a reader would otherwise have to enforce by hand."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "omnigraph"
FILES = sorted(SRC.rglob("*.py"))
FILE_LINES_MAX = 450
ATTRIBUTES_MAX = 12
FUNCTION_LINES_MAX = 70
BANNED_NAMES = {"util", "utils", "helper", "helpers", "misc", "common", "manager", "info"}


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SRC)))
def test_files_and_functions_stay_small_and_say_what_they_are(file: Path) -> None:
    text = file.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= FILE_LINES_MAX
    assert file.stem not in BANNED_NAMES
    if text.strip() and file.name != "__init__.py":
        assert ast.get_docstring(tree), "a module opens with its purpose"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SRC)))
def test_nothing_is_left_open(file: Path) -> None:
    for number, line in enumerate(file.read_text().splitlines(), 1):
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", line), f"{file}:{number}: {line.strip()}"


def test_no_row_is_taken_by_its_offset_in_a_whole_dataset() -> None:
    """``Dataset.take`` costs milliseconds a row over a fragment with one deletion."""
    by_offset = re.compile(r"dataset\.(take|sample)\(|\bindices=")
    for file in sorted((SRC / "storage").glob("*.py")):
        assert not by_offset.search(file.read_text()), file


def test_values_are_frozen() -> None:
    """A dataclass is a value; the few mutable ones are private to their module."""
    for file in FILES:
        if "testing" in file.parts:  # Instruments record what happens: that is their purpose.
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            for decorator in node.decorator_list:
                text = ast.unparse(decorator)
                if text.startswith("dataclass"):
                    assert "frozen=True" in text, f"{file}: {node.name}"


def test_a_class_name_stands_for_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(str(file.relative_to(SRC)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(SRC)))
def test_classes_hold_few_things(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ClassDef):
            names = attributes(node)
            assert len(names) <= ATTRIBUTES_MAX, f"{node.name} has {len(names)}: {sorted(names)}"


def attributes(node: ast.ClassDef) -> set[str]:
    found = {
        part.target.id
        for part in node.body
        if isinstance(part, ast.AnnAssign)
        and isinstance(part.target, ast.Name)
        and not ast.unparse(part.annotation).startswith("ClassVar")
    }
    for part in ast.walk(node):
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                found.add(target.attr)
    return found


def test_no_place_or_index_of_one_machine_is_committed() -> None:
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    bad = re.compile(r"/(?:root|home/\w+)/|--(?:index|find)-(?:url|links)|https?://\S*/simple\b")
    for name in files:
        path = ROOT / name
        if name and path.is_file() and path.suffix in {".py", ".md", ".txt", ".toml", ".json", ""}:
            if path == Path(__file__):
                continue
            found = bad.search(path.read_text(errors="replace"))
            assert not found, f"{name}: {found[0] if found else ''}"
