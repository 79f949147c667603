"""The shell: from a pipe, with keys that a test presses, and on a real terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Self

import pytest
from cli_support import answer, commit_count, environment, ok, process, run
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import omnigraph
from omnigraph.cli.settings import Settings
from omnigraph.cli.shell.prompt import ShellCompleter, interact, open_history
from omnigraph.cli.shell.session import Session
from omnigraph.failpoints import FailPoint, armed
from omnigraph.testing.clock import ManualClock

NAMES = "match { $v: Vessel } return { $v.name } order { $v.imo } limit 1"
TABLE = "v.name\n──────\nAlba\n1 row\n"
ADD = 'insert Port { code: "OSL", name: "Oslo", berths: 7 }'


def test_a_query_from_a_pipe_is_answered_without_noise(graph: Path) -> None:
    said = ok("shell", graph, stdin=NAMES)
    assert (said.stdout, said.stderr) == (TABLE, "")


def test_inputs_are_carried_out_one_after_the_other(graph: Path) -> None:
    text = f"{ADD}\n:format csv\nmatch {{ $p: Port }}\nreturn {{ $p.code }}\norder {{ $p.code }}\n"
    said = ok("shell", graph, "--as", "carol", stdin=text)
    lines = said.stdout.splitlines()
    assert lines[0] == "Changed 1 node"
    assert lines[2:] == ["csv", "p.code", "AAR", "OSL"]
    assert answer("commit", "list", graph)["commits"][0]["actor_id"] == "carol"


def test_errors_are_told_and_do_not_end_the_shell(graph: Path) -> None:
    bad = "match { $v: Vesel } return { $v.name }"
    said = run("shell", graph, stdin=f"{bad}\n:nope\n:branch dev\n{NAMES}\n")
    assert (said.exit_code, said.stdout) == (1, TABLE)
    assert "^^^^^" in said.stderr
    assert said.stderr.count("error: ") == 3
    assert "Traceback" not in said.stderr


def test_a_bug_does_not_end_the_shell(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("omnigraph.api.graph.Graph.commits", broken)
    said = run("shell", graph, stdin=f":commits\n{NAMES}\n")
    assert (said.exit_code, said.stdout) == (1, TABLE)
    assert "internal error: ZeroDivisionError" in said.stderr


def test_a_condition_may_go_on_in_the_next_line(graph: Path) -> None:
    before = commit_count(graph)
    said = ok("shell", graph, stdin="delete Vessel where imo = 100\n  and imo = 200\n")
    assert said.stdout == "No change: nothing matched\n"
    assert commit_count(graph) == before


def test_parameters_stay_and_are_given_to_those_who_declare_them(graph: Path) -> None:
    text = (
        ':params {"n": 200, "other": 1}\n'
        "query q($n: I64) { match { $v: Vessel { imo: $n } } return { $v.imo } }\n"
        f":params\n{NAMES}\n"
    )
    said = ok("shell", graph, stdin=text).stdout
    assert said.splitlines()[0] == '{"n": 200, "other": 1}'
    assert "  200\n1 row\n" in said
    assert said.endswith(TABLE)
    said = run("shell", graph, stdin=":params [1]\n:params {\n")
    assert said.exit_code == 1
    assert said.stderr.count("error: ") == 2


def test_commands(graph: Path) -> None:
    text = f":help\n:types\n:schema Port\n:schema\n:branch\n:commits\n:format\n{NAMES}\n:explain\n:quit\n:help\n"
    said = ok("shell", graph, stdin=text).stdout
    assert said.count("Ctrl-D leaves") == 1
    assert "4 types" in said
    assert "node Port implements Named {\n    code: String @key\n    berths: U32\n" in said
    assert "interface Named { name: String }" in said
    assert "\nmain\n" in said and "\ntable\n" in said
    assert "  load  " in said
    assert "scan $v: Vessel" in said


def test_the_schema_of_a_type_has_all_of_its_rules(tmp_path: Path) -> None:
    (tmp_path / "s.pg").write_text(
        """interface Named { name: String @index }
        node A @owner(team) implements Named {
          k: String @key  a: I64 @description("how \\"many\\"")  b: String? @unique  c: F32
          @unique(a, b)  @index(a, c)  @range(a, 1..)  @range(c, ..0.5)  @check(b, "^[A-Z]\\\\d$")
        }
        node B { x: I64  y: I64  @key(x, y) }
        edge E: A -> B @card(1..3) { on: Date  note: String?  @key(@src, @dst, on)  @unique(src, note) }
        edge F: A -> B
        """
    )
    ok("init", tmp_path / "g", "--schema", tmp_path / "s.pg")
    said = ok(
        "shell", tmp_path / "g", "--quiet", stdin=":schema A\n:schema B\n:schema e\n:schema F\n"
    )
    assert said.stdout == (
        'node A @owner("team") implements Named {\n'
        "    k: String @key\n"
        '    a: I64 @description("how \\"many\\"")\n'
        "    b: String? @unique\n"
        "    c: F32\n"
        "    name: String @index\n"
        "    @unique(a, b)\n"
        "    @index(a, c)\n"
        "    @range(a, 1..)\n"
        "    @range(c, ..0.5)\n"
        '    @check(b, "^[A-Z]\\\\d$")\n'
        "}\n"
        "node B {\n    x: I64\n    y: I64\n    @key(x, y)\n}\n"
        "edge E: A -> B @card(1..3) {\n"
        "    on: Date\n"
        "    note: String?\n"
        "    @key(@src, @dst, on)\n"
        "    @unique(src, note)\n"
        "}\n"
        "edge F: A -> B\n"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (":format arrow", "one of table, kv"),
        (":schema Prot", "Prot"),
        (":explain", "no query to explain"),
        (":explain match {", "Q015"),
        (":explain delete Port where code = 1", ""),
        (":tpyes", "did you mean `:types`?"),
        ("match {", "Q015"),
        ("query a() { } query b() { }", "Q0"),
    ],
)
def test_what_the_shell_refuses(graph: Path, text: str, words: str) -> None:
    said = run("shell", graph, stdin=text + "\n")
    assert said.exit_code == 1
    assert said.stderr.startswith("error: ")
    assert words in said.stderr


def test_timing_is_off_in_a_pipe(graph: Path) -> None:
    assert "1 row in " in ok("shell", graph, stdin=f":timing\n{NAMES}").stdout


def test_a_pipe_that_is_no_text(graph: Path) -> None:
    said = run("shell", graph, stdin=b"\xff\xfe\n")
    assert (said.exit_code, "not UTF-8" in said.stderr) == (2, True)


def test_nothing_on_stdin(graph: Path) -> None:
    assert ok("shell", graph, stdin="").stdout == ""
    assert ok("shell", graph, stdin="\n// nothing\n").stdout == ""


def test_a_graph_or_branch_that_is_not_there(graph: Path, tmp_path: Path) -> None:
    assert run("shell", tmp_path / "none", stdin=NAMES).exit_code == 1
    assert run("shell", graph, "--branch", "dev", stdin=NAMES).exit_code == 1


def test_only_the_prompt_loads_prompt_toolkit(graph: Path) -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import main\n"
        "try: main()\n"
        "finally: print('prompt_toolkit' in sys.modules)"
    )
    done = process("shell", graph, stdin=NAMES.encode(), code=code)
    assert done.stdout.decode().splitlines()[-1] == "False"
    done = process("shell", "--help", code=code)
    assert done.stdout.decode().splitlines()[-1] == "False"


# ---------------------------------------------------------------- with keys


@contextmanager
def _session(graph: Path) -> Iterator[Session]:
    with omnigraph.open(graph) as opened:
        yield Session(opened, Settings(), ManualClock(), branch="main", timing=False)


def _typed(graph: Path, keys: str, history: InMemoryHistory | None = None) -> tuple[str, str]:
    """What the shell says to somebody who presses these keys and then Ctrl-D."""
    out, err = _Terminal(), io.StringIO()
    with create_pipe_input() as pipe, _session(graph) as session:
        pipe.send_text(keys + "\x04")
        with redirect_stdout(out), redirect_stderr(err):
            interact(session, history or InMemoryHistory(), keys=pipe, screen=DummyOutput())
    return out.said(), err.getvalue()


class _Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def said(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_enter_runs_what_is_complete(graph: Path) -> None:
    assert _typed(graph, NAMES + "\r") == (TABLE, "")


def test_enter_goes_on_where_something_is_missing(graph: Path) -> None:
    keys = "match { $v: Vessel }\rreturn {\r$v.name\r} limit 0\r"
    assert _typed(graph, keys)[0] == "v.name\n──────\n0 rows\n"


def test_an_empty_line_runs_what_is_there(graph: Path) -> None:
    out, err = _typed(graph, f"match {{\r\r{NAMES}\r")
    assert "Q015" in err
    assert out == TABLE


def test_alt_enter_is_a_new_line(graph: Path) -> None:
    keys = "match { $v: Vessel } return { $v.name }\x1b\rlimit 0\r"
    assert _typed(graph, keys)[0].endswith("0 rows\n")


def test_ctrl_c_drops_the_input(graph: Path) -> None:
    assert _typed(graph, f"delete Vessel where \x03{NAMES}\r") == (TABLE, "")


def test_quit_leaves(graph: Path) -> None:
    assert _typed(graph, f":quit\r{NAMES}\r") == ("", "")


def test_candidates_reach_the_menu(graph: Path) -> None:
    with _session(graph) as session:
        found = ShellCompleter(session).get_completions(
            Document("match { $v: Vess"), CompleteEvent(completion_requested=True)
        )
        assert [(c.text, c.start_position, c.display_meta_text) for c in found] == [
            ("Vessel", -4, "node")
        ]


def test_earlier_inputs_come_back(graph: Path) -> None:
    history = InMemoryHistory()
    _typed(graph, NAMES + "\r", history)
    assert list(history.get_strings()) == [NAMES]
    assert _typed(graph, "\x1b[A\r", history) == (TABLE, "")


def test_an_interrupt_ends_the_query_and_not_the_shell(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def strike(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("omnigraph.api.graph.Graph.commits", strike)
    out, err = _typed(graph, f":commits\r{NAMES}\r")
    assert err == "interrupted\n"
    assert out == TABLE


@pytest.mark.parametrize("published", [False, True])
def test_an_interrupted_write_of_the_shell_tells_its_own_outcome(
    graph: Path, published: bool
) -> None:
    def strike() -> None:
        if arm.hits == 2:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    point = FailPoint.PUBLISH_AFTER_COMMIT if published else FailPoint.PUBLISH_BEFORE_COMMIT
    change = 'update Port set { berths: %d } where code = "AAR"'
    try:
        with armed(point, strike, times=None) as arm:
            _, err = _typed(graph, f"{change % 3}\r{change % 4}\r")
    finally:
        signal.signal(signal.SIGINT, before)
    head = answer("snapshot", graph)["graph_commit_id"]
    said = f"commit {head} was published" if published else "nothing was published"
    assert err == f"interrupted; {said}\n"


def test_what_a_query_and_a_change_need_is_imported_while_the_prompt_waits(graph: Path) -> None:
    code = (
        "import sys, io, omnigraph.cli.shell.prompt\n"
        "from omnigraph.cli.settings import Settings\n"
        "from omnigraph.cli.shell.session import Session\n"
        "from omnigraph.cli.shell.warming import warming\n"
        "from omnigraph.clock import SystemClock\n"
        "settings = Settings(quiet=True)\n"
        "settings.place = sys.argv[1]\n"
        "with settings.graph() as graph, warming() as thread:\n"
        "    session = Session(graph, settings, SystemClock(), branch='main', actor=None, timing=True)\n"
        "    thread.join()\n"
        "    before = set(sys.modules)\n"
        "    session.run('match { $v: Vessel $v callsAt $p } return { $p.name as n, count($v) as c } order { n }')\n"
        "    session.run('update Port set { berths: 3 } where code = \"AAR\"')\n"
        "print(sorted(m for m in set(sys.modules) - before if m.startswith(('omnigraph', 'pyarrow'))))\n"
    )
    done = process(graph, code=code)
    assert done.stdout.endswith(b"\n[]\n"), done


def test_the_history_is_the_users_own(tmp_path: Path) -> None:
    history = open_history({"XDG_STATE_HOME": str(tmp_path / "state")})
    assert isinstance(history, FileHistory)
    file = tmp_path / "state" / "omnigraph" / "history"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    history.append_string(NAMES)
    assert NAMES in file.read_text()


def test_without_a_place_the_history_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = open_history({"XDG_STATE_HOME": str(tmp_path / "file")})
    assert isinstance(history, InMemoryHistory)


# ---------------------------------------------------------------- on a terminal


class _Screen:
    """A shell on a pseudo terminal."""

    def __init__(self, *args: object, env: dict[str, str]) -> None:
        self._leader, follower = pty.openpty()
        self.child = subprocess.Popen(
            [sys.executable, "-c", "from omnigraph.cli.main import main; main()", *map(str, args)],
            stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            env=environment() | {"TERM": "xterm", "COLUMNS": "80", "LINES": "30"} | env,
        )  # fmt: skip
        os.close(follower)
        self.written = b""
        self._seen = 0

    def press(self, keys: str) -> None:
        os.write(self._leader, keys.encode())

    def until(self, words: bytes) -> None:
        """Wait until the screen shows this, behind what was waited for before."""
        while (found := self.written.find(words, self._seen)) < 0:
            ready, _, _ = select.select([self._leader], [], [], 60)
            assert ready, self.written[self._seen :]
            chunk = os.read(self._leader, 65536)
            # The prompt asks the terminal where the cursor is.
            if b"\x1b[6n" in chunk:
                os.write(self._leader, b"\x1b[1;1R")
            self.written += chunk
        self._seen = found + len(words)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        os.close(self._leader)


def test_a_conversation_on_a_terminal(graph: Path, tmp_path: Path) -> None:
    with _Screen("shell", graph, env={"XDG_STATE_HOME": str(tmp_path)}) as screen:
        screen.until(b"main>")
        screen.press(NAMES + "\r")
        screen.until(b"1 row in ")
        screen.until(b"main>")
        # After an answer Ctrl-C still drops the input and does not end the program.
        screen.press("delete Vessel\x03")
        screen.until(b"main>")
        screen.press(":types\r")
        screen.until(b"4 types")
        screen.until(b"main>")
        screen.press("\x04")
        assert screen.child.wait(60) == 0
        assert b"Traceback" not in screen.written
    assert NAMES in (tmp_path / "omnigraph" / "history").read_text()


def test_an_interrupt_in_a_pipe_ends_the_shell(graph: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from omnigraph.cli.main import main; main()", "shell", str(graph)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(f"{NAMES}\n\n".encode())
    child.stdin.flush()
    assert child.stdout.readline() == b"v.name\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, b"interrupted\n")
