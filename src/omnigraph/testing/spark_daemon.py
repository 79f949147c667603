"""What Spark forks its Python workers from, with everything imported that they need.

Spark starts a new worker after each one whose task failed, and for each step of planning a query on
a Python source. Importing Arrow, Lance and omnigraph there was half of the processor time of the
tests on Spark. Here they are imported before the fork, and used only after it.

It runs where the tests' Pythons are asked for Spark's own daemon, also in those that lack omnigraph
or more: what is not installed is left for a worker to miss.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_IMPORTED = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "lance",
    "pyspark.worker",
    "pyspark.sql.connect.proto",
    "pyspark.sql.pandas.serializers",
    "omnigraph.spark.datasource",
    "omnigraph.spark.export",
    "omnigraph.spark.load",
    "omnigraph.spark.query",
)

ASKED = """
if [ "$1 $2" = "-m pyspark.daemon" ]; then shift 2; set -- -m {module} "$@"; fi
"""
"""What a Python of the tests (a shell script) does with the request for Spark's daemon."""


def forking_python(folder: Path) -> Path:
    """This Python, as a program that runs the daemon below instead of Spark's."""
    program = folder / "python"
    folder.mkdir(parents=True)
    asked = ASKED.format(module="omnigraph.testing.spark_daemon")
    program.write_text(f'#!/bin/sh{asked}exec {shlex.quote(sys.executable)} "$@"\n')
    program.chmod(0o755)
    return program


def _run() -> None:
    for name in _IMPORTED:
        with suppress(ImportError):
            import_module(name)
    import_module("pyspark.daemon").manager()


if __name__ == "__main__":
    _run()
