"""What we rely on in Lance's schema evolution, through our own staging (docs/adr/0001)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.schema.migrate.column_changes import Made
from omnigraph.storage.changes import Append
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.reshape import Reshape
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("s", pa.string()),
        pa.field("b", pa.large_binary()),
    ]
)


class Store:
    """One table in a folder."""

    def __init__(self, place: Path) -> None:
        location = locate(place)
        self.tables = TableStore(location, Objects(location, create=True))
        self.count = 0

    def stage(self, base: Table | None, change) -> Table:
        self.count += 1
        staged = self.tables.stage("nodes/t", base, [change], SCHEMA, f"v{self.count}")
        self.tables.pin(staged)
        return self.tables.open(staged.table.name)

    def append(self, base: Table | None, *ids: str) -> Table:
        columns = [pa.array(ids), pa.array(range(len(ids)), pa.int32()), pa.array(ids)]
        blobs = pa.array([i.encode() for i in ids], pa.large_binary())
        rows = pa.table([*columns, blobs], schema=SCHEMA)
        return self.stage(base, Append(files=self.tables.write_files("nodes/t", rows, base)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def reshape(**changes) -> Reshape:
    nothing = {"dropped": (), "renamed": {}, "nullable": {}, "empty": (), "made": ()}
    return Reshape(**(nothing | changes))


def rows(table: Table, *names: str) -> list[dict]:
    return [r for batch in table.batches(names) for r in batch.to_pylist()]


def test_everything_at_once_keeps_rows_identity_and_other_indexes(store: Store) -> None:
    base = store.append(store.append(None, "a", "b"), "c")
    before = base.dataset.to_table(columns=["id", "_rowid"]).to_pydict()
    doubled = Made(
        field=pa.field("n", pa.int64(), nullable=False),
        reads=("n",),
        make=lambda batch: pc.multiply(batch.column("n").cast(pa.int64()), 2),
    )
    one = Made(
        field=pa.field("k", pa.bool_(), nullable=False),
        reads=(),
        make=lambda batch: pa.repeat(True, batch.num_rows),
    )
    made = store.stage(
        base,
        reshape(
            dropped=("n",),
            renamed={"s": "t"},
            empty=(pa.field("s", pa.string()), pa.field("raw", pa.large_binary())),
            made=(doubled, one),
        ),
    )
    assert rows(made, "id", "n", "t", "k", "s", "raw", "b")[1] == {
        "id": "b", "n": 2, "t": "b", "k": True, "s": None, "raw": None, "b": b"b",
    }  # fmt: skip
    assert made.dataset.to_table(columns=["id", "_rowid"]).to_pydict() == before
    assert made.dataset.schema.field("n") == pa.field("n", pa.int64(), nullable=False)
    assert made.dataset.schema.field("id").metadata, "still the key"
    # The base and its lineage never saw any of it.
    assert rows(base, "n") == [{"n": 0}, {"n": 1}, {"n": 0}]
    assert base.dataset.schema.names == SCHEMA.names


def test_names_are_swapped_in_one_step(store: Store) -> None:
    base = store.append(None, "a")
    made = store.stage(base, reshape(renamed={"n": "s", "s": "n"}))
    assert rows(made, "n", "s") == [{"n": "a", "s": 0}]


def test_renames_drops_and_empty_columns_write_no_data_file(store: Store) -> None:
    base = store.append(None, "a", "b")
    made = store.stage(
        base, reshape(dropped=("n",), renamed={"s": "t"}, empty=(pa.field("n", pa.int64()),))
    )
    assert made.files_since(base) == []
    assert rows(made, "n", "t") == [{"n": None, "t": "a"}, {"n": None, "t": "b"}]


def test_a_column_of_an_old_name_is_not_taken_for_another(store: Store) -> None:
    base = store.append(None, "a", "b")
    assert base.columns(["s"]).to_pydict() == {"s": ["a", "b"]}
    made = store.stage(base, reshape(renamed={"s": "t"}, empty=(pa.field("s", pa.string()),)))
    assert made.columns(["s", "t"]).to_pydict() == {"s": [None, None], "t": ["a", "b"]}
    typed = store.stage(base, reshape(dropped=("s",), empty=(pa.field("s", pa.int64()),)))
    assert typed.columns(["s"])["s"].type == pa.int64()


def test_an_index_of_a_dropped_column_goes_and_others_stay(store: Store) -> None:
    base = store.append(None, "a", "b")
    segments = [
        base.dataset.create_index_uncommitted(name, "BTREE", name=f"{name}_i", fragment_ids=[0])
        for name in ("n", "s")
    ]
    from lance import LanceOperation

    from omnigraph.storage.changes import Rework

    class Index(Rework):
        def commit(self, current, space):
            for segment in segments:
                space.note_index(str(segment.uuid))
            return space.commit(current, LanceOperation.CreateIndex(segments, []))

    indexed = store.stage(base, Index())
    assert indexed.indexed_columns == {"n", "s"}
    made = store.stage(indexed, reshape(dropped=("n",), renamed={"s": "t"}))
    assert made.indexed_columns == {"t"}
    assert made.where(pc.field("t") == "b", ("id",))["id"].to_pylist() == ["b"]


def test_a_table_without_rows_is_reshaped(store: Store) -> None:
    from omnigraph.storage.changes import Remove

    base = store.append(None, "a")
    empty = store.stage(base, Remove(ids=pa.array(["a"])))
    constant = Made(
        field=pa.field("k", pa.int32(), nullable=False),
        reads=(),
        make=lambda batch: pa.repeat(pa.scalar(1, pa.int32()), batch.num_rows),
    )
    made = store.stage(empty, reshape(made=(constant,)))
    assert made.row_count == 0
    assert made.dataset.schema.field("k") == pa.field("k", pa.int32(), nullable=False)


def test_rows_are_added_to_columns_in_another_order(store: Store) -> None:
    base = store.append(None, "a")
    made = store.stage(base, reshape(dropped=("n",), empty=(pa.field("n", pa.int32()),)))
    assert made.dataset.schema.names != SCHEMA.names
    grown = store.append(made, "z")
    assert rows(grown, "id", "n", "s", "b")[1] == {"id": "z", "n": 0, "s": "z", "b": b"z"}
