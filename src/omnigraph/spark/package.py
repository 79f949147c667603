"""Omnigraph's own code on Spark's workers, which need not have it installed.

    files of the package ─▶ one zip ─▶ spark.addArtifacts ─▶ `import omnigraph` in a task

The zip is made of the installed package, byte for byte the same for the same code, so Spark
recognises what it has. What omnigraph depends on cannot travel this way (it is compiled for a
platform): a first small task looks whether the workers have it and says what is missing.

A function must be shipped before a DataFrame that uses it is made: Spark notes at that moment which
archives a task needs.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import threading
import zipfile
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from omnigraph.errors import UsageError
from omnigraph.spark.errors import translated
from omnigraph.spark.jvm import scratch_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NEEDED = {
    "lance": "pylance",
    "numpy": "numpy",
    "obstore": "obstore",
    "orjson": "orjson",
    "pyarrow": "pyarrow",
}
"""What tasks import: the module, and the package that brings it."""
_SAME_MAJOR = ("pylance", "pyarrow")
"""Their files and messages pass between this process and the workers."""

_EPOCH = (1980, 1, 1, 0, 0, 0)
_lock = threading.Lock()
_shipped: WeakSet[Any] = WeakSet()


def ship(spark: SparkSession, *, check: bool = True) -> None:
    """Send the package to the session's workers, unless that was done already.

    With ``check`` a first task looks for what the package needs there; UsageError says what lacks.
    """
    with _lock:
        if spark in _shipped:
            return
        with translated("sending omnigraph to the workers"):
            before = list(sys.path)
            spark.addArtifacts(str(archive()), pyfile=True)
            # A classic session also puts the archive before everything else on this process's own
            # path, where it would hide the code that runs.
            sys.path[:] = before
        if check:
            _check(spark)
        _shipped.add(spark)


@cache
def archive() -> Path:
    """The package as a zip file that Python can import from, named after its content."""
    members = dict(sorted(_members()))
    digest = hashlib.sha256()
    for name, content in members.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    path = scratch_folder() / f"omnigraph-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
        for name, content in members.items():
            # Without the time of day: the same code gives the same bytes.
            zipped.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return path


def _members() -> Iterator[tuple[str, bytes]]:
    yield from _tree(files("omnigraph"), "omnigraph")
    try:
        release = version("omnigraph")
    except PackageNotFoundError:  # Running from a source tree that was never installed.
        return
    # So that the workers know the release, too.
    metadata = f"Metadata-Version: 2.1\nName: omnigraph\nVersion: {release}\n"
    yield f"omnigraph-{release}.dist-info/METADATA", metadata.encode()


def _tree(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.startswith(("__pycache__", ".")):
            continue
        if entry.is_dir():
            yield from _tree(entry, f"{name}/{entry.name}")
        elif not entry.name.endswith((".pyc", ".pyo")):
            yield f"{name}/{entry.name}", entry.read_bytes()


def _check(spark: SparkSession) -> None:
    with translated("asking a worker what is installed there"):
        rows = spark.range(0, 1, 1, 1).mapInArrow(report_environment, "report string").collect()
    found = json.loads(rows[0]["report"])
    where = f"Spark's worker on {found['host']} ({found['python']})"
    missing = [package for package in NEEDED.values() if package not in found["versions"]]
    if missing:
        raise UsageError(
            f"{where} lacks {', '.join(missing)}",
            hint=f"there: pip install {' '.join(missing)}; or set PYSPARK_PYTHON to a Python that "
            "has them",
        )
    for package in _SAME_MAJOR:
        here, there = version(package), found["versions"][package]
        if here.split(".")[0] != there.split(".")[0]:
            raise UsageError(
                f"{where} has {package} {there}, this program has {here}",
                hint=f"there: pip install {package}=={here}",
            )


def report_environment(batches: Iterator[Any]) -> Iterator[Any]:
    """A task: what this worker has of what omnigraph needs, as JSON."""
    import pyarrow as pa

    for _ in batches:
        pass
    versions: dict[str, str] = {}
    for module, package in NEEDED.items():
        if find_spec(module) is not None:
            try:
                versions[package] = version(package)
            except PackageNotFoundError:
                versions[package] = "0"
    report = {
        "host": platform.node(),
        "python": f"{sys.executable}, Python {platform.python_version()}",
        "omnigraph": str(files("omnigraph")),
        "versions": versions,
    }
    yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})
