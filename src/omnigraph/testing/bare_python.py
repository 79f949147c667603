"""A Python for Spark's workers that has what omnigraph needs, and not omnigraph.

It stands for a machine of a cluster: the dependencies are installed there, our code is not. In
development our code is on every path of this interpreter, so a test that wants to see it arrive
must take it away first.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection
from pathlib import Path

_HIDDEN = ("omnigraph", "_omnigraph", "__editable__", "pyspark", "py4j")
"""Ours, and Spark's: workers get Spark from the program that started them."""

_SCRIPT = """#!/bin/sh
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{site}" exec {python} -S "$@"
"""


def bare_python(folder: Path, *, without: Collection[str] = ()) -> Path:
    """Make such a Python in an empty folder and return its program.

    ``without`` hides more of what is installed, by the beginning of the file's name.
    """
    hidden = (*_HIDDEN, *without)
    site = folder / "site"
    site.mkdir(parents=True)
    for installed in (Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))):
        for entry in installed.iterdir():
            # A .pth file is a line of a path: that is how an editable install is found.
            if entry.suffix == ".pth" or entry.name.lower().startswith(hidden):
                continue
            link = site / entry.name
            if not link.exists():
                link.symlink_to(entry)
    program = folder / "python"
    program.write_text(_SCRIPT.format(site=shlex.quote(str(site)), python=sys.executable))
    program.chmod(0o755)
    return program
