"""Ctrl-C at every moment: before anything is loaded, while a write runs, after the answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import SCHEMA, answer, commit_count, environment, process, run

WRITING = (
    "interrupted; a write that was running is published completely or not at all: see 'commit list'"
)
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
        assert "commit list" in told["hint"]


def test_creating(tmp_path: Path, schema_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.api.opening.init", _interrupt)
    said = run("init", tmp_path / "g", "--schema", schema_file)
    assert (said.exit_code, said.stderr) == (130, WRITING + "\n")


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
