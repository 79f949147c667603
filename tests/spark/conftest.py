"""What the tests of the pipeline share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def where_omnigraph_is() -> Callable[[Any], set[str]]:
    """Ask the workers of a session where they would import omnigraph from."""

    def ask(spark: Any) -> set[str]:
        def look(batches):  # A function in a function: it is sent by its code, not by its name.
            import pyarrow as pa

            for _ in batches:
                pass
            try:
                import omnigraph

                place = omnigraph.__file__
            except ImportError:
                place = "nowhere"
            yield pa.RecordBatch.from_pydict({"place": [place]})

        # A worker process that looked once in vain must look again.
        rows = spark.range(0, 4, 1, 4).mapInArrow(look, "place string").collect()
        return {row["place"] for row in rows}

    return ask


@pytest.fixture
def without_java(tmp_path: Path) -> dict[str, str]:
    """An environment in which every program of this machine is found, except Java."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in map(Path, os.environ["PATH"].split(os.pathsep)):
        for program in folder.iterdir() if folder.is_dir() else ():
            link = tools / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    kept = {n: v for n, v in os.environ.items() if n not in ("JAVA_HOME", "PYTHONPATH")}
    return kept | {"PATH": str(tools)}
