"""A graph is relocatable, and every spelling of its place is one code path."""

from __future__ import annotations

import shutil
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

import omnigraph
from omnigraph.testing.s3 import BUCKET
from support.racers import SCHEMA


def person(*names: str) -> list[dict]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


def names(graph: omnigraph.Graph) -> list[str]:
    return sorted(graph.snapshot().rows("Person").to_arrow()["name"].to_pylist())


def fill(root: object) -> None:
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load([*person("a", "b"), {"edge": "Knows", "from": "a", "to": "b"}])
        graph.load(person("c"), mode="merge")
        graph.mutate('query q() { delete Person where name = "c" }')


def carry_on(root: object) -> None:
    """Everything works at the new place: reading, the past, writing in every mode."""
    with omnigraph.open(root) as graph:
        assert names(graph) == ["a", "b"]
        assert len(graph.commits()) == 4
        graph.load(person("c"))
        graph.load(person("b"), mode="merge")
        graph.load(person("a", "b"), mode="overwrite")
        graph.load([{"edge": "Knows", "from": "b", "to": "a"}])
        assert names(graph) == ["a", "b"]
        assert graph.snapshot().count("Knows") == 2


def test_a_moved_folder(tmp_path: Path) -> None:
    fill(tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    carry_on(tmp_path / "new")


def test_a_copied_folder_lives_its_own_life(tmp_path: Path) -> None:
    fill(tmp_path / "old")
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    carry_on(tmp_path / "new")
    with omnigraph.open(tmp_path / "old") as graph:
        assert len(graph.commits()) == 4


def test_a_copied_prefix(s3_root: str, s3_server) -> None:
    fill(f"{s3_root}/old")
    store = S3Store(BUCKET, client_options={"allow_http": True})
    prefix = s3_root.removeprefix(f"s3://{BUCKET}/")
    for batch in obstore.list(store, f"{prefix}/old"):
        for entry in batch:
            obstore.copy(store, entry["path"], entry["path"].replace("/old/", "/new/", 1))
    carry_on(f"{s3_root}/new")


def test_from_a_bucket_to_a_folder(s3_root: str, tmp_path: Path) -> None:
    fill(s3_root)
    store = S3Store(BUCKET, client_options={"allow_http": True})
    prefix = s3_root.removeprefix(f"s3://{BUCKET}/")
    for batch in obstore.list(store, prefix):
        for entry in batch:
            target = tmp_path / entry["path"].removeprefix(f"{prefix}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(bytes(obstore.get(store, entry["path"]).bytes()))
    carry_on(tmp_path)


@pytest.mark.parametrize(
    "name", ["plain", "with space", "per%20cent", "häß#?&=+", "trailing/", "'quote\"", "日本"]
)
def test_folders_with_unusual_names(tmp_path: Path, name: str) -> None:
    fill(f"{tmp_path}/{name}")
    carry_on(f"{tmp_path}/{name}")


def test_file_uris_and_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill((tmp_path / "a b").as_uri())
    monkeypatch.chdir(tmp_path)
    carry_on("a b")


def test_prefixes_with_unusual_names(s3_root: str) -> None:
    fill(f"{s3_root}/a b/c%20d/é+=&")
    carry_on(f"{s3_root}/a b/c%20d/é+=&")


def test_a_whole_bucket(s3_root: str, s3_server) -> None:
    bucket = "whole-" + s3_root.rpartition("/")[2]
    s3_server.bucket(bucket)
    fill(f"s3://{bucket}")
    carry_on(f"s3://{bucket}/")
