"""One private folder per process for what Spark needs as files: the shim, the archive, the log.

Made on first use, readable by this user alone, removed when the process ends. Nothing in it is
shared between processes, so nothing in it can be stale or another program's.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path


@cache
def scratch_folder() -> Path:
    """The folder; the same one for the whole life of the process."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    atexit.register(_remove, folder, os.getpid())
    return folder


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # A forked child leaves its parent's files alone.
        shutil.rmtree(folder, ignore_errors=True)
