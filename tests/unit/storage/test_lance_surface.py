"""What we rely on in Lance, pinned: an upgrade that changes one of these fails here first.

Each test names a behaviour that no type or document of Lance promises us (docs/adr/0001).
"""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance import LanceDataset, LanceOperation
from lance.commit import CommitConflictError
from lance.fragment import DeletionFile, write_fragments

from omnigraph.storage.index_answers import highest_fragment
from omnigraph.storage.names import TABLE_ID, ManifestFile
from omnigraph.storage.namespace import StagingNamespace

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("n", pa.int64())])


def rows(*ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "n": list(range(len(ids)))}, schema=SCHEMA)


class Staging:
    """A table that only exists in a staging namespace."""

    def __init__(self, place: Path) -> None:
        self.uri = str(place)
        self.space = StagingNamespace(self.uri, {})

    def commit(self, base, operation) -> LanceDataset:
        version = {} if isinstance(base, str) else {"read_version": base.version}
        return LanceDataset.commit(
            base,
            operation,
            namespace_client=self.space,
            table_id=TABLE_ID,
            namespace_client_managed_versioning=True,
            enable_stable_row_ids=True,
            max_retries=0,
            **version,
        )

    def create(self, *ids: str) -> LanceDataset:
        files = write_fragments(rows(*ids), self.uri, schema=SCHEMA, mode="create")
        return self.commit(self.uri, LanceOperation.Overwrite(SCHEMA, files))

    def append(self, base: LanceDataset, *ids: str) -> LanceDataset:
        return self.commit(base, LanceOperation.Append(write_fragments(rows(*ids), base)))


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(tmp_path / "table")


def ids(dataset: LanceDataset) -> list[str]:
    return dataset.to_table(columns=["id"])["id"].to_pylist()


def test_a_managed_commit_moves_no_head(staging: Staging) -> None:
    staged = staging.append(staging.create("a"), "b")
    assert ids(staged) == ["a", "b"]
    assert not list(Path(staging.uri).glob("_versions/*.manifest"))
    with pytest.raises(ValueError, match="not found"):
        lance.dataset(staging.uri)


def test_files_written_for_a_new_table_can_be_appended_to_it_later(staging: Staging) -> None:
    """When two writers create a table at once, the loser's files go on top of the winner's."""
    late = write_fragments(rows("z"), staging.uri, schema=SCHEMA, mode="create")
    base = staging.create("a")
    assert ids(staging.commit(base, LanceOperation.Append(late))) == ["a", "z"]


def test_a_version_opens_by_the_path_of_its_manifest_and_nothing_is_written(
    staging: Staging,
) -> None:
    staged = staging.append(staging.create("a"), "b")
    made = staging.space.staged(staged.version)
    final = Path(staging.uri) / "_graph" / "x.manifest"
    final.parent.mkdir()
    final.write_bytes((Path("/") / made.path).read_bytes())
    before = sorted(Path(staging.uri).rglob("*"))
    space = StagingNamespace(
        staging.uri, {staged.version: ManifestFile(path=str(final).lstrip("/"), size=made.size)}
    )
    opened = space.opened(staged.version)
    assert ids(opened) == ["a", "b"]
    assert sorted(Path(staging.uri).rglob("*")) == before


def test_stable_row_ids_survive_a_staged_upsert(staging: Staging) -> None:
    base = staging.create("a", "b")
    transaction, _ = (
        base.merge_insert("id")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute_uncommitted(rows("b", "c"))
    )
    staged = staging.commit(base, transaction)
    table = staged.scanner(columns=["id"], with_row_id=True).to_table()
    found = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
    assert found == {"a": 0, "b": 1, "c": 2}


def test_a_staged_delete_by_key_removes_exactly_those_rows(staging: Staging) -> None:
    base = staging.create("a", "b", "c")
    transaction, _ = (
        base.merge_insert("id").when_matched_delete().execute_uncommitted(pa.table({"id": ["b"]}))
    )
    assert ids(staging.commit(base, transaction)) == ["a", "c"]


def test_row_counts_and_fragments_come_from_metadata(staging: Staging) -> None:
    staged = staging.append(staging.create("a", "b"), "c")
    for file in Path(staging.uri).glob("data/*"):
        file.unlink()
    assert staged.count_rows() == 3
    assert [f.count_rows() for f in staged.get_fragments()] == [2, 1]


def test_a_scan_in_order_follows_fragments(staging: Staging) -> None:
    dataset = staging.create("a")
    for i in range(20):
        dataset = staging.append(dataset, f"r{i}")
    fragments = dataset.get_fragments()[5:10]
    table = dataset.scanner(columns=["id"], fragments=fragments, scan_in_order=True).to_table()
    assert table["id"].to_pylist() == [f"r{i}" for i in range(4, 9)]


def test_typed_filters_are_accepted(staging: Staging) -> None:
    dataset = staging.create("a", "it's", 'say "x"')
    wanted = ["it's", 'say "x"']
    assert dataset.to_table(filter=pc.field("id").isin(wanted))["id"].to_pylist() == wanted


def test_overwrite_is_strict_where_append_is_rebased(tmp_path: Path) -> None:
    """The reason why a publish is an Overwrite: of two stale writers, one must lose."""
    base = lance.write_dataset(rows("a"), tmp_path / "m")
    overwrite = [
        LanceOperation.Overwrite(SCHEMA, write_fragments(rows(i), base, mode="overwrite"))
        for i in ("b", "c")
    ]
    won = LanceDataset.commit(base, overwrite[0], read_version=1, max_retries=0)
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(base, overwrite[1], read_version=1, max_retries=0)
    assert won.version == 2
    stale = LanceOperation.Append(write_fragments(rows("d"), won))
    LanceDataset.commit(won, stale, read_version=2, max_retries=0)
    rebased = LanceDataset.commit(won, stale, read_version=2, max_retries=0)
    assert rebased.version == 4, "append is rebased: it could never be the door"


def test_manifest_names_count_down(tmp_path: Path) -> None:
    lance.write_dataset(rows("a"), tmp_path / "m")
    lance.write_dataset(rows("b"), tmp_path / "m", mode="overwrite")
    names = {p.name for p in (tmp_path / "m" / "_versions").glob("*.manifest")}
    assert names == {f"{(1 << 64) - 1 - version:020d}.manifest" for version in (1, 2)}


def test_schema_metadata_of_an_overwrite_is_kept(tmp_path: Path) -> None:
    base = lance.write_dataset(rows("a"), tmp_path / "m")
    stamped = SCHEMA.with_metadata({"omnigraph.format": "1"})
    files = write_fragments(rows("b").cast(stamped), base, mode="overwrite")
    LanceDataset.commit(
        base, LanceOperation.Overwrite(stamped, files), read_version=1, max_retries=0
    )
    assert lance.dataset(tmp_path / "m").schema.metadata == {b"omnigraph.format": b"1"}


def test_creating_twice_says_so(tmp_path: Path) -> None:
    lance.write_dataset(rows("a"), tmp_path / "m", mode="create")
    with pytest.raises(OSError, match="already exists"):
        lance.write_dataset(rows("a"), tmp_path / "m", mode="create")


def test_blobs_come_back_as_bytes_when_asked(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("id", pa.string()), lance.blob_field("data")])
    table = pa.table([pa.array(["a", "b"]), lance.blob_array([b"", None])], schema=schema)
    dataset = lance.write_dataset(table, tmp_path / "m", data_storage_version="2.2")
    read = dataset.scanner(columns=["data"], blob_handling="all_binary").to_table()
    assert read["data"].to_pylist() == [b"", None]


def test_a_deletion_file_and_data_files_name_a_fragment(staging: Staging) -> None:
    base = staging.create("a", "b")
    transaction, _ = (
        base.merge_insert("id").when_matched_delete().execute_uncommitted(pa.table({"id": ["b"]}))
    )
    metadata = staging.commit(base, transaction).get_fragments()[0].metadata
    assert (Path(staging.uri) / "data" / metadata.files[0].path).exists()
    assert (Path(staging.uri) / metadata.deletion_file.path(metadata.id)).exists()


def test_a_managed_commit_is_rebased_onto_what_lies_beside_it(staging: Staging) -> None:
    """Why the mirror of a table must not lie in its folder (ADR 0017)."""
    base = staging.create("a")
    other = staging.append(base, "foreign")
    staged = Path("/" + staging.space.staged(other.version).path)
    name = f"{(1 << 64) - 1 - other.version:020d}.manifest"
    staged.rename(staged.with_name(name))
    mine = Staging(Path(staging.uri))
    mine.space = StagingNamespace(staging.uri, {base.version: staging.space.staged(base.version)})
    made = mine.append(base, "b")
    assert made.version == base.version + 2
    assert sorted(made.to_table()["id"].to_pylist()) == ["a", "b", "foreign"]


def test_a_dataset_can_refer_to_files_of_another(tmp_path: Path) -> None:
    """What mirrors are made of: base paths, also for deleted rows, and numbers that stay."""
    table = lance.write_dataset(rows("a", "b"), str(tmp_path / "t"))
    table.delete("id = 'a'")
    table = lance.write_dataset(rows("c"), table.uri, mode="append")
    parts = [part.metadata for part in table.get_fragments()]
    for part in parts:
        for file in part.files:
            file.base_id = 1
        gone = part.deletion_file
        if gone is not None:
            part.deletion_file = DeletionFile(
                gone.read_version, gone.id, gone.file_type, gone.num_deleted_rows, 1
            )
    base = lance.DatasetBasePath(table.uri, name="t", is_dataset_root=True, id=1)
    first = LanceDataset.commit(
        str(tmp_path / "m"),
        LanceOperation.Overwrite(table.lance_schema, [], initial_bases=[base]),
        read_version=0,
    )
    LanceDataset.commit(
        first,
        LanceOperation.Update(removed_fragment_ids=[], updated_fragments=[], new_fragments=parts),
        read_version=1,
        commit_message="why",
    )
    mirror = lance.dataset(str(tmp_path / "m"))
    assert sorted(mirror.to_table()["id"].to_pylist()) == ["b", "c"]
    assert [part.fragment_id for part in mirror.get_fragments()] == [0, 1]
    properties = mirror.read_transaction(2).transaction_properties
    assert properties == {"__lance_commit_message": "why"}
    with pytest.raises(OSError, match="must be newly written"):
        LanceDataset.commit(first, LanceOperation.Overwrite(table.lance_schema, parts))


# -- one session for each lineage (docs/adr/0020) --------------------------------------------------


def forks(staging: Staging, tmp_path: Path) -> tuple[Staging, Staging]:
    """The same table as two lineages see it that grow apart."""
    pair = Staging(tmp_path / "table"), Staging(tmp_path / "table")
    for one in pair:
        one.space = staging.space.fork()
    return pair


def with_index(staging: Staging, base: LanceDataset) -> LanceDataset:
    built = base.create_index_uncommitted("id", "BTREE", name="i", fragment_ids=[0])
    return staging.commit(base, LanceOperation.CreateIndex([built], []))


def alone(staging: Staging, dataset: LanceDataset) -> LanceDataset:
    """A staged version as a process finds it that has seen nothing else."""
    made = staging.space.staged(dataset.version)
    final = Path(staging.uri) / "_graph" / f"{Path(made.path).name}.manifest"
    final.parent.mkdir(exist_ok=True)
    final.write_bytes((Path("/") / made.path).read_bytes())
    place = ManifestFile(path=str(final).lstrip("/"), size=made.size)
    space = StagingNamespace(staging.uri, {dataset.version: place})
    return space.opened(dataset.version, session=lance.Session())


def index_names(dataset: LanceDataset) -> list[str]:
    return [index.name for index in dataset.describe_indices()]


def test_a_session_takes_the_indexes_of_a_version_number_for_those_of_any_lineage(
    staging: Staging, tmp_path: Path
) -> None:
    """The reason why two lineages have two sessions. The second commit makes it permanent."""
    base = staging.create("a")
    one, other = forks(staging, tmp_path)
    assert index_names(with_index(one, base)) == ["i"]
    second = other.append(base, "b")
    third = other.append(second, "c")
    assert (index_names(second), index_names(alone(other, second))) == (["i"], [])
    assert (index_names(third), index_names(alone(other, third))) == (["i"], ["i"])


def test_a_version_from_memory_in_its_own_session_has_its_own_indexes(
    staging: Staging, tmp_path: Path
) -> None:
    base = staging.create("a")
    one, other = forks(staging, tmp_path)
    indexed = with_index(one, base)
    again = other.space.in_own_session(base)
    assert not again.session().is_same_as(base.session())
    assert indexed.session().is_same_as(base.session())
    third = other.append(other.append(again, "b"), "c")
    assert ids(third) == ["a", "b", "c"]
    assert (index_names(third), index_names(alone(other, third))) == ([], [])


def test_first_versions_and_plain_opens_share_no_session(staging: Staging, tmp_path: Path) -> None:
    """None was asked for: each gets its own. Mirrors and first versions rely on it."""
    assert (
        not staging.create("a")
        .session()
        .is_same_as(Staging(tmp_path / "table").create("b").session())
    )
    lance.write_dataset(rows("a"), tmp_path / "m")
    assert (
        not lance.dataset(tmp_path / "m")
        .session()
        .is_same_as(lance.dataset(tmp_path / "m").session())
    )


def test_rows_and_deletions_of_two_lineages_do_not_mix_in_one_session(
    staging: Staging, tmp_path: Path
) -> None:
    """Identities and deletions are kept by more than a number: only lists of indexes are not."""
    base = staging.create("a", "b", "c")
    one, other = forks(staging, tmp_path)
    found = []
    for side, gone, new in ((one, "a", ("x", "y")), (other, "c", ("z",))):
        marked = base.get_fragment(0).delete(f"id = '{gone}'")
        cut = side.commit(base, LanceOperation.Delete([marked], [], "gone"))
        made = side.append(cut, *new)
        apart = alone(side, made)
        for version in (made, apart):
            table = version.scanner(columns=["id"], with_row_id=True).to_table()
            found.append(dict(zip(*(table[n].to_pylist() for n in ("id", "_rowid")), strict=True)))
    assert found[:2] == [{"b": 1, "c": 2, "x": 3, "y": 4}] * 2
    assert found[2:] == [{"a": 0, "b": 1, "z": 3}] * 2


def test_a_manifest_says_how_high_the_numbers_of_files_have_been(staging: Staging) -> None:
    """A file that is gone leaves its number taken, and an index may not claim a higher one."""
    dataset = staging.create("a")
    for name in "bcd":
        dataset = staging.append(dataset, name)
    assert highest_fragment(dataset) == 3
    dataset = staging.commit(dataset, LanceOperation.Delete([], [2, 3], "gone"))
    assert [f.fragment_id for f in dataset.get_fragments()] == [0, 1]
    assert highest_fragment(dataset) == 3
    assert highest_fragment(alone(staging, dataset)) == 3


def test_a_relative_base_path_is_resolved_against_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So mirrors have absolute ones, and say for which place they were made (ADR 0017)."""
    monkeypatch.chdir(tmp_path)
    table = lance.write_dataset(pa.table({"x": [1, 2]}), "table")
    base = lance.DatasetBasePath("table", name="t", is_dataset_root=True, id=1)
    made = lance.LanceDataset.commit(
        "mirror", lance.LanceOperation.Overwrite(table.lance_schema, [], initial_bases=[base])
    )
    fragment = table.get_fragments()[0].metadata
    for file in fragment.files:
        file.base_id = 1
    lance.LanceDataset.commit(
        made, lance.LanceOperation.Append([fragment]), read_version=made.version
    )
    assert lance.dataset(str(tmp_path / "mirror")).to_table().num_rows == 2
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises((OSError, ValueError), match="Not found"):
        lance.dataset(str(tmp_path / "mirror")).to_table()
