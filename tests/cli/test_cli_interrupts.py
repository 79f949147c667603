"""Ctrl-C at every moment: before anything is loaded, while a write runs, after the answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from cli_support import SCHEMA, answer, commit_count, environment, ok, process, run

import omnigraph
from omnigraph.failpoints import FailPoint, armed
from omnigraph.manifest.store import ManifestStore
from omnigraph.storage.strict import LostRaceError

WRITING = "interrupted; nothing was published"
CREATING = "interrupted; a graph is created completely or not at all"
PORT = '{"type":"Port","data":{"code":"X","name":"p","berths":1}}'


def _interrupt(*args: object, **kwargs: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_reading(graph: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    monkeypatch.setattr("omnigraph.api.opening.open", _interrupt)
    said = run("snapshot", graph, *flags)
    assert (said.exit_code, said.stderr) == (130, "interrupted\n")
    if flags:
        assert json.loads(said.stdout) == {"error": "interrupted", "code": "interrupted"}
    else:
        assert said.stdout == ""


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_writing(graph: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    monkeypatch.setattr("omnigraph.api.graph.Graph.load", _interrupt)
    said = run("load", graph, "--data", "-", "--mode", "append", *flags, stdin=PORT)
    assert (said.exit_code, said.stderr) == (130, WRITING + "\n")
    if flags:
        told = json.loads(said.stdout)
        assert (told["error"], told["code"]) == ("interrupted", "interrupted")
        assert told["hint"] == "nothing was published"


def test_creating(tmp_path: Path, schema_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.api.opening.init", _interrupt)
    said = run("init", tmp_path / "g", "--schema", schema_file)
    assert (said.exit_code, said.stderr) == (130, CREATING + "\n")


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_after_the_commit_it_is_named(
    graph: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    output = "JsonOutput" if flags else "TextOutput"
    with monkeypatch.context() as patched:
        patched.setattr(f"omnigraph.cli.output.{output}.show", _interrupt)
        said = run("load", graph, "--data", "-", "--mode", "append", *flags, stdin=PORT)
    head = answer("snapshot", graph)["graph_commit_id"]
    assert (said.exit_code, said.stderr) == (130, f"interrupted; commit {head} was published\n")
    if flags:
        assert json.loads(said.stdout)["published_commit_id"] == head


@pytest.fixture
def interruptible() -> Generator[None]:
    """Interrupts are raised, also where they are ignored from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _strike() -> None:
    signal.raise_signal(signal.SIGINT)


def _commands(folder: Path) -> dict[str, tuple[object, ...]]:
    graph = folder / "graph"
    more = folder / "more.pg"
    more.write_text(SCHEMA + "node Extra { k: String @key }\n")
    return {
        "load": ("load", graph, "--data", "-", "--mode", "append"),
        "mutate": ("mutate", graph, "-e", 'update Port set { berths: 3 } where code = "AAR"'),
        "merge": ("branch", "merge", "side", graph),
        "schema apply": ("schema", "apply", graph, "--schema", more),
        "index build": ("index", "build", graph),
    }


_WRITES = ("load", "mutate", "merge", "schema apply", "index build")


@pytest.mark.parametrize(
    ("name", "point", "published"),
    [
        *((name, FailPoint.WRITE_INTENT_WRITTEN, False) for name in _WRITES),
        *((name, FailPoint.STAGE_AFTER_FILES, False) for name in _WRITES[:2]),
        *((name, FailPoint.PUBLISH_BEFORE_COMMIT, False) for name in _WRITES),
        *((name, FailPoint.PUBLISH_AFTER_COMMIT, True) for name in _WRITES),
    ],
)
@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_write_says_whether_it_was_published_and_leaves_no_intent(
    graph: Path, tmp_path: Path, name: str, point: FailPoint, published: bool
) -> None:
    ok("branch", "create", "side", graph)
    ok(
        "mutate",
        graph,
        "--branch",
        "side",
        "-e",
        'update Port set { berths: 4 } where code = "AAR"',
    )
    before = answer("snapshot", graph)["graph_commit_id"]
    with armed(point, _strike) as arm:
        said = run(*_commands(tmp_path)[name], "--json", stdin=PORT)
    assert (arm.fired, said.exit_code) == (1, 130), said.stderr
    told = json.loads(said.stdout)
    head = answer("snapshot", graph)["graph_commit_id"]
    assert (head != before) is published
    assert list((graph / "__recovery").glob("*.json")) == []
    if published:
        assert told["published_commit_id"] == head
        assert said.stderr == f"interrupted; commit {head} was published\n"
    else:
        assert "published_commit_id" not in told
        assert said.stderr == "interrupted; nothing was published\n"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_waits_for_the_answer_of_the_store(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = ManifestStore.commit
    load = ("load", graph, "--data", "-", "--mode", "append")

    with monkeypatch.context() as patched:

        def lost(*args: object) -> object:
            patched.undo()
            with omnigraph.open(graph) as other:
                other.load([{"type": "Port", "data": {"code": "Y", "name": "q", "berths": 2}}])
            _strike()
            raise LostRaceError("taken")

        patched.setattr(ManifestStore, "commit", lost)
        assert run(*load, stdin=PORT).stderr == "interrupted; nothing was published\n"

    def impatient(*args: Any) -> object:
        _strike()
        _strike()
        return commit(*args)

    with monkeypatch.context() as patched:
        patched.setattr(ManifestStore, "commit", impatient)
        said = run(*load, stdin=PORT).stderr
    assert said.startswith("interrupted; the write may or may not be published: look for commit ")

    def landed(*args: Any) -> object:
        _strike()
        return commit(*args)

    with monkeypatch.context() as patched:
        patched.setattr(ManifestStore, "commit", landed)
        said = run(*load, stdin=PORT)
    head = answer("snapshot", graph)["graph_commit_id"]
    assert said.stderr == f"interrupted; commit {head} was published\n"


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_python_api_says_so_too(graph: Path, tmp_path: Path) -> None:
    records = [json.loads(PORT)]
    with omnigraph.open(graph) as opened:
        with (
            armed(FailPoint.PUBLISH_BEFORE_COMMIT, _strike),
            pytest.raises(omnigraph.WriteInterrupted, match="was not published") as caught,
        ):
            opened.load(records)
        assert (caught.value.published, opened.published_commit_id) == (False, None)
        with (
            armed(FailPoint.PUBLISH_AFTER_COMMIT, _strike),
            pytest.raises(KeyboardInterrupt, match="was published") as published,
        ):
            opened.load(records)
        head = opened.snapshot().commit.id
        assert published.value.commit_id == head == opened.published_commit_id
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with (
        armed(FailPoint.INIT_AFTER_MANIFEST, _strike),
        pytest.raises(omnigraph.WriteInterrupted, match="was published"),
    ):
        omnigraph.init(tmp_path / "new", SCHEMA)
    omnigraph.open(tmp_path / "new").close()


@pytest.mark.parametrize(("point", "published"), [("BEFORE", False), ("AFTER", True)])
def test_an_interrupted_process_says_whether_it_published(
    graph: Path, point: str, published: bool
) -> None:
    code = _STRIKE + (
        "from omnigraph.failpoints import FailPoint, armed\n"
        f"arm = armed(FailPoint.PUBLISH_{point}_COMMIT, strike); arm.__enter__()\n"
        "from omnigraph.cli.main import main; main()\n"
    )
    before = commit_count(graph)
    load = ("load", graph, "--data", "-", "--mode", "append")
    done = process(*load, stdin=PORT.encode(), code=code)
    said = done.stderr.decode()
    assert done.returncode == 130
    assert said.endswith("was published\n") and ("nothing" in said) is not published
    assert commit_count(graph) == before + published
    assert list((graph / "__recovery").glob("*.json")) == []


# A command in a process that sends itself the signal at one moment.
_STRIKE = """
import os, signal
def strike(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("flags", [[], ["--json"], ["--quiet"]])
def test_after_the_answer_it_changes_nothing(graph: Path, flags: list[str]) -> None:
    code = _STRIKE + (
        "import omnigraph.api.graph, threading, atexit\n"
        "close = omnigraph.api.graph.Graph.close\n"
        "def closing(self): strike(); close(self); strike()\n"
        "omnigraph.api.graph.Graph.close = closing\n"
        "atexit.register(strike)\n"
        "threading._register_atexit(strike)\n"
        "class Last:\n"
        "    def __del__(self, strike=strike): strike()\n"
        "import sys; sys.last_of_all = Last()\n"
        "from omnigraph.cli.main import main; main()\n"
    )
    args = ("load", graph, "--data", "-", "--mode", "append", *flags)
    done = process(*args, stdin=PORT.encode(), code=code)
    assert (done.returncode, done.stderr) == (0, b"")
    done = process("snapshot", graph, code=code)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_plan_before_a_question_is_not_the_answer(graph: Path, tmp_path: Path) -> None:
    less = tmp_path / "less.pg"
    less.write_text("".join(x for x in SCHEMA.splitlines(True) if "call_sign" not in x))
    code = _STRIKE + (
        "import click\n"
        "click.confirm = lambda *args, **kwargs: strike() or True\n"
        "from omnigraph.cli.settings import Settings\n"
        "Settings.can_ask = lambda self: True\n"
        "from omnigraph.cli.main import main; main()\n"
    )
    before = commit_count(graph)
    done = process("schema", "apply", graph, "--schema", less, code=code)
    assert (done.returncode, b"DESTRUCTIVE" in done.stdout) == (130, True), done
    assert commit_count(graph) == before


def test_after_an_export_to_a_file_it_changes_nothing(graph: Path, tmp_path: Path) -> None:
    code = _STRIKE + (
        "import omnigraph.api.opening\n"
        "omnigraph.api.graph.Graph.close = strike\n"
        "from omnigraph.cli.main import main; main()\n"
    )
    done = process("export", graph, "--output", tmp_path / "x.jsonl", code=code)
    assert (done.returncode, done.stderr[:8]) == (0, b"Exported")


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_while_the_program_is_being_imported(flags: list[str]) -> None:
    code = _STRIKE + (
        "import sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'click': strike()\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from omnigraph.cli.entry import main\n"
        "main()\n"
    )
    done = process("version", *flags, code=code)
    assert (done.returncode, done.stderr) == (130, b"interrupted\n")
    if flags:
        assert json.loads(done.stdout) == {"error": "interrupted", "code": "interrupted"}


def test_the_entry_imports_nearly_nothing() -> None:
    code = (
        "import sys, omnigraph\n"
        "before = set(sys.modules)\n"
        "import omnigraph.cli.entry\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    assert process(code=code).stdout == b"['omnigraph.cli', 'omnigraph.cli.entry']\n"


def test_a_second_interrupt_still_exits_130(graph: Path) -> None:
    code = _STRIKE + (
        "import omnigraph.api.opening\n"
        "omnigraph.api.opening.open = strike\n"
        "import omnigraph.cli.boundary as b\n"
        "b.write_error = strike\n"
        "from omnigraph.cli.entry import main; main()\n"
    )
    done = process("snapshot", graph, code=code)
    assert done.returncode == 130
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["omnigraph", "omnigraph.cli.main", "omnigraph.cli.entry"])
def test_the_modules_run(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "version"],
        capture_output=True, env=environment(), timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout[:10], done.stderr) == (0, b"omnigraph ", b"")


def test_an_ignored_interrupt_stays_ignored(graph: Path) -> None:
    code = _STRIKE + (
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import omnigraph.api.opening\n"
        "opened = omnigraph.api.opening.open\n"
        "def open(*args, **kwargs): strike(); return opened(*args, **kwargs)\n"
        "omnigraph.api.opening.open = open\n"
        "from omnigraph.cli.entry import main; main()\n"
    )
    assert process("snapshot", graph, code=code).returncode == 0


def test_commands_in_this_process_leave_the_handler_alone(graph: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    run("snapshot", graph)
    assert signal.getsignal(signal.SIGINT) is before


def test_tests_that_interrupt_a_child_end_in_a_background_shell() -> None:
    """A shell without job control starts `nohup make test &` with interrupts ignored."""
    name = "test_follow_sees_new_commits_and_ctrl_c_tells_the_cursor"
    suite = Path(__file__).parents[2]
    command = f"trap '' INT; exec {sys.executable} -m pytest -q -n0 -p no:cacheprovider tests/cli -k {name}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=suite,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        start_new_session=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()
    assert b"1 passed" in done.stdout
