"""What is installed: the wheel as `pip install .` would build it, and what it asks for."""

from __future__ import annotations

import re
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(built)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def ranges(metadata: Message) -> dict[str, Requirement]:
    return {r.name: r for r in map(Requirement, metadata.get_all("Requires-Dist", []))}


def test_the_license_is_in_the_tree_and_in_the_wheel(
    wheel: zipfile.ZipFile, metadata: Message
) -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text and "END OF TERMS AND CONDITIONS" in text
    (name,) = (n for n in wheel.namelist() if n.endswith("licenses/LICENSE"))
    assert wheel.read(name).decode() == text
    assert metadata["License-Expression"] == "Apache-2.0"


def test_the_wheel_holds_the_product_and_none_of_its_test_instruments(
    wheel: zipfile.ZipFile,
) -> None:
    names = wheel.namelist()
    assert "omnigraph/py.typed" in names
    assert not [n for n in names if n.startswith("omnigraph/testing")]
    product = {
        str(f.relative_to(ROOT / "src"))
        for f in (ROOT / "src" / "omnigraph").rglob("*.py")
        if "testing" not in f.parts
    }
    assert product <= set(names)


def test_an_index_can_sort_the_package(metadata: Message) -> None:
    classifiers = metadata.get_all("Classifier", [])
    assert "Typing :: Typed" in classifiers
    assert "Topic :: Database :: Database Engines/Servers" in classifiers
    versions = {c.rpartition(" ")[2] for c in classifiers if re.search(r"Python :: 3\.\d+$", c)}
    assert {"3.11", "3.12", "3.13"} <= versions
    assert "graph" in metadata["Keywords"]


def test_dependencies_leave_room_for_others(metadata: Message) -> None:
    needed = ranges(metadata)
    assert needed["pandas"].specifier.contains("3.1.1")
    assert needed["pandas"].specifier.contains("2.2.3")
    for release in ("18.0.0", "21.0.0", "26.0.1"):
        assert needed["pyarrow"].specifier.contains(release), release


def test_pandas_asked_for_is_the_pandas_of_spark() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    (alone,) = (d for d in extras["pandas"] if d.startswith("pandas"))
    assert alone in extras["spark"]


def test_the_page_on_platforms_tells_the_ranges(metadata: Message) -> None:
    text = (ROOT / "docs/guide/platforms.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| ([a-z]+) \| ([0-9.]+)", text, re.M))
    needed = ranges(metadata)
    assert set(told) == {"pylance", "pyarrow", "numpy", "pandas", "botocore", "click", "pyspark"}
    for name, lowest in told.items():
        assert f">={lowest}" in str(needed[name].specifier), name
    assert f"| Python | {metadata['Requires-Python'].removeprefix('>=')} and newer" in text


def test_the_changelog_tells_of_the_release() -> None:
    from omnigraph.version import __version__

    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(__version__)}\b", text, re.M)
    assert re.search(r"^## Unreleased$", text, re.M)
