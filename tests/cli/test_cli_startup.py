"""A command leaves pandas alone, and pyarrow knows it as soon as somebody uses it."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("pandas")

_STARTED = """
import sys
from omnigraph.cli.startup import defer_pandas
defer_pandas()
import pyarrow as pa
import pyarrow.dataset
assert pa.array([1, None]).null_count == 1
assert "pandas" not in sys.modules
"""


def said(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _STARTED + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_pyarrow_takes_values_of_pandas_once_it_is_imported() -> None:
    code = (
        "import pandas as pd\n"
        "column = pa.array(pd.Series([1.0, float('nan')]))\n"
        "print(column.null_count, pa.table(pd.DataFrame({'a': [1, 2]})).num_rows)\n"
    )
    assert said(code) == "1 2"


def test_pyarrow_imports_pandas_when_it_has_to() -> None:
    code = (
        "frame = pa.table({'a': [1, 2]}).to_pandas()\n"
        "print(type(frame).__name__, pa.table(frame).num_rows)\n"
    )
    assert said(code) == "DataFrame 2"


def test_the_packages_look_as_if_nobody_had_waited_for_them() -> None:
    code = (
        "import pandas, importlib.resources\n"
        "for package in (pandas, pa):\n"
        "    assert package.__loader__ is package.__spec__.loader\n"
        "    assert importlib.resources.files(package).joinpath('__init__.py').is_file()\n"
        "print([f for f in sys.meta_path if 'omnigraph' in type(f).__module__])\n"
    )
    assert said(code) == "[]"


def test_a_program_that_has_pandas_is_left_alone() -> None:
    code = (
        "import sys, pandas\n"
        "from omnigraph.cli.startup import defer_pandas\n"
        "before = list(sys.meta_path)\n"
        "defer_pandas()\n"
        "assert sys.meta_path == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
