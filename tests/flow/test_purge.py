"""A hard drop deletes what it drops, at once, as far as nobody else needs it, and says what is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ErrorKind, StorageError
from omnigraph.failpoints import FailPoint, armed
from omnigraph.housekeeping.intents import Lease
from omnigraph.storage.objects import Objects
from omnigraph.upkeep.cleanup import cleanup
from omnigraph.upkeep.retention import Policy

SCHEMA = """
node Person { name: String @key  secret: String?  age: I64? @index }
node Pet { name: String @key }
edge Knows: Person -> Person
"""
NO_SECRET = SCHEMA.replace("secret: String?", "")
NO_PERSON = "node Pet { name: String @key }\n"
SECRET = "hunter2-hunter2"


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        fill(made)
        yield made


def fill(graph: omnigraph.Graph) -> None:
    for name in "abc":
        person = {"name": name, "secret": f"{SECRET}-{name}", "age": 1}
        graph.load([{"type": "Person", "data": person}])
    graph.load([{"type": "Pet", "data": {"name": "rex"}}])
    graph.load([{"edge": "Knows", "from": "a", "to": "b"}])
    graph.settle()


def is_anywhere(graph: omnigraph.Graph, text: str = SECRET) -> bool:
    """Whether some file below the root has a text in it."""
    graph.settle()
    files = [p for p in Path(graph.uri).rglob("*") if p.is_file()]
    return any(text.encode() in p.read_bytes() for p in files)


def people(graph: omnigraph.Graph, at: str = "main") -> list[str]:
    with omnigraph.open(graph.uri) as fresh:
        return [row["name"] for row in fresh.at(at).rows("Person")]


def is_reclaimed(graph: omnigraph.Graph, at: str, type_name: str) -> bool:
    with omnigraph.open(graph.uri) as fresh:
        try:
            list(fresh.at(at).rows(type_name))
        except omnigraph.NotFoundError as e:
            return e.kind is ErrorKind.HISTORY_RECLAIMED
        return False


def test_a_property_is_gone_from_every_file(graph: omnigraph.Graph) -> None:
    before = graph.snapshot().commit.id
    graph.optimize()
    assert is_anywhere(graph)
    done = graph.schema_apply(NO_SECRET, allow_data_loss=True)
    assert done.purged is not None
    assert done.purged.complete, done.purged
    assert done.purged.dropped == ("Person.secret",)
    assert done.purged.files_removed > 0
    assert not is_anywhere(graph)
    assert sorted(people(graph)) == ["a", "b", "c"]
    assert is_reclaimed(graph, before, "Person")
    with omnigraph.open(graph.uri) as fresh:
        with pytest.raises(omnigraph.NotFoundError):
            fresh.tags.create("old", before)
        with pytest.raises(omnigraph.NotFoundError):
            fresh.reset(before)
        assert fresh.upkeep.check(full=True).ok
        assert fresh.upkeep.status().advice == ()
        assert len(fresh.query("match { $p: Person { age: 1 } } return { $p.name }")) == 3
        assert cleanup(fresh._repository, Policy(keep=1), confirm=True).errors == ()
        assert cleanup(fresh._repository, Policy(keep=1)).places == ()


def test_a_type_is_gone_with_its_table(graph: omnigraph.Graph) -> None:
    before = graph.snapshot().commit.id
    done = graph.schema_apply(NO_PERSON, allow_data_loss=True)
    assert done.purged is not None
    assert set(done.purged.dropped) == {"Person", "Knows"}
    assert done.purged.complete
    assert not is_anywhere(graph)
    assert is_reclaimed(graph, before, "Person")
    assert is_reclaimed(graph, before, "Knows")
    assert graph.snapshot().count("Pet") == 1


def test_a_soft_drop_deletes_nothing(graph: omnigraph.Graph) -> None:
    before = graph.snapshot().commit.id
    done = graph.schema_apply(NO_SECRET, confirm=True)
    assert done.purged is None
    assert done.to_dict()["purged"] is None
    assert is_anywhere(graph)
    assert sorted(people(graph, before)) == ["a", "b", "c"]


def test_a_type_that_never_had_rows_needs_no_purge(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        assert graph.schema_apply(NO_PERSON, allow_data_loss=True).purged is None
        assert graph._repository.head("main").snapshot.swept == 0


def test_branches_and_tags_keep_theirs_and_are_named(graph: omnigraph.Graph) -> None:
    graph.tags.create("v1")
    graph.branches.create("work")
    graph.load([{"type": "Pet", "data": {"name": "tom"}}], branch="work")
    done = graph.schema_apply(NO_SECRET, allow_data_loss=True)
    assert done.purged is not None
    assert not done.purged.complete
    assert {"branch work", "tag v1"} <= set(done.purged.still_in)
    assert is_anywhere(graph)
    assert sorted(people(graph, "work")) == sorted(people(graph, "v1")) == ["a", "b", "c"]
    (advice,) = graph.upkeep.status().advice
    assert advice.startswith("omnigraph cleanup --keep 1")
    assert "Person.secret" in advice
    assert "tag v1" in advice
    assert done.purged.next is not None
    # Once nobody needs it any more, the command that was named takes the rest.
    graph.tags.delete("v1")
    graph.branches.delete("work")
    assert cleanup(graph._repository, Policy(keep=1), confirm=True).errors == ()
    assert not is_anywhere(graph)
    assert graph.upkeep.status().advice == ()


def test_a_drop_on_a_branch_leaves_main_alone(graph: omnigraph.Graph) -> None:
    graph.branches.create("work")
    graph.load([{"type": "Person", "data": {"name": "w", "secret": "only-on-work"}}], branch="work")
    assert is_anywhere(graph, "only-on-work")
    done = graph.schema_apply(NO_SECRET, branch="work", allow_data_loss=True)
    assert done.purged is not None
    assert not is_anywhere(graph, "only-on-work")
    assert is_anywhere(graph)
    assert "branch main" in done.purged.still_in
    assert sorted(people(graph)) == ["a", "b", "c"]
    assert sorted(people(graph, "work")) == ["a", "b", "c", "w"]
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.merge("work").outcome in ("merged", "fast_forward")
        assert "secret" not in fresh.catalog.nodes["Person"].by_name
    assert sorted(people(graph)) == ["a", "b", "c", "w"]


@pytest.mark.parametrize(
    "point", [FailPoint.STAGE_AFTER_PIN, FailPoint.PUBLISH_BEFORE_COMMIT], ids=str
)
def test_a_writer_that_stalled_publishes_intact_data(
    graph: omnigraph.Graph, point: FailPoint
) -> None:
    with omnigraph.open(graph.uri) as other:

        def meanwhile() -> None:
            assert graph.schema_apply(NO_SECRET, allow_data_loss=True).purged is not None

        with armed(point, meanwhile):
            other.load([{"type": "Person", "data": {"name": "late", "age": 2}}])
        other.settle()
    assert sorted(people(graph)) == ["a", "b", "c", "late"]
    assert graph.upkeep.check(full=True).ok


def test_a_long_write_that_runs_is_spared(graph: omnigraph.Graph) -> None:
    repository = graph._repository
    operation = repository.ids.ulid()
    lease = Lease(repository.objects, operation)
    head = repository.head("main").snapshot
    plan = (
        f'{{"operation_id":"{operation}","kind":"load","branch":"main","long":true,'
        f'"base_manifest_version":{head.version},"tables":[]}}'
    )
    lease.hold(plan.encode())
    try:
        done = graph.schema_apply(NO_SECRET, allow_data_loss=True)
    finally:
        lease.end()
    assert done.purged is not None
    assert done.purged.spared == (operation,)
    assert not done.purged.complete
    assert is_anywhere(graph)


def test_what_the_store_refuses_is_told_and_the_drop_stands(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: Objects, names: list[str]) -> None:
        raise StorageError("access denied", kind=ErrorKind.STORAGE_DENIED)

    with monkeypatch.context() as patched:
        patched.setattr(Objects, "delete", refuses)
        done = graph.schema_apply(NO_SECRET, allow_data_loss=True)
    assert done.commit is not None
    assert done.purged is not None
    assert done.purged.error == "access denied"
    assert done.purged.next is not None
    assert is_anywhere(graph)
    assert cleanup(graph._repository, Policy(keep=1), confirm=True).errors == ()
    assert not is_anywhere(graph)


def test_a_purge_that_dies_is_finished_by_a_cleanup(graph: omnigraph.Graph) -> None:
    def die() -> None:
        raise KeyboardInterrupt

    with armed(FailPoint.CLEANUP_AFTER_ANNOUNCEMENT, die), pytest.raises(KeyboardInterrupt):
        graph.schema_apply(NO_SECRET, allow_data_loss=True)
    with omnigraph.open(graph.uri) as fresh:
        assert "secret" not in fresh.catalog.nodes["Person"].by_name
        assert cleanup(fresh._repository, Policy(keep=9), confirm=True).errors == ()
    assert not is_anywhere(graph)


def test_on_every_kind_of_store(store_root: str) -> None:
    with omnigraph.init(store_root, SCHEMA) as graph:
        fill(graph)
        done = graph.schema_apply(NO_SECRET, allow_data_loss=True)
        assert done.purged is not None
        assert done.purged.error is None
        assert done.purged.still_in == ()
        # A store that counts seconds leaves what is as young as the drop, and that is told.
        assert done.purged.complete or done.purged.too_young
        assert graph.snapshot().count("Person") == 3
