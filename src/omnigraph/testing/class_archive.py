"""The classes of Spark in one file, which every JVM of the tests maps instead of loading them.

A JVM that runs Spark spends more than half of its processor time up to the first answer on reading
and checking classes, and the tests start dozens. A small load shows one JVM which classes those
are; it writes them into an archive when it ends (Java's class data sharing).

An archive is good for one Java and one set of jars. Java itself looks at that: what is missing or
does not fit is not used, without a word.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from omnigraph.errors import StorageError
from omnigraph.spark.jvm import find_java

SHORT_LIVED = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options of a JVM that lives for minutes: a simpler collector and compiler are up sooner."""

_QUIET = "-Xlog:disable"
_TRAINING_MAX_S = 300
_TRAINING = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import omnigraph

folder = Path(sys.argv[1])
source = folder / "in.jsonl"
source.write_text('{"type": "P", "data": {"name": "a"}}\\n{"edge": "E", "from": "a", "to": "a"}\\n')
session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = session.config("spark.sql.shuffle.partitions", "4").getOrCreate()
schema = "node P { name: String @key }\\nedge E: P -> P"
with omnigraph.init(folder / "graph", schema) as graph:
    for mode in ("append", "merge"):
        graph.load(source, mode=mode, engine="spark", spark=spark)
spark.stop()
"""


def options(archive: Path) -> str:
    """What a JVM is started with to use an archive, which may be missing or another Java's."""
    return f"-XX:SharedArchiveFile={archive} {_QUIET}"


def archive_in(folder: Path) -> Path:
    """Where the archive for the Java and the Spark of this environment lies, or would lie."""
    spark = find_spec("pyspark")
    java = shutil.which("java") or ""
    key = (os.environ.get("JAVA_HOME"), os.path.realpath(java), spark and spark.origin)
    return folder / f"spark-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.jsa"


def make_archive(archive: Path) -> None:
    """Make it if it is missing; where Java cannot, it stays missing and all goes on without."""
    home = find_java().home
    if archive.exists() or home is None or not (home / "lib/server/classes.jsa").exists():
        return  # The archive adds to one that comes with most Javas.
    archive.parent.mkdir(parents=True, exist_ok=True)
    partial = archive.with_suffix(f".{os.getpid()}")
    more = f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={partial} {_QUIET}"
    with tempfile.TemporaryDirectory() as scratch:
        # Its output is read to the end, which is when the JVM has written the archive, too.
        done = subprocess.run(
            [sys.executable, "-c", _TRAINING, scratch],
            env=os.environ
            | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_SUBMIT_OPTS": more}
            | {"PYSPARK_PYTHON": sys.executable},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TRAINING_MAX_S,
            check=False,
        )
    if done.returncode != 0:
        partial.unlink(missing_ok=True)
        raise StorageError(f"Spark did not show its classes:\n{done.stdout.decode()}")
    if partial.exists():
        partial.rename(archive)
