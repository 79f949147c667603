"""Running the command line in tests, in this process and in a real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import omnigraph
from omnigraph.cli.main import app

SCHEMA = """\
interface Named { name: String }
node Vessel implements Named {
  imo: I64 @key
  flag: enum(dk, no, pa)?
  built: Date?
  tags: [String]?
  call_sign: String? @unique
  @range(imo, 1..9999999)
  @check(call_sign, "^[A-Z]{4}$")
}
node Port implements Named { code: String @key  berths: U32 }
edge CallsAt: Vessel -> Port @card(0..2) { on: Date  cargo: String? }
edge Feeds: Port -> Port { @unique(src, dst) }
"""

DATA = """\
{"type":"Vessel","data":{"imo":100,"name":"Alba","flag":"dk","tags":["a","b"],"call_sign":"OABC"}}
{"type":"Vessel","data":{"imo":200,"name":"Børge \\u2603 \\"x\\""}}
{"type":"Port","data":{"code":"AAR","name":"Aarhus","berths":12}}
{"edge":"CallsAt","from":"100","to":"AAR","data":{"on":"2026-01-02"}}
"""


def run(*args: object, stdin: str | bytes | None = None, env: Mapping[str, str] = {}) -> Result:
    """One command in this process; nothing of the machine's environment leaks in."""
    clean = {"OMNIGRAPH_STORE": None, "OMNIGRAPH_ACTOR": None, "OMNIGRAPH_TRACEBACK": None}
    return CliRunner().invoke(app, [str(a) for a in args], input=stdin, env={**clean, **env})


def ok(*args: object, stdin: str | bytes | None = None, env: Mapping[str, str] = {}) -> Result:
    """One command that must succeed."""
    result = run(*args, stdin=stdin, env=env)
    assert result.exit_code == 0, (result.stdout, result.stderr, result.exception)
    return result


def answer(*args: object, **kwargs: Any) -> Any:
    """The JSON that a command which must succeed answers with ``--json``."""
    return json.loads(ok(*args, "--json", **kwargs).stdout)


def process(
    *args: object,
    stdin: bytes = b"",
    env: Mapping[str, str] = {},
    code: str = "from omnigraph.cli.main import main; main()",
) -> subprocess.CompletedProcess[bytes]:
    """One command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *(str(a) for a in args)],
        input=stdin,
        capture_output=True,
        timeout=120,
        env=environment() | env,
        check=False,
    )


def environment() -> dict[str, str]:
    """For a child process: finds the package wherever these tests found it."""
    source = str(Path(omnigraph.__file__).parent.parent)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OMNIGRAPH_")}
    return kept | {"PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}


def commit_count(uri: object) -> int:
    """How many commits the graph has."""
    return len(answer("commit", "list", uri)["commits"])


def said_on_terminal(leader: int) -> bytes:
    """All that is written to a terminal until the last process has closed it."""
    written = b""
    # Linux answers EIO then.
    with suppress(OSError):
        while chunk := os.read(leader, 65536):
            written += chunk
    os.close(leader)
    return written
