"""The command line on an object store."""

from __future__ import annotations

from pathlib import Path

from cli_support import answer, commit_count, ok, run


def test_a_graph_on_s3(s3_root: str, schema_file: Path, data_file: Path) -> None:
    uri = f"{s3_root}/fleet"
    assert answer("init", uri, "--schema", schema_file)["uri"] == uri
    ok("load", uri, "--data", data_file, "--mode", "append")
    dump = ok("export", uri).stdout
    refused = run("load", uri, "--data", "-", "--mode", "overwrite", stdin=dump)
    assert (refused.exit_code, commit_count(uri)) == (2, 2)
    ok("load", uri, "--data", "-", "--mode", "overwrite", "--yes", stdin=dump)
    assert commit_count(uri) == 3
    assert ok("export", uri).stdout == dump


def test_not_a_graph_on_s3(s3_root: str) -> None:
    said = run("snapshot", f"{s3_root}/nothing")
    assert said.exit_code == 1
    assert said.stderr.startswith("error: ")
    assert "internal error" not in said.stderr
