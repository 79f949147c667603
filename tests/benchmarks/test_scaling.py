"""The benchmark of growth runs through every part. Its times are not looked at."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_every_dimension_is_measured() -> None:
    done = subprocess.run(
        [sys.executable, FOLDER / "scaling.py", "--quick"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    titles = [line for line in done.stdout.splitlines() if line and not line.startswith(" ")]
    assert [title.split(",")[0] for title in titles] == [
        "Nodes",
        "Commits",
        "Types with rows",
        "Branches",
        "Threads that write single edges through one handle",
        "Bytes on disk for each node and edge",
    ]
