"""How a command ends: exit codes, bugs, interrupts, pipes, and what is loaded to get there."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import answer, environment, ok, process, run, said_on_terminal

from omnigraph.cli.failure import EXIT_CODES, MEANINGS
from omnigraph.errors import ConflictError, ErrorKind, InternalError, OmnigraphError


def test_the_exit_code_table_is_total() -> None:
    assert set(EXIT_CODES) == set(ErrorKind)
    assert set(EXIT_CODES.values()) <= set(MEANINGS)
    unusual = {kind: code for kind, code in EXIT_CODES.items() if code != 1}
    assert unusual == {ErrorKind.USAGE: 2, ErrorKind.PRECONDITION_FAILED: 4}


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_every_kind_of_error_exits_with_its_code(
    graph: Path, monkeypatch: pytest.MonkeyPatch, kind: ErrorKind
) -> None:
    _fail_with(monkeypatch, OmnigraphError("something", kind=kind, hint="do this"))
    said = run("snapshot", graph)
    assert said.exit_code == EXIT_CODES[kind]
    assert said.stderr == "error: something\n  hint: do this\n"


def test_a_lost_precondition_exits_4(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, ConflictError("moved", kind=ErrorKind.PRECONDITION_FAILED))
    assert run("snapshot", graph).exit_code == 4


def test_a_bug_is_called_one_without_a_traceback(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_with(monkeypatch, ZeroDivisionError("by zero"))
    said = run("snapshot", graph)
    assert said.exit_code == 1
    assert said.stderr.startswith("error: internal error: ZeroDivisionError: by zero\n")
    assert "please report" in said.stderr
    assert "Traceback" not in said.stderr
    assert "Traceback" in run("snapshot", graph, env={"OMNIGRAPH_TRACEBACK": "1"}).stderr
    told = run("snapshot", graph, "--json")
    assert '"code": "internal"' in told.stdout
    assert '"exception": "ZeroDivisionError"' in told.stdout


def test_a_broken_invariant_asks_for_a_report(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, InternalError("two heads"))
    assert "please report" in run("snapshot", graph).stderr


def test_an_interrupted_process_exits_130_and_publishes_nothing(graph: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from omnigraph.cli.main import main; main()",
         "load", str(graph), "--data", "-", "--mode", "append"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert child.stdin is not None
    # More than a pipe holds: once it is written the child has begun to read it.
    line = b'{"type":"Port","data":{"code":"%d","name":"p","berths":1}}\n'
    child.stdin.write(b"".join(line % n for n in range(20_000)))
    child.stdin.flush()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert out == b""
    assert err == b"interrupted; nothing was published\n"
    assert len(answer("commit", "list", graph)["commits"]) == 2


def test_the_graph_is_closed_whatever_happens(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr("omnigraph.api.graph.Graph.close", lambda self: closed.append(self.uri))
    ok("snapshot", graph)
    run("snapshot", graph, "--branch", "nope")
    assert closed == [str(graph)] * 2


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["version"],
        ["load", "--wat"],
        ["snapshot"],
        ["query", "--help"],
        ["query", "g"],
        ["shell", "--help"],
        ["fmt", "x.txt"],
        ["lint", "--query", "x.gq"],
    ],
)
def test_light_commands_load_no_engine(args: list[str]) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "try: main()\n"
        "finally: print(sorted({'lance','pyarrow','numpy','obstore','prompt_toolkit'} & set(sys.modules)))"
    )
    result = process(*args, code=code)
    assert result.stdout.decode().splitlines()[-1] == "[]"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_away_is_no_error(empty_graph: Path, unbuffered: str) -> None:
    lines = "".join(
        f'{{"type":"Port","data":{{"code":"{n}","name":"{"p" * 100}","berths":1}}}}\n'
        for n in range(5_000)
    )
    ok("load", empty_graph, "--data", "-", "--mode", "append", stdin=lines)
    child = subprocess.Popen(
        [sys.executable, "-c", "from omnigraph.cli.main import main; main()",
         "export", str(empty_graph)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stdout.readline().startswith(b'{"type":"Port"')
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(60) == 141


def test_output_that_the_terminal_cannot_show_is_escaped(graph: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii"}
    result = process("commit", "list", graph, env=env)
    assert result.returncode == 0
    result = process("snapshot", graph, "--branch", "Åre", env=env)
    assert result.returncode == 1
    assert rb"\xc5re" in result.stderr


def test_closed_streams_are_survived(graph: Path) -> None:
    command = f'"{sys.executable}" -c "from omnigraph.cli.main import main; main()"'
    for rest, code in ((f'snapshot "{graph}" >&-', 0), (f'export "{graph}" >&-', 2),
                       ("snapshot 2>&-", 2), (f'load "{graph}" --data - --mode append <&-', 2)):  # fmt: skip
        result = subprocess.run(
            ["sh", "-c", f"{command} {rest}"], capture_output=True, env=environment(), check=False
        )
        assert result.returncode == code, (rest, result.stderr)
        assert b"Traceback" not in result.stderr


def test_colours_only_on_a_terminal_and_not_against_no_color(graph: Path) -> None:
    terminal = {"TERM": "xterm-256color"}
    assert b"\x1b[" in _on_terminal("snapshot", str(graph), env=terminal)
    assert b"\x1b[3" not in _on_terminal("snapshot", str(graph), env=terminal | {"NO_COLOR": "1"})
    assert b"\x1b[" not in process("snapshot", graph, env=terminal).stdout


def _on_terminal(*args: str, env: dict[str, str]) -> bytes:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", "from omnigraph.cli.main import main; main()", *args],
        stdin=follower, stdout=follower, stderr=follower, env=environment() | env,
    )  # fmt: skip
    os.close(follower)
    written = said_on_terminal(leader)
    assert child.wait(60) == 0
    return written


def _fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr("omnigraph.api.opening.open", fail)
