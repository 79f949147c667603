"""What other programs do to main's tables: told apart, taken over, put back, never lost unseen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import NotFoundError, UsageError
from omnigraph.upkeep.repair import DriftKind, RepairAction, TableRepair

SCHEMA = """
node Person { name: String @key  age: I64?  pic: Blob?  @range(age, 0..200) }
edge Knows: Person -> Person { since: I32? }
"""


def person(name: str, age: int | None = None) -> dict:
    return {"type": "Person", "data": {"name": name, "age": age}}


def foreign(graph: omnigraph.Graph, type_name: str = "Person") -> lance.LanceDataset:
    graph.upkeep.mirror()
    return lance.dataset(graph._repository.location.table_uri(f"tables/{type_name}.lance"))


def row_of(report: omnigraph.RepairReport, key: str = "node:Person") -> TableRepair:
    return next(table for table in report.tables if table.type_key == key)


def names(graph: omnigraph.Graph) -> list[str]:
    return sorted(row["name"] for row in graph.snapshot().rows("Person"))


def append(table: lance.LanceDataset, name: str, age: int | None = None, **more: object) -> None:
    row = {"id": name, "name": name, "age": age} | more
    columns = [field for field in table.schema if field.name in row]
    lance.write_dataset(
        pa.table({f.name: pa.array([row[f.name]], f.type) for f in columns}),
        table.uri,
        mode="append",
    )


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as opened:
        opened.load([person("ada", 1), person("bob", 2)])
        opened.load([person("cy", 3), {"edge": "Knows", "from": "ada", "to": "bob"}])
        yield opened


def test_nothing_to_do(graph: omnigraph.Graph) -> None:
    for confirm in (False, True):
        report = graph.upkeep.repair(confirm=confirm)
        assert [t.classification for t in report.tables] == [DriftKind.NO_DRIFT] * 2
        assert {t.action for t in report.tables} == {RepairAction.NO_OP}
        assert not report.commits


def test_joined_files_are_reported_and_put_back(graph: omnigraph.Graph) -> None:
    table = foreign(graph)
    table.optimize.compact_files()
    found = row_of(graph.upkeep.repair())
    assert (found.classification, found.action) == (DriftKind.VERIFIED, RepairAction.PREVIEW)
    assert {done.operation for done in found.operations} == {"ReserveFragments", "Rewrite"}
    assert found.lance_head_version == lance.dataset(table.uri).version
    before = next(iter(graph.commits())).id

    report = graph.upkeep.repair(confirm=True)
    assert row_of(report).action is RepairAction.HEALED
    assert not report.refused
    assert next(iter(graph.commits())).id == before, "no row changed: there is nothing to publish"
    assert not graph.upkeep.repair().drifted
    graph.load([person("dee")])
    assert foreign(graph).count_rows() == 4


def test_optimize_skips_what_drifted_and_says_by_how_much(graph: omnigraph.Graph) -> None:
    table = foreign(graph)
    table.optimize.compact_files()
    head = lance.dataset(table.uri).version
    rows = {t.type_key: t for t in graph.optimize().tables}
    drifted = rows["node:Person"]
    assert (drifted.skipped, drifted.lance_head_version) == ("drift_needs_repair", head)
    pins = graph._repository.head("main").snapshot.pins
    assert drifted.published_dataset_version == pins["node:Person"].name.version
    assert rows["edge:Knows"].committed
    graph.branches.create("work")
    on_branch = {t.type_key: t for t in graph.optimize(branch="work").tables}
    assert on_branch["node:Person"].committed, "only main's tables are mirrored"
    graph.upkeep.repair(confirm=True)
    assert {t.type_key: t for t in graph.optimize().tables}["node:Person"].committed


def test_changed_rows_are_refused_forced_or_discarded(graph: omnigraph.Graph) -> None:
    def change() -> None:
        table = foreign(graph)
        table.delete("name = 'bob'")
        append(lance.dataset(table.uri), "eve", 9)
        lance.dataset(table.uri).update({"age": "7"}, where="name = 'cy'")

    graph.mutate("delete Knows where from = 'ada'".replace("'", '"'))
    change()
    found = row_of(graph.upkeep.repair())
    assert found.classification is DriftKind.SUSPICIOUS
    assert [done.operation for done in found.operations] == ["Delete", "Append", "Update"]
    report = graph.upkeep.repair(confirm=True)
    assert row_of(report).action is RepairAction.REFUSED
    assert [t.type_key for t in report.refused] == ["node:Person"]
    assert names(graph) == ["ada", "bob", "cy"]

    report = graph.upkeep.repair(confirm=True, discard=True)
    assert row_of(report).action is RepairAction.DISCARDED
    assert foreign(graph).count_rows() == 3
    assert not graph.upkeep.repair().drifted

    change()
    report = graph.upkeep.repair(confirm=True, force=True, message="took it over")
    assert row_of(report).action is RepairAction.FORCED
    assert [(c.actor, c.kind, c.message) for c in report.commits] == [
        ("omnigraph:repair:force", "repair", "took it over")
    ]
    change_counts = report.commits[0].changes["node:Person"]
    assert (change_counts.inserted, change_counts.updated, change_counts.deleted) == (1, 1, 1)
    assert names(graph) == ["ada", "cy", "eve"]
    assert {r["name"]: r["age"] for r in graph.snapshot().rows("Person")}["cy"] == 7
    assert not graph.upkeep.repair().drifted
    assert foreign(graph).count_rows() == 3


def test_what_is_forced_obeys_the_schema(graph: omnigraph.Graph) -> None:
    table = foreign(graph)
    append(table, "eve", 999)
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.REFUSED
    assert "range" in (row_of(report).reason or "")
    assert names(graph) == ["ada", "bob", "cy"]
    graph.upkeep.repair(confirm=True, discard=True)

    foreign(graph).delete("name = 'ada'")  # An edge leads there.
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.REFUSED
    graph.upkeep.repair(confirm=True, discard=True)

    append(foreign(graph), "ada", 5)  # An id that is there already.
    report = graph.upkeep.repair(confirm=True, force=True)
    assert "ada" in (row_of(report).reason or "")
    graph.upkeep.repair(confirm=True, discard=True)

    foreign(graph).add_columns({"extra": "age + 1"})
    report = graph.upkeep.repair(confirm=True, force=True)
    assert "columns" in (row_of(report).reason or "")
    assert graph.upkeep.check(full=True).findings[0].code == "drift"
    graph.upkeep.repair(confirm=True, discard=True)
    assert graph.upkeep.check(full=True).ok


def test_the_graph_may_have_moved_on(graph: omnigraph.Graph) -> None:
    table = foreign(graph)
    append(table, "eve", 9)
    graph.load([person("dee", 4)])
    found = row_of(graph.upkeep.repair())
    assert found.overtaken
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.FORCED
    assert names(graph) == ["ada", "bob", "cy", "dee", "eve"], "both are there"

    foreign(graph).update({"age": "50"}, where="name = 'cy'")
    graph.load([person("cy", 51)], mode="merge")
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.REFUSED
    assert "cy" in (row_of(report).reason or "")
    assert {r["name"]: r["age"] for r in graph.snapshot().rows("Person")}["cy"] == 51
    report = graph.upkeep.repair(confirm=True, discard=True)
    assert not graph.upkeep.repair().drifted


def test_what_left_no_record_cannot_be_verified(graph: omnigraph.Graph, tmp_path: Path) -> None:
    table = foreign(graph)
    append(table, "eve", 9)
    newest = lance.dataset(table.uri).version
    for record in (tmp_path / "g" / "tables" / "Person.lance" / "_transactions").glob(
        f"{newest - 1}-*.txn"
    ):
        record.unlink()
    for version in (tmp_path / "g" / "tables" / "Person.lance" / "_versions").glob("*.manifest"):
        if version.name != f"{(1 << 64) - 1 - newest:020d}.manifest":
            version.unlink()
    found = row_of(graph.upkeep.repair())
    assert found.classification is DriftKind.UNVERIFIABLE
    assert found.reason
    assert row_of(graph.upkeep.repair(confirm=True)).action is RepairAction.REFUSED
    assert row_of(graph.upkeep.repair(confirm=True, force=True)).action is RepairAction.REFUSED
    assert row_of(graph.upkeep.repair(confirm=True, discard=True)).action is RepairAction.DISCARDED
    assert foreign(graph).count_rows() == 3


def test_an_index_of_another_program_changes_no_row(graph: omnigraph.Graph) -> None:
    foreign(graph).create_scalar_index("age", "BTREE")
    found = row_of(graph.upkeep.repair())
    assert found.classification is DriftKind.SUSPICIOUS
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.FORCED
    assert not report.commits, "there is no row to publish"


def test_blobs_come_along(graph: omnigraph.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": "pia", "pic": "base64:aGVsbG8="}}])
    foreign(graph).update({"age": "33"}, where="name = 'pia'")
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.FORCED, row_of(report).reason
    found = {r["name"]: r for r in graph.snapshot().rows("Person")}["pia"]
    assert (found["age"], found["pic"]) == (33, b"hello")


def test_only_the_types_that_are_named(graph: omnigraph.Graph) -> None:
    foreign(graph).optimize.compact_files()
    report = graph.upkeep.repair(types=["Knows"], confirm=True)
    assert [t.type_key for t in report.tables] == ["edge:Knows"]
    assert graph.upkeep.repair().drifted
    with pytest.raises(NotFoundError):
        graph.upkeep.repair(types=["Nobody"])


def test_wishes_that_contradict_each_other(graph: omnigraph.Graph) -> None:
    with pytest.raises(UsageError, match="needs --confirm"):
        graph.upkeep.repair(force=True)
    with pytest.raises(UsageError, match="needs --confirm"):
        graph.upkeep.repair(discard=True)
    with pytest.raises(UsageError, match="either"):
        graph.upkeep.repair(confirm=True, force=True, discard=True)


def refusal(graph: omnigraph.Graph, key: str = "node:Person") -> str:
    """Why a foreign change is not forced in; it is put back then."""
    found = row_of(graph.upkeep.repair(confirm=True, force=True), key)
    assert found.action is RepairAction.REFUSED
    graph.upkeep.repair(confirm=True, discard=True)
    return found.reason or ""


def test_an_id_is_made_of_the_key_whoever_writes(graph: omnigraph.Graph) -> None:
    table = foreign(graph)
    append(table, "eve", id="other")
    assert "other" in refusal(graph)
    foreign(graph).update({"name": "'new'"}, where="name = 'cy'")
    assert "cy" in refusal(graph)
    assert names(graph) == ["ada", "bob", "cy"]


def test_two_rows_of_one_id_are_not_chosen_from(graph: omnigraph.Graph) -> None:
    table = foreign(graph)
    rows = table.to_table(columns=["id", "name", "age"])
    older = rows.set_column(2, "age", pa.array([9] * rows.num_rows, pa.int64()))
    table.delete("true")
    lance.write_dataset(pa.concat_tables([rows, older.slice(2)]), table.uri, mode="append")
    assert "cy" in refusal(graph)


def test_columns_may_have_changed_since(graph: omnigraph.Graph) -> None:
    """A column of the same name may be another one."""
    without = SCHEMA.replace("age: I64?", "").replace("@range(age, 0..200)", "")
    for schemas in (
        [SCHEMA.replace("age: I64?", "age: I64?  size: I32?")],
        [without, SCHEMA],
    ):
        foreign(graph).update({"age": "50"}, where="name = 'cy'")
        for schema in schemas:
            graph.schema_apply(schema, confirm=True)
        assert "columns" in refusal(graph)
    assert {r["age"] for r in graph.snapshot().rows("Person")} == {None}


def test_a_type_may_be_another_one_since(graph: omnigraph.Graph) -> None:
    graph.mutate('delete Knows where from = "ada"')
    foreign(graph).delete("name = 'ada'")
    graph.schema_apply("node Other { name: String @key }", confirm=True)
    graph.schema_apply(SCHEMA, confirm=True)
    graph.load([person("ada", 1)])
    assert "another table" in refusal(graph)
    assert names(graph) == ["ada"]


def test_a_mirror_that_cannot_be_read_is_in_nobodys_way(
    graph: omnigraph.Graph, tmp_path: Path
) -> None:
    """A power cut may leave an empty file: nothing of the graph depends on it."""
    for damage in (b"", b"no manifest"):
        table = foreign(graph)
        newest = min((tmp_path / "g" / "tables" / "Person.lance").glob("_versions/*.manifest"))
        newest.write_bytes(damage)
        graph.load([person(f"p{len(damage)}")])
        assert graph.upkeep.mirror()["Person"] == "drifted"
        skipped = {t.type_key: t.skipped for t in graph.optimize().tables}
        assert skipped["node:Person"] == "drift_needs_repair"
        found = row_of(graph.upkeep.repair())
        assert (found.classification, bool(found.reason)) == (DriftKind.UNVERIFIABLE, True)
        assert row_of(graph.upkeep.repair(confirm=True)).action is RepairAction.REFUSED
        assert row_of(graph.upkeep.repair(confirm=True, force=True)).action is RepairAction.REFUSED
        report = graph.upkeep.repair(confirm=True, discard=True)
        assert row_of(report).action is RepairAction.DISCARDED
        assert lance.dataset(table.uri).count_rows() == graph.snapshot().count("Person")


def test_who_died_after_the_write_can_repeat_it(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.load([{"type": "Person", "data": {"name": "pia", "pic": "base64:aGVsbG8="}}])
    table = foreign(graph)
    append(table, "eve", 9)
    lance.dataset(table.uri).update({"age": "7"}, where="name = 'pia'")
    lance.dataset(table.uri).delete("name = 'cy'")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("omnigraph.storage.mirror.Mirror.put_back", die)
        with pytest.raises(KeyboardInterrupt):
            graph.upkeep.repair(confirm=True, force=True)
    assert names(graph) == ["ada", "bob", "eve", "pia"]
    append(lance.dataset(table.uri), "fay", 1)
    report = graph.upkeep.repair(confirm=True, force=True)
    assert row_of(report).action is RepairAction.FORCED, row_of(report).reason
    assert names(graph) == ["ada", "bob", "eve", "fay", "pia"]
    assert not graph.upkeep.repair().drifted


def test_tables_that_need_each_other_are_forced_together(graph: omnigraph.Graph) -> None:
    foreign(graph, "Knows").delete("true")
    foreign(graph).delete("name = 'bob'")
    report = graph.upkeep.repair(confirm=True, force=True)
    assert {t.action for t in report.tables} == {RepairAction.FORCED}
    assert names(graph) == ["ada", "cy"]
    assert not graph.upkeep.repair().drifted
