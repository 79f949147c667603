"""Who signs the requests of Spark's tasks, where only the driver has a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import omnigraph
from omnigraph.testing.proxy import CountingProxy
from omnigraph.testing.s3 import S3Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_tasks_sign_with_the_keys_of_the_driver(
    spark: SparkSession,
    s3_server: S3Server,
    s3_proxy: CountingProxy,
    s3_proxied_root: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = s3_server.temporary_keys()
    file = tmp_path / "credentials"
    file.write_text(
        f"[work]\naws_access_key_id = {keys.access_key}\n"
        f"aws_secret_access_key = {keys.secret_key}\naws_session_token = {keys.token}\n"
    )
    # Workers were started from the environment that Java was started in.
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "\n".join(json.dumps({"type": "P", "data": {"name": f"p{i}"}}) for i in range(50))
    )
    with omnigraph.init(f"{s3_proxied_root}/g", "node P { name: String @key }") as graph:
        graph.load(rows, engine="spark")
        asked = 'match { $p: P  $p.name contains "7" } return { count($p) as n }'
        assert graph.query(asked, engine="spark").to_dicts() == [{"n": 5}]
    assert {request.signer for request in s3_proxy.requests} == {keys.access_key}
