"""Export to a file: all of it or nothing, and never in place of something that is no file."""

from __future__ import annotations

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cli_support import environment, ok, run

from omnigraph.errors import StorageError


def test_a_failed_export_leaves_the_old_file_alone(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    file = folder / "dump.jsonl"
    file.write_text("old")

    def half(view: object, out: object, **kwargs: object) -> int:
        out.write(b"half")  # pyright: ignore
        raise StorageError("gone")

    monkeypatch.setattr("omnigraph.api.view.SnapshotView.export", half)
    assert run("export", graph, "--output", file).exit_code == 1
    assert file.read_text() == "old"
    assert list(folder.iterdir()) == [file]


def test_export_replaces_a_file_and_follows_a_link(graph: Path, tmp_path: Path) -> None:
    file, link = tmp_path / "dump.jsonl", tmp_path / "link.jsonl"
    file.write_text("old")
    link.symlink_to(file)
    ok("export", graph, "--output", link)
    assert link.is_symlink()
    assert file.read_bytes() == ok("export", graph, "--output", "-").stdout_bytes


def test_export_has_the_usual_permissions(graph: Path, tmp_path: Path) -> None:
    file, usual = tmp_path / "dump.jsonl", tmp_path / "usual"
    usual.write_text("")
    ok("export", graph, "--output", file)
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_export_keeps_the_permissions_of_the_file_it_replaces(
    graph: Path, tmp_path: Path, mode: int
) -> None:
    file = tmp_path / "dump.jsonl"
    file.write_text("old")
    file.chmod(mode)
    ok("export", graph, "--output", file)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    assert file.read_bytes() == ok("export", graph).stdout_bytes


@pytest.mark.parametrize("redirect", ["| cat", "> OUT; cat OUT", ">> OUT; cat OUT"])
def test_export_to_dev_stdout(graph: Path, tmp_path: Path, redirect: str) -> None:
    out = tmp_path / "out"
    command = f'"{sys.executable}" -m omnigraph export "{graph}" --output /dev/stdout '
    done = subprocess.run(
        ["sh", "-c", command + redirect.replace("OUT", str(out))],
        capture_output=True, env=environment(), timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (ok("export", graph).stdout_bytes, b"")


def test_export_to_a_process_substitution(graph: Path) -> None:
    reading, writing = os.pipe()
    ok("export", graph, "--output", f"/dev/fd/{writing}", "--quiet")
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert pipe.read() == ok("export", graph).stdout_bytes


def test_export_to_a_link_that_points_nowhere_and_to_one_that_turns_in_circles(
    graph: Path, tmp_path: Path
) -> None:
    link, circle = tmp_path / "link", tmp_path / "circle"
    link.symlink_to(tmp_path / "new.jsonl")
    circle.symlink_to(circle)
    ok("export", graph, "--output", link)
    assert (tmp_path / "new.jsonl").read_bytes() == ok("export", graph).stdout_bytes
    said = run("export", graph, "--output", circle)
    assert said.stderr.startswith(f"error: cannot write {circle}: ")


def test_export_writes_into_a_pipe_instead_of_replacing_it(graph: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    ok("export", graph, "--output", pipe)
    reader.join(30)
    assert read == [ok("export", graph).stdout_bytes]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize(("name", "code"), [("folder", 2), ("missing/dump.jsonl", 1)])
def test_export_to_a_place_that_cannot_be_written(
    graph: Path, tmp_path: Path, name: str, code: int
) -> None:
    (tmp_path / "folder").mkdir()
    said = run("export", graph, "--output", tmp_path / name)
    assert said.exit_code == code
    assert said.stderr.startswith(f"error: cannot write {tmp_path / name}")


@pytest.mark.parametrize("words", [("export",), ("changes", "baseline")])
def test_output_to_a_full_disk(graph: Path, words: tuple[str, ...]) -> None:
    said = run(*words, graph, "--output", "/dev/full")
    assert said.exit_code == 1
    assert said.stderr.startswith("error: cannot write /dev/full: No space left on device\n")
    assert "bug" not in said.stderr
    assert stat.S_ISCHR(os.stat("/dev/full").st_mode)
    told = run(*words, graph, "--output", "/dev/full", "--json").stdout
    assert json.loads(told)["code"] == "storage_full"


def test_a_file_that_outgrows_its_disk_is_told_and_leaves_nothing(
    graph: Path, tmp_path: Path
) -> None:
    file = tmp_path / "out" / "dump.jsonl"
    file.parent.mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        said = run("export", graph, "--output", file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (said.exit_code, list(file.parent.iterdir())) == (1, [])
    assert said.stderr.startswith(f"error: cannot write {file}: File too large\n")


def test_quiet_export_is_silent(graph: Path, tmp_path: Path) -> None:
    said = ok("export", graph, "--output", tmp_path / "x", "--quiet")
    assert said.stdout + said.stderr == ""
