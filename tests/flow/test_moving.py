"""A graph is relocatable, and every spelling of its place is one code path."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

import omnigraph
from omnigraph.api.opening import moved_text
from omnigraph.testing.s3 import BUCKET
from omnigraph.write import outcome
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


# -- told at open ----------------------------------------------------------------------------------


def warned(caplog: pytest.LogCaptureFixture, root: object) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "omnigraph.api"):
        omnigraph.open(root).close()
    return [r.getMessage() for r in caplog.records if r.name == "omnigraph.api"]


def copied(root: str, source: str, target: str) -> str:
    """A copy beside the source, made without this library."""
    if "://" not in root:
        shutil.copytree(f"{root}/{source}", f"{root}/{target}")
    else:
        store = S3Store(BUCKET, client_options={"allow_http": True})
        prefix = f"{root.removeprefix(f's3://{BUCKET}/')}/{source}/"
        for batch in obstore.list(store, prefix):
            for entry in batch:
                name = entry["path"].removeprefix(prefix)
                new = f"{prefix.removesuffix(f'{source}/')}{target}/{name}"
                obstore.copy(store, entry["path"], new)
    return f"{root}/{target}"


def test_a_copy_is_told_when_it_is_opened_until_others_find_it(
    store_root: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = f"{store_root}/old"
    with omnigraph.init(old, SCHEMA) as graph:
        graph.load(person("a", "b"))
        graph.upkeep.mirror()
    assert warned(caplog, old) == []
    new = copied(store_root, "old", "new")
    (said,) = warned(caplog, new)
    assert said == moved_text(new, old)
    with omnigraph.open(new) as graph:
        assert graph.upkeep.moved_from() == old
        graph.upkeep.repair(confirm=True)
        assert graph.upkeep.moved_from() is None
    assert warned(caplog, new) == []
    assert warned(caplog, old) == []


def test_a_copy_is_told_after_writes_that_left_its_mirrors(
    store_root: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = f"{store_root}/old"
    with omnigraph.init(old, SCHEMA) as graph:
        graph.load(person("a", "b"))
        graph.upkeep.mirror()
    new = copied(store_root, "old", "new")
    monkeypatch.setattr(outcome, "tell_others", lambda *_: None)
    with omnigraph.open(new) as graph:
        graph.load(person("c"))
    assert warned(caplog, new) == [moved_text(new, old)]


def test_a_handle_from_before_a_repair_does_not_bring_the_warning_back(
    store_root: str, caplog: pytest.LogCaptureFixture
) -> None:
    old = f"{store_root}/old"
    with omnigraph.init(old, SCHEMA) as graph:
        graph.load(person("a", "b"))
        graph.upkeep.mirror()
    new = copied(store_root, "old", "new")
    with omnigraph.open(new) as late:
        with omnigraph.open(new) as graph:
            graph.upkeep.repair(confirm=True)
        late.load(person("c"))
    assert warned(caplog, new) == []


def test_a_link_to_a_folder_is_the_same_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        graph.load(person("a", "b"))
        graph.upkeep.mirror()
    (tmp_path / "link").symlink_to(tmp_path / "graph")
    assert warned(caplog, tmp_path / "link") == []
    with omnigraph.open(tmp_path / "link") as graph:
        assert graph.upkeep.check().ok
        assert graph.upkeep.status().mirror.made_at is None
