"""A table on a terminal: it fits, it ends, and it says what it leaves out."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from cli_support import environment, ok, said_on_terminal

SCHEMA = "node Row { k: I64 @key  long: String  a: String?  b: String?  c: String?  d: String? }"


def _graph(folder: Path, rows: int, long: str) -> Path:
    (folder / "s.pg").write_text(SCHEMA)
    ok("init", folder / "g", "--schema", folder / "s.pg")
    lines = "".join(
        f'{{"type":"Row","data":{{"k":{n},"long":"{long}","a":"{"a" * 30}","b":"{"b" * 30}",'
        f'"c":"{"c" * 30}","d":"{"d" * 30}"}}}}\n'
        for n in range(rows)
    )
    ok("load", folder / "g", "--data", "-", "--mode", "append", stdin=lines)
    return folder / "g"


def _shown(*args: object, columns: int) -> tuple[list[str], str]:
    """Lines on a terminal so wide, and what goes to stderr."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    # The size is the terminal's, whatever the environment of these tests says.
    env = {k: v for k, v in environment().items() if k not in ("COLUMNS", "LINES")}
    child = subprocess.Popen(
        [sys.executable, "-c", "from omnigraph.cli.main import main; main()", *map(str, args)],
        stdin=follower, stdout=follower, stderr=subprocess.PIPE,
        env=env | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(follower)
    written = said_on_terminal(leader)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    text = re.sub(r"\x1b\[[0-9;]*m", "", written.decode())
    return text.splitlines(), err.decode()


def test_long_values_are_cut(tmp_path: Path) -> None:
    graph = _graph(tmp_path, 2, "x" * 200)
    lines, err = _shown(
        "query", graph, "-e", "match { $r: Row } return { $r.k $r.long $r.a }", columns=60
    )
    assert all(len(line) <= 60 for line in lines)
    assert lines[0].split() == ["r.k", "r.long", "r.a"]
    assert "…" in lines[2]
    assert err == "some values are cut: the format kv shows all of them\n"


def test_columns_that_find_no_place_are_counted(tmp_path: Path) -> None:
    graph = _graph(tmp_path, 1, "y")
    text = "match { $r: Row } return { $r.a $r.b $r.c $r.d }"
    lines, err = _shown("query", graph, "-e", text, columns=22)
    assert lines[0].split() == ["r.a", "r.b"]
    assert err == "2 more columns found no place: the format kv shows all of them\n"


def test_a_thousand_rows_are_enough(tmp_path: Path) -> None:
    graph = _graph(tmp_path, 1_500, "z")
    text = "match { $r: Row } return { $r.k } order { $r.k }"
    lines, err = _shown("query", graph, "-e", text, columns=80)
    assert len(lines) == 1_003
    assert lines[-1].startswith("1,500 rows in ")
    assert err.startswith("the first 1,000 rows are shown: ")
    lines, err = _shown("query", graph, "-e", text, "--format", "csv", columns=80)
    assert (len(lines), err) == (1_501, "")
    lines, err = _shown("query", graph, "-e", text, "--quiet", columns=80)
    assert (len(lines), err) == (1_002, "")


def test_data_cannot_steer_the_terminal(tmp_path: Path) -> None:
    graph = _graph(tmp_path, 1, "\\u001b[2J\\u202e\\u009b")
    text = "match { $r: Row } return { $r.long }"
    for form in ("table", "kv", "csv", "jsonl", "json"):
        lines, _ = _shown("query", graph, "-e", text, "--format", form, columns=80)
        shown = "\n".join(lines)
        assert not re.search("[\x1b\u202e\u009b]", shown), form
        assert "[2J" in shown
