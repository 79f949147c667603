"""Main's tables as any Lance program sees them: at the published version, whatever was written."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset

import omnigraph
from omnigraph.failpoints import ArmedAction, FailPoint, armed
from omnigraph.housekeeping.mirror import RECORD, _note, shown_now
from omnigraph.housekeeping.projection import COMMITS_PER_TURN
from omnigraph.manifest.snapshot import MAIN
from omnigraph.storage.mirror import VERSIONS_KEPT, MirrorState, mirror_head, mirror_path
from omnigraph.storage.tables import Table

SCHEMA = """
node Person { name: String @key  age: I64? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""


def person(name: str, age: int | None = None) -> dict:
    return {"type": "Person", "data": {"name": name, "age": age}}


def knows(source: str, target: str) -> dict:
    return {"edge": "Knows", "from": source, "to": target}


def plain(graph: omnigraph.Graph, type_name: str = "Person") -> lance.LanceDataset:
    """The table as a program opens it that knows nothing of graphs."""
    graph.upkeep.mirror()
    location = graph._repository.location
    return lance.dataset(
        location.table_uri(mirror_path(type_name)), storage_options=dict(location.options) or None
    )


def state(graph: omnigraph.Graph, type_name: str = "Person") -> MirrorState:
    pins = graph._repository.head(MAIN).snapshot.pins
    shown = next(pin.name for key, pin in pins.items() if key.endswith(f":{type_name}"))
    return mirror_head(graph._repository.location, mirror_path(type_name), shown).state


def assert_mirrored(graph: omnigraph.Graph, *type_names: str) -> None:
    for name in type_names or ("Person",):
        found = plain(graph, name).to_table(columns=["id"])
        rows = sorted(row["id"] for row in found.to_pylist())
        assert rows == sorted(row["id"] for row in graph.snapshot().rows(name))
        assert state(graph, name) is MirrorState.CURRENT


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as opened:
        opened.load([person("ada", 1), person("bob", 2), knows("ada", "bob")])
        yield opened


def test_every_kind_of_write_is_seen(graph: omnigraph.Graph) -> None:
    assert_mirrored(graph, "Person", "Knows")
    graph.load([person("cy", 3)])
    assert_mirrored(graph)
    graph.load([person("ada", 10)], mode="merge")
    assert_mirrored(graph)
    graph.mutate('delete Person where name = "bob"')
    assert_mirrored(graph, "Person", "Knows")
    graph.load([person("new")], mode="overwrite")
    assert_mirrored(graph)
    graph.optimize()
    assert_mirrored(graph, "Person", "Knows")
    graph.schema_apply(SCHEMA.replace("age: I64?", "age: I64?  size: I32?"))
    assert_mirrored(graph)
    assert "size" in plain(graph).schema.names


def test_on_a_bucket(s3_root: str) -> None:
    with omnigraph.init(s3_root, SCHEMA) as graph:
        graph.load([person("ada"), knows("ada", "ada")])
        for i in range(3):
            graph.load([person(f"p{i}")])
        assert_mirrored(graph, "Person", "Knows")
        commit = list(graph.commits())[2].id
        graph.reset(commit)
        assert_mirrored(graph, "Person", "Knows")


def test_branches_are_not_mirrored_until_they_are_merged(graph: omnigraph.Graph) -> None:
    graph.branches.create("work")
    for i in range(3):
        graph.load([person(f"w{i}")], branch="work")
    assert_mirrored(graph)
    graph.merge("work")
    assert_mirrored(graph)
    assert plain(graph).count_rows() == 5


def test_a_merge_may_lead_to_a_lower_number(graph: omnigraph.Graph) -> None:
    graph.branches.create("work")
    for i in range(4):
        graph.load([person(f"m{i}")])
    graph.load([person("w")], branch="work")
    graph.reset(list(graph.commits())[4].id)  # Main is where the branch began.
    assert_mirrored(graph)
    graph.merge("work")
    assert_mirrored(graph)


def test_a_reset_hides_what_was_mirrored_since(graph: omnigraph.Graph) -> None:
    before = next(iter(graph.commits())).id
    for i in range(3):
        graph.load([person(f"p{i}")])
    assert_mirrored(graph)
    graph.reset(before)
    assert_mirrored(graph)
    graph.load([person("other")])
    assert_mirrored(graph)
    graph.load([person("another")])
    assert_mirrored(graph)


def test_a_dropped_type_is_no_table_any_more(graph: omnigraph.Graph) -> None:
    graph.load([{"type": "City", "data": {"name": "Rome"}}])
    uri = plain(graph, "City").uri
    graph.schema_apply(SCHEMA.replace("node City { name: String @key }\n", ""), confirm=True)
    graph.upkeep.mirror()
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(uri)
    assert_mirrored(graph)


def test_only_the_newest_versions_stay(graph: omnigraph.Graph, tmp_path: Path) -> None:
    for i in range(3 * VERSIONS_KEPT):
        graph.load([person(f"p{i}")])
        graph.upkeep.mirror()
    folder = tmp_path / "g" / mirror_path("Person")
    assert len(list(folder.glob("_versions/*"))) == VERSIONS_KEPT + 1, "and Lance's own hint"
    assert len(list(folder.glob("_transactions/*"))) <= VERSIONS_KEPT + 1
    assert_mirrored(graph)


def test_closing_and_every_32nd_commit_mirror_by_themselves(tmp_path: Path) -> None:
    uri = str(tmp_path / "g" / "tables" / "Person.lance")
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([person("p0")])
        graph.settle()
        with pytest.raises(ValueError, match="not found"):
            lance.dataset(uri)
    assert lance.dataset(uri).count_rows() == 1
    with omnigraph.open(tmp_path / "g") as graph:
        for i in range(2, COMMITS_PER_TURN):
            graph.load([person(f"p{i}")])
        graph.settle()
        assert lance.dataset(uri).count_rows() == COMMITS_PER_TURN - 1
    with omnigraph.open(tmp_path / "g") as graph:
        assert graph.snapshot().count("Person") == COMMITS_PER_TURN - 1
    assert lance.dataset(uri).version == 4, "who only reads makes no version"
    history = lance.dataset(str(tmp_path / "g" / "_graph_commits.lance"))
    assert history.count_rows() == COMMITS_PER_TURN


def test_other_handles_and_bursts_are_mirrored(graph: omnigraph.Graph, tmp_path: Path) -> None:
    with omnigraph.open(tmp_path / "g") as other:
        for i in range(6):
            graph.load([person(f"a{i}")])
            graph.upkeep.mirror()
            other.load([person(f"b{i}")])
            other.upkeep.mirror()
        assert_mirrored(graph)
        for _ in range(60):  # Small files are joined on the way: several versions at once.
            graph.load([knows("ada", "bob")])
        assert_mirrored(graph, "Knows")


def test_many_that_mirror_at_once_get_one_after_the_other(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    def write_and_mirror(number: int) -> None:
        with omnigraph.open(tmp_path / "g") as own:
            for i in range(5):
                own.load([person(f"p{number}-{i}")])
                own.load([person(f"p{number}-{i}", i)], mode="merge")
                own.upkeep.mirror()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_and_mirror, range(4)))
    assert plain(graph).count_rows() == 22
    assert_mirrored(graph)


def test_who_died_before_is_made_up_for(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.upkeep.mirror()
    dying = omnigraph.open(tmp_path / "g")
    dying.load([person("lost"), knows("lost", "ada")])
    with armed(FailPoint.SETTLE_BEFORE_MIRROR, ArmedAction.RAISE) as arm:
        dying.close()
    assert arm.fired == 1
    with omnigraph.open(tmp_path / "g") as other:
        other.load([{"type": "City", "data": {"name": "Rome"}}])
    assert lance.dataset(str(tmp_path / "g" / "tables" / "Knows.lance")).count_rows() == 2
    assert_mirrored(graph, "Person", "Knows", "City")


def test_what_was_noted_down_may_be_wrong(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.upkeep.mirror()
    for wrong in (b"no json", b"[]", b'{"Person":"x","Gone":"y"}'):
        (tmp_path / "g" / RECORD).write_bytes(wrong)
        graph.load([person(f"p{len(wrong)}")])
        assert_mirrored(graph, "Person", "Knows")


def test_a_mirror_that_cannot_be_written_fails_no_write(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    graph.upkeep.mirror()
    versions = tmp_path / "g" / mirror_path("Person") / "_versions"
    aside = versions.rename(versions.with_name("aside"))
    versions.write_text("no folder")
    graph.load([person("cy")])
    graph.close()
    versions.unlink()
    aside.rename(versions)
    assert lance.dataset(str(versions.parent)).count_rows() == 2
    graph = omnigraph.open(tmp_path / "g")
    assert graph.snapshot().count("Person") == 3
    graph.load([person("dee")])
    assert_mirrored(graph)


def test_what_another_program_does_stays_out_of_the_graph(graph: omnigraph.Graph) -> None:
    graph.branches.create("work")
    foreign = plain(graph)
    foreign.delete("name = 'ada'")
    for i in range(3):
        graph.load([person(f"p{i}")])
        graph.load([person(f"w{i}")], branch="work")
        graph.upkeep.mirror()
    assert lance.dataset(foreign.uri).version == foreign.version, "nothing is put on top of it"
    assert lance.dataset(foreign.uri).count_rows() == 1
    assert graph.snapshot().count("Person") == 5
    assert sorted(r["name"] for r in graph.snapshot("work").rows("Person")) == [
        "ada",
        "bob",
        "w0",
        "w1",
        "w2",
    ]
    assert state(graph) is MirrorState.DRIFTED
    assert graph.upkeep.check().findings[0].code == "drift"


def test_what_another_program_removes_is_not_ours(graph: omnigraph.Graph) -> None:
    from datetime import timedelta

    for i in range(4):
        graph.load([person(f"p{i}")])
    foreign = plain(graph)
    foreign.optimize.compact_files()
    foreign.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert graph.upkeep.check(full=True).findings[0].code == "drift"
    assert graph.snapshot().count("Person") == 6
    assert [row["name"] for row in graph.snapshot().rows("Person")][:2] == ["ada", "bob"]


def test_branches_and_main_never_meet_in_a_mirror(graph: omnigraph.Graph) -> None:
    """Lance rebases a commit onto what lies beside it: the mirror has to lie elsewhere."""
    graph.branches.create("work")
    for i in range(4):
        graph.load([person(f"m{i}")])
        graph.upkeep.mirror()
    graph.load([person("w")], branch="work")
    graph.load([{"type": "City", "data": {"name": "Rome"}}])
    graph.upkeep.mirror()
    graph.load([{"type": "City", "data": {"name": "Oslo"}}], branch="work")
    assert sorted(r["name"] for r in graph.snapshot("work").rows("Person")) == ["ada", "bob", "w"]
    assert [r["name"] for r in graph.snapshot("work").rows("City")] == ["Oslo"]
    assert_mirrored(graph, "Person", "City")


def test_a_graph_that_was_copied_refers_to_itself_again(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    graph.upkeep.mirror()
    shutil.copytree(tmp_path / "g", tmp_path / "copy")
    with omnigraph.open(tmp_path / "copy") as copy:
        assert state(copy) is MirrorState.LAGGING
        copy.load([person("cy")])
        assert_mirrored(copy)
        copy.upkeep.repair(confirm=True)
        assert_mirrored(copy, "Person", "Knows")
        bases = plain(copy, "Knows").base_paths().values()
        assert [Path(base.path).is_relative_to(tmp_path / "copy") for base in bases] == [True]
    assert_mirrored(graph, "Person", "Knows")


def test_the_graph_never_needs_the_mirror(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.upkeep.mirror()
    shutil.rmtree(tmp_path / "g" / "tables")
    with omnigraph.open(tmp_path / "g") as again:
        assert again.snapshot().count("Person") == 2
        again.load([person("cy")])
        assert_mirrored(again)
    graph.load([person("dee")])
    assert_mirrored(graph)


def test_blobs_and_vectors_are_read_through_it(tmp_path: Path) -> None:
    schema = "node Doc { name: String @key  pic: Blob?  v: Vector(2)? }"
    big = b"x" * 200_000
    text = "base64:" + base64.b64encode(big).decode()
    with omnigraph.init(tmp_path / "d", schema) as graph:
        graph.load([{"type": "Doc", "data": {"name": "a", "pic": text, "v": [1.0, 2.0]}}])
        graph.load([{"type": "Doc", "data": {"name": "b"}}])
        found = plain(graph, "Doc")
        assert found.take_blobs("pic", indices=[0])[0].readall() == big
        assert found.to_table(columns=["v"])["v"].to_pylist() == [[1.0, 2.0], None]


def test_tables_that_older_code_made_are_mirrored(graph_v1: Path) -> None:
    """Columns that were dropped, added and renamed: numbers of columns have holes."""
    with omnigraph.open(graph_v1) as graph:
        made = graph.upkeep.mirror()
        assert set(made.values()) == {MirrorState.CURRENT}
        for name in made:
            found = plain(graph, name).to_table()
            rows = graph.snapshot().rows(name).to_arrow()
            assert found.num_rows == rows.num_rows
            columns = [n for n in rows.column_names if n in found.column_names and n != "photo"]
            assert len(columns) > 1
            for column in columns:
                assert found[column].to_pylist() == rows[column].to_pylist()


def test_a_cleanup_leaves_what_other_programs_see_whole(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(4):
            graph.load([person(f"p{i}", i)], mode="overwrite")
            graph.settle()
            if i == 1:
                graph.upkeep.mirror()
        known = {commit.id for commit in graph.commits()}
        report = graph.upkeep.cleanup(keep=1, grace=0.0, confirm=True)
        assert report.files_removed
        uri = str(tmp_path / "g" / "tables" / "Person.lance")
        assert lance.dataset(uri).to_table()["name"].to_pylist() == ["p3"]
        history = lance.dataset(str(tmp_path / "g" / "_graph_commits.lance")).to_table()
        assert set(history["graph_commit_id"].to_pylist()) == known
        assert graph.upkeep.check(full=True).ok


def test_nothing_of_another_program_is_removed_unseen(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It commits after somebody looked, and before the mirror begins anew or goes."""
    changed = SCHEMA.replace("age: I64?", "age: I64?  size: I32?")
    without = "node Person { name: String @key  age: I64? }"
    for type_name, schema in (("Person", changed), ("City", without)):
        graph.load([{"type": "City", "data": {"name": type_name}}])
        foreign = plain(graph, type_name)
        graph.schema_apply(schema, confirm=True)

        def too_late(repository, name, foreign=foreign, wanted=type_name):
            if name == wanted:
                monkeypatch.undo()
                foreign.delete("true")
            return shown_now(repository, name)

        monkeypatch.setattr("omnigraph.housekeeping.mirror.shown_now", too_late)
        assert graph.upkeep.mirror()[type_name] == "drifted"
        assert lance.dataset(foreign.uri).count_rows() == 0
        assert lance.dataset(foreign.uri).version == foreign.version


def test_what_is_noted_down_is_what_was_mirrored(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody publishes after a table was mirrored, and before that is noted down."""
    graph.upkeep.mirror()
    graph.load([person("cy")])
    note = "omnigraph.housekeeping.mirror._note"

    def load_and_note(*args, now=_note):
        monkeypatch.undo()
        graph.load([person("dee")])
        now(*args)

    monkeypatch.setattr(note, load_and_note)
    graph.upkeep.mirror()
    assert_mirrored(graph)


def test_names_that_are_no_types_are_forgotten(graph: omnigraph.Graph, tmp_path: Path) -> None:
    graph.upkeep.mirror()
    for wrong in ("../nodes", "a/b", "", "."):
        (tmp_path / "g" / RECORD).write_text(json.dumps({wrong: "x"}))
        assert set(graph.upkeep.mirror()) == {"Person", "Knows"}
        assert wrong not in json.loads((tmp_path / "g" / RECORD).read_text())


def test_what_was_staged_by_who_died_goes_in_the_end(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    graph.upkeep.mirror()
    versions = tmp_path / "g" / mirror_path("Person") / "_versions"
    newest = min(versions.glob("*.manifest"))
    left = newest.rename(newest.with_name(newest.name + "-11111111-1111-4111-8111-111111111111"))
    newest.write_bytes(left.read_bytes())
    for i in range(VERSIONS_KEPT + 1):
        graph.load([person(f"p{i}")])
        graph.upkeep.mirror()
    assert not left.exists()


def test_the_first_part_of_a_table_may_come_back(graph: omnigraph.Graph) -> None:
    """It has the number 0, which Lance takes for none: its deleted rows are found by the number."""
    graph.mutate('delete Person where name = "bob"')
    before = next(iter(graph.commits())).id
    graph.load([person("new")], mode="overwrite")
    graph.load([person("newer")])
    assert_mirrored(graph)
    graph.reset(before)
    assert_mirrored(graph)


def test_a_cleanup_leaves_a_table_alone_that_drifted(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        for i in range(3):
            graph.load([person(f"p{i}", i), {"type": "City", "data": {"name": f"c{i}"}}])
            graph.settle()
        plain(graph).delete("name = 'p1'")
        for i in range(3):
            graph.load([person("q", i), {"type": "City", "data": {"name": f"d{i}"}}], mode="merge")
            graph.settle()
        report = graph.upkeep.cleanup(keep=1, grace=0.0, confirm=True)
        (refused,) = report.errors
        assert refused.type_key == "node:Person"
        assert refused.error is not None
        assert refused.error.startswith("drift_needs_repair")
        assert any(p.type_key == "node:City" and p.files_removed for p in report.places)
        uri = str(tmp_path / "g" / "tables" / "Person.lance")
        assert lance.dataset(uri).to_table().num_rows == 2, "what it made can still be read"
        graph.upkeep.repair(confirm=True, discard=True)
        assert not graph.upkeep.cleanup(keep=1, grace=0.0, confirm=True).errors


def foreign_append(graph: omnigraph.Graph) -> None:
    """Another program adds a row, on the newest version that it finds."""
    uri = graph._repository.location.table_uri(mirror_path("Person"))
    newest = lance.dataset(uri)
    names = ("id", "name")
    row = {name: pa.array(["foreign"], newest.schema.field(name).type) for name in names}
    lance.write_dataset(pa.table(row), uri, mode="append")


@pytest.mark.parametrize("moment", ["before it is staged", "before it is created"])
def test_a_foreign_commit_in_between_is_neither_covered_nor_taken_over(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    before = plain(graph).version
    graph.load([person("cy")])
    mirror, path = graph._repository.mirror, mirror_path("Person")
    commits: list[int] = []

    def once() -> None:
        if not commits:
            commits.append(before + 1)
            foreign_append(graph)

    def now() -> Table | None:
        if moment == "before it is staged":
            once()
        return shown_now(graph._repository, "Person")

    create = mirror._create

    def created(*arguments: Any) -> bool:
        once()
        return create(*arguments)

    monkeypatch.setattr(mirror, "_create", created)
    assert mirror.make(path, now).state is MirrorState.DRIFTED
    found = lance.dataset(graph._repository.location.table_uri(path))
    assert found.version == before + 1
    assert sorted(found.to_table()["name"].to_pylist()) == ["ada", "bob", "foreign"]
    assert graph.snapshot().count("Person") == 3


def test_a_version_that_was_rebased_is_not_created(graph: omnigraph.Graph) -> None:
    """Lance puts a commit on top of one that it takes for harmless, under the next number."""
    before = plain(graph).version
    graph.load([person("cy")])
    path, commits = mirror_path("Person"), list[LanceDataset]()

    def now() -> Table | None:
        if not commits:
            commits.append(lance.dataset(graph._repository.location.table_uri(path)))
            commits[0].update_config({"owner": "somebody"})
        return shown_now(graph._repository, "Person")

    assert graph._repository.mirror.make(path, now).state is MirrorState.DRIFTED
    assert lance.dataset(commits[0].uri).version == commits[0].version == before + 1


def test_mirrors_have_no_indexes(tmp_path: Path) -> None:
    with omnigraph.init(
        tmp_path / "d", "node Doc { name: String @key  text: String @index }"
    ) as graph:
        graph.load([{"type": "Doc", "data": {"name": "a", "text": "b"}}])
        graph.build_indexes()
        graph.upkeep.mirror()
        assert plain(graph, "Doc").describe_indices() == []
