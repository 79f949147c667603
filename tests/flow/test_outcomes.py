"""What a write says must be what happened: landed, refused, or honestly unknown."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import ErrorKind, StorageError
from omnigraph.failpoints import FailPoint, armed
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.storage.strict import OutcomeUnknownError
from omnigraph.testing.http1 import Fault
from omnigraph.testing.proxy import CountingProxy
from omnigraph.write import outcome
from omnigraph.write.outcome import Outcome
from support.racers import SCHEMA

COMMIT = {"operation": "PUT", "path": "__manifest/_versions"}


def person(*names: str) -> list[dict]:
    return [{"type": "Person", "data": {"name": n}} for n in names]


def city(*names: str) -> list[dict]:
    return [{"type": "City", "data": {"name": n}} for n in names]


def names(graph: omnigraph.Graph, type_name: str = "Person") -> list[str]:
    return sorted(r["name"] for r in graph.snapshot().rows(type_name))


@pytest.fixture
def graphs(tmp_path: Path) -> tuple[omnigraph.Graph, omnigraph.Graph]:
    mine = omnigraph.init(tmp_path / "graph", SCHEMA)
    mine.load(person("a", "b"))
    return mine, omnigraph.open(tmp_path / "graph")


def test_a_graph_is_created_once_however_the_creators_interleave(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    def overtake() -> None:
        with omnigraph.init(s3_proxied_root, "node Theirs { name: String @key }") as graph:
            graph.load([{"type": "Theirs", "data": {"name": "kept"}}])

    with (
        armed(FailPoint.INIT_BEFORE_MANIFEST, overtake),
        pytest.raises(omnigraph.AlreadyExistsError),
    ):
        omnigraph.init(s3_proxied_root, SCHEMA)
    with omnigraph.open(s3_proxied_root) as graph:
        assert names(graph, "Theirs") == ["kept"]
        assert [c.kind for c in graph.commits()] == ["load", "init"]


def bad_reader() -> pa.RecordBatchReader:
    return pa.table({"name": pa.array([1, 2])}).to_reader()


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
@pytest.mark.parametrize(
    ("source", "options"),
    [
        (lambda: io.BytesIO(b'{"type": "Person"'), {}),
        (lambda: iter([{"type": "Person", "data": {"nme": "x"}}]), {}),
        (bad_reader, {"type": "Person"}),
    ],
    ids=["stream", "generator", "reader"],
)
def test_a_bad_stream_stays_bad_when_the_graph_moves_meanwhile(
    graphs, mode: str, source, options
) -> None:
    mine, other = graphs
    other.load(city("elsewhere"))  # Mine is a version behind.
    original = mine._repository.branch("main").refresh

    def moving() -> object:
        other.load(city(f"c{other.snapshot().version}"))
        return original()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mine._repository.branch("main"), "refresh", moving)
        with pytest.raises(omnigraph.InputError):
            patch.setattr(outcome, "ATTEMPTS_MAX", 3)
            mine.load(source(), mode=mode, **options)
            raise AssertionError("must be refused")
    assert names(other) == ["a", "b"]


def landed_but_unanswered(monkeypatch: pytest.MonkeyPatch, store, then) -> None:
    """Let the next commit land, do something, and report that the answer was lost."""
    real = type(store).commit

    def commit(self, head, staged):
        result = real(self, head, staged)
        if self is store:
            monkeypatch.setattr(type(store), "commit", real)
            then(result)
        return result

    monkeypatch.setattr(type(store), "commit", commit)


@pytest.mark.parametrize("kind", [ErrorKind.STORAGE_TRANSIENT, ErrorKind.STORAGE_UNKNOWN])
@pytest.mark.parametrize("reader", [False, True], ids=["alone", "with a reader"])
def test_an_own_commit_is_recognised_below_later_ones(graphs, monkeypatch, kind, reader) -> None:
    mine, other = graphs
    store = mine._repository.branch("main").store

    def lose(_: object) -> None:
        other.load(city("on top"))
        if reader:
            mine.snapshot()  # Another thread of this process looks at the new head.
        raise OutcomeUnknownError(StorageError("no answer", kind=kind))

    landed_but_unanswered(monkeypatch, store, lose)
    result = mine.load(person("c"))
    assert names(mine) == ["a", "b", "c"]
    commits = mine.commits()
    assert len({c.id for c in commits}) == len(commits) == 4
    assert result.commit == commits[1]


class Commits:
    """Scripts what becomes of the commits of one store, then lets them through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store, *failures: Exception) -> None:
        real = type(store).commit
        script = iter(failures)

        def commit(manifest, head, staged):
            failure = next(script, None) if manifest is store else None
            if failure is not None:
                raise failure
            return real(manifest, head, staged)

        monkeypatch.setattr(type(store), "commit", commit)


def intents(graph: omnigraph.Graph) -> int:
    return len(list(graph._repository.objects.names("__recovery")))


NO_ANSWER = OutcomeUnknownError(StorageError("no answer", kind=ErrorKind.STORAGE_TRANSIENT))
REFUSED = OutcomeUnknownError(
    StorageError("access denied", kind=ErrorKind.STORAGE_DENIED), refused=True
)


def test_a_refusal_of_the_only_try_is_a_plain_failure(graphs, monkeypatch) -> None:
    mine, _ = graphs
    mine.settle()
    Commits(monkeypatch, mine._repository.branch("main").store, REFUSED)
    with pytest.raises(omnigraph.StorageError) as caught:
        mine.load(person("c"))
    assert caught.value.kind is ErrorKind.STORAGE_DENIED
    assert intents(mine) == 0


def test_a_refusal_after_a_try_without_answer_leaves_the_outcome_open(graphs, monkeypatch) -> None:
    """The first try may still be on its way to the store: nobody may call the write failed."""
    mine, _ = graphs
    mine.settle()
    Commits(monkeypatch, mine._repository.branch("main").store, NO_ANSWER, REFUSED)
    with pytest.raises(omnigraph.CommitUnknownError):
        mine.load(person("c"))
    assert intents(mine) == 1


def test_a_failed_second_attempt_does_not_settle_the_first(graphs, monkeypatch) -> None:
    mine, _ = graphs
    mine.settle()
    store = mine._repository.branch("main").store
    Commits(monkeypatch, store, NO_ANSWER)
    real = type(store).stage
    calls = iter([real])

    def stage(self, head, snapshot):
        if next(calls, None) is None:
            raise StorageError("access denied", kind=ErrorKind.STORAGE_DENIED)
        return real(self, head, snapshot)

    monkeypatch.setattr(type(store), "stage", stage)
    with pytest.raises(omnigraph.CommitUnknownError):
        mine.load(person("c"))
    assert intents(mine) == 1


def test_a_taken_version_settles_an_open_outcome(graphs, monkeypatch) -> None:
    """Another writer has the version that our lost commit wanted: it can never arrive."""
    mine, other = graphs
    store = mine._repository.branch("main").store
    Commits(monkeypatch, store, NO_ANSWER)
    real = Outcome.resolve

    def resolve(self, base, failure):
        other.load(person("c"))
        return real(self, base, failure)

    monkeypatch.setattr(Outcome, "resolve", resolve)
    with pytest.raises(omnigraph.ConstraintError, match="'c' exists already"):
        mine.load(person("c"))
    mine.settle()
    other.settle()
    assert intents(mine) == 0


def test_a_store_that_never_answers_ends_in_an_open_outcome(graphs, monkeypatch) -> None:
    mine, _ = graphs
    mine.settle()
    Commits(monkeypatch, mine._repository.branch("main").store, *[NO_ANSWER] * 10)
    with pytest.raises(omnigraph.CommitUnknownError):
        mine.load(person("c"))
    assert intents(mine) == 1
    monkeypatch.undo()
    mine.load(person("d"))
    assert names(mine) == ["a", "b", "d"]


def test_a_reader_of_the_same_handle_cannot_move_the_ground_of_a_retry(graphs, monkeypatch) -> None:
    """Between looking at the new head and pinning it, another writer publishes and a reader looks."""
    mine, other = graphs
    real = outcome.back_off

    def back_off(repository, attempt, attempt_s):
        monkeypatch.setattr(outcome, "back_off", real)
        other.load(person("dup"))
        mine.snapshot()

    monkeypatch.setattr(outcome, "back_off", back_off)
    with (
        armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: other.load(city("x"))),
        pytest.raises(omnigraph.ConstraintError, match="'dup' exists already"),
    ):
        mine.load(person("dup"))
    assert names(mine) == ["a", "b", "dup"]


def test_an_interrupt_in_the_commit_is_an_interrupt(s3_proxied_root: str, s3_proxy) -> None:
    omnigraph.init(s3_proxied_root, SCHEMA).close()
    script = (
        "import os, signal, sys, threading, omnigraph\n"
        "from omnigraph.storage.objects import Objects\n"
        "real = Objects.create\n"
        "def create(self, name, content):\n"
        "    real(self, name, content)\n"
        "    raise KeyboardInterrupt\n"
        "Objects.create = create\n"
        "graph = omnigraph.open(sys.argv[1])\n"
        "try:\n    graph.load([{'type': 'Person', 'data': {'name': 'a'}}])\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, s3_proxied_root], capture_output=True, text=True, check=True
    )
    assert done.stdout == "interrupted\n", done
    with omnigraph.open(s3_proxied_root) as graph:
        assert names(graph) == ["a"]
        # Its intent is the trace of a write that nobody was told about.
        assert len(list(graph._repository.objects.names("__recovery"))) == 1


def test_a_sync_that_fails_after_the_commit_does_not_deny_it(tmp_path, monkeypatch) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA, durability="fsync") as graph:

        def sync(self: Repository, wanted: list[str]) -> None:
            if any("_versions" in name for name in wanted):
                raise StorageError("no space left", kind=ErrorKind.STORAGE_FULL)

        monkeypatch.setattr(Repository, "sync", sync)
        with pytest.raises(omnigraph.CommitUnknownError, match="is published"):
            graph.load(person("a"))
        monkeypatch.undo()
        assert names(graph) == ["a"]
        graph.load(person("b"))
        assert names(graph) == ["a", "b"]


def test_closing_during_a_publish_waits_for_it(graphs) -> None:
    from threading import Thread

    mine, other = graphs
    closing = Thread(target=mine.close)
    with armed(FailPoint.PUBLISH_AFTER_COMMIT, closing.start):
        assert mine.load(person("c")).commit is not None
    closing.join()
    assert names(other) == ["a", "b", "c"]
    with pytest.raises(omnigraph.UsageError, match="is closed"):
        mine.load(person("d"))


def test_init_survives_a_store_that_refuses_the_hint(s3_proxied_root: str, s3_proxy) -> None:
    s3_proxy.fail(Fault.STATUS, operation="PUT", path="_head.json", status=403, times=None)
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load(person("a"))
    with omnigraph.open(s3_proxied_root) as graph:
        assert names(graph) == ["a"]


def test_a_failed_stage_leaves_no_intent(s3_proxied_root: str, s3_proxy) -> None:
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        s3_proxy.fail(Fault.STATUS, operation="PUT", path="/nodes/", status=403, times=None)
        with pytest.raises(omnigraph.StorageError) as caught:
            graph.load([*person("a"), *city("x")])
        assert caught.value.kind is ErrorKind.STORAGE_DENIED
        s3_proxy.reset()
        assert list(graph._repository.objects.names("__recovery")) == []
        graph.load(person("a"))
        assert names(graph) == ["a"]


def test_a_handle_far_behind_catches_up_with_few_requests(
    s3_proxied_root: str, s3_proxy: CountingProxy
) -> None:
    from omnigraph.testing.measure import measure

    with omnigraph.init(s3_proxied_root, SCHEMA) as writer, omnigraph.open(s3_proxied_root) as late:
        for i in range(60):
            writer.load(city(f"c{i}"))
        writer.settle()
        with measure(s3_proxy) as io_count:
            assert late.snapshot().version == 61
        assert io_count.count() <= 12, io_count.log()


def test_a_handle_notices_that_its_graph_was_replaced(tmp_path: Path) -> None:
    root = tmp_path / "g"
    mine = omnigraph.init(root, SCHEMA)
    shutil.rmtree(root)
    with omnigraph.init(root, SCHEMA) as other:
        other.load(person("a"))
        other.load(person("b"))
    with pytest.raises(omnigraph.ConflictError, match="another graph now"):
        mine.snapshot()
    with pytest.raises(omnigraph.OmnigraphError):
        mine.load(person("c"))


def test_a_long_lived_writer_keeps_a_bounded_window(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(120):
            graph.load(city(f"c{i}"))
        branch: Branch = graph._repository.branch("main")
        assert len(branch.head.snapshot.commits) == 50
        commits = graph.commits()
        assert len(commits) == 121
        assert [c.manifest_version for c in commits] == list(range(121, 0, -1))


@pytest.mark.parametrize("folder", ["run-403", "bucket-9", "503 timeout", "not found"])
def test_the_name_of_a_folder_does_not_change_a_diagnosis(tmp_path: Path, folder: str) -> None:
    root = tmp_path / folder
    root.mkdir()
    with pytest.raises(omnigraph.NotFoundError):
        omnigraph.open(root)
    with omnigraph.init(root, SCHEMA) as graph:
        graph.load(person("a"))
    for file in root.glob("nodes/*/data/*"):
        file.unlink()
    with omnigraph.open(root) as graph, pytest.raises(omnigraph.CorruptionError):
        names(graph)


@pytest.mark.parametrize("hint", ['{"version":1e999}', '{"version":"2"}', '{"version":0}',
                                  '{"version":1000000000000000000000000000}', "[]", "\xff"])  # fmt: skip
def test_a_nonsensical_hint_is_no_hint(tmp_path: Path, hint: str) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load(person("a"))
    (tmp_path / "g" / "__manifest" / "_head.json").write_text(hint, encoding="latin-1")
    with omnigraph.open(tmp_path / "g") as graph:
        assert names(graph) == ["a"]


def test_paths_with_parent_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with omnigraph.init("../up/../graph", SCHEMA) as graph:
        graph.load(person("a"))
    with omnigraph.open(tmp_path / "graph") as graph:
        assert names(graph) == ["a"]


@pytest.mark.parametrize(
    "uri", ["~nosuchuser/x", "a\nb", "s3://bucket/a//b", "s3://bucket/a/../b", "s3://bucket/./a"]
)
def test_places_that_cannot_be(uri: str) -> None:
    with pytest.raises(omnigraph.UsageError):
        omnigraph.open(uri)


def test_file_uris_keep_hash_and_question_mark(tmp_path: Path) -> None:
    with omnigraph.init(f"file://{tmp_path}/a#b?c", SCHEMA):
        assert os.path.isdir(tmp_path / "a#b?c")
