"""An index that leads to the wrong rows is told, however few they are; a right one never is."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import CorruptionError
from omnigraph.storage import index_answers, namespace, staging
from omnigraph.storage.changes import Append, Remove, Upsert
from omnigraph.storage.index_answers import wrong_answer
from omnigraph.storage.indexing import BuildIndexes, IndexKind, IndexSpec, table_indexes
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects
from omnigraph.storage.staging import TableStore
from omnigraph.storage.tables import Table
from support.examples import examples

SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("v", pa.int64())])
PATH = "nodes/t"
Values = list[int | None]


class Store:
    """A table that grows, and what an index of one version says about another."""

    def __init__(self, place: Path) -> None:
        location = locate(place)
        self.tables = TableStore(location, Objects(location, create=True))
        self.count = 0

    def stage(self, base: Table | None, *changes: object) -> Table:
        self.count += 1
        staged = self.tables.stage(PATH, base, list(changes), SCHEMA, f"s{self.count}")  # type: ignore[arg-type]
        self.tables.pin(staged)
        return staged.table

    def append(self, base: Table | None, values: Values) -> Table:
        files = self.tables.write_files(PATH, self.rows(values), base)
        return self.stage(base, Append(files=files))

    def rows(self, values: Values) -> pa.Table:
        self.count += len(values)
        names = [f"r{self.count - i}" for i in range(len(values))]
        return pa.table({"id": names, "v": values}, schema=SCHEMA)

    def indexed(self, base: Table, kind: IndexKind) -> Table:
        return self.stage(base, BuildIndexes(specs=(IndexSpec(column="v", kind=kind),)))


def told(table: Table) -> list[str | None]:
    return [wrong_answer(table, index) for index in table_indexes(table)]


def borrowing(
    store: Store, patch: pytest.MonkeyPatch, kind: IndexKind, values: Values, other: Values
) -> tuple[Table, Table]:
    """Two lineages in one session: the second lists the index that the first has built."""
    patch.setattr(namespace.Succession, "claim", lambda _: True)
    patch.setattr(staging, "verify_indexes", lambda *_: None)
    base = store.append(None, [50])
    first = store.indexed(store.append(base, values), kind)
    second = store.append(base, other)
    for number in (60, 70):
        second = store.append(second, [number])
    return store.tables.open(first.name), store.tables.open(second.name)


KINDS = pytest.mark.parametrize("kind", [IndexKind.BTREE, IndexKind.BITMAP])


@KINDS
@settings(max_examples=examples(15))
@given(data=st.data())
def test_one_row_with_another_value_is_told(
    kind: IndexKind, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An index of one lineage is right about another only if both have the same values."""
    store = Store(tmp_path_factory.mktemp("t"))
    values = data.draw(st.lists(st.integers(0, 9) | st.none(), min_size=1, max_size=30))
    place = data.draw(st.integers(0, len(values) - 1))
    other = list(values)
    other[place] = data.draw(st.integers(0, 12))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_answers, "ROWS_AT_ONCE", data.draw(st.sampled_from((1, 4, 1 << 18))))
        patch.setattr(index_answers, "VALUES_AT_ONCE", data.draw(st.sampled_from((1, 3, 1 << 13))))
        first, second = borrowing(store, patch, kind, values, other)
        assert told(first) == [None]
        (answer,) = told(second)
    assert (answer is None) == (values == other), answer


@KINDS
def test_an_index_that_lags_and_rows_that_moved_are_right(tmp_path: Path, kind: IndexKind) -> None:
    store = Store(tmp_path)
    table = store.indexed(store.append(None, [1, 2, 2, None, 3]), kind)
    ids = table.columns(("id",)).column(0).to_pylist()
    changed = pa.table({"id": ids[:2], "v": [7, 1]}, schema=SCHEMA)
    for change in (Upsert(rows=changed), Remove(ids=pa.array(ids[2:3], pa.string()))):
        table = store.stage(table, change)
        assert told(table) == [None]
    table = store.append(table, [1, 2, 9])
    assert told(table) == [None]


@KINDS
def test_an_index_that_cannot_be_read_is_told_and_a_column_is_not_its_fault(
    tmp_path: Path, kind: IndexKind
) -> None:
    store = Store(tmp_path)
    table = store.indexed(store.append(None, [1, 2, 3]), kind)
    for file in (tmp_path / PATH / "_indices").rglob("*.lance"):
        file.write_bytes(b"")
    (answer,) = told(store.tables.open(table.name))
    assert answer is not None
    assert answer.startswith("it does not answer: ")
    for file in (tmp_path / PATH / "data").rglob("*.lance"):
        file.write_bytes(b"")
    with pytest.raises(CorruptionError):
        told(store.tables.open(table.name))
