"""What a mutation reads of the committed state: no more than its statements need."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate.run import Affected, apply
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.compile import compile_schema
from omnigraph.testing.committed import MemoryState, RecordedRead
from omnigraph.write.txn import GraphDelta

CATALOG = compile_schema("""
node Port { code: String @key  berths: I32?  note: String? }
node Pair { a: I64  b: String  @key(a, b)  n: I32? }
node Note { text: String  n: I32? }
edge Feeds: Port -> Port { n: I32? }
edge Cites: Note -> Port
""")
VALUES = Values(params={}, now=datetime(2026, 1, 1, tzinfo=UTC))
ROWS: dict[str, list[dict[str, Any]]] = {
    "node:Port": [{"id": c, "code": c, "berths": i} for i, c in enumerate("ABCD")],
    "node:Pair": [{"id": f'["{a}","{b}"]', "a": a, "b": b} for a in (1, 2) for b in "xy"],
    "node:Note": [{"id": "n1", "text": "t", "n": 1}, {"id": "n2", "text": "u", "n": 2}],
    "edge:Feeds": [
        {"id": f"f{i}", "src": s, "dst": d, "n": i} for i, (s, d) in enumerate(["AB", "BC", "CA"])
    ],
    "edge:Cites": [{"id": "c1", "src": "n1", "dst": "A"}],
}
ALL = {key: tuple(table_schema(CATALOG.table(key)).names) for key in ROWS}


def state() -> MemoryState:
    return MemoryState(
        tables={
            key: pa.Table.from_pylist(rows, schema=table_schema(CATALOG.table(key)))
            for key, rows in ROWS.items()
        }
    )


def run(text: str) -> tuple[GraphDelta, Affected, list[RecordedRead]]:
    (query,) = compile_queries(text, CATALOG)
    assert isinstance(query.body, typed.Mutation)
    base = state()
    fresh = [f"fresh{i}" for i in range(len(query.body.statements))]
    delta, affected = apply(query.body, CATALOG, base, VALUES, fresh)
    return delta, affected, base.reads


def read(key: str, column: str | None, values: tuple[object, ...], *columns: str) -> RecordedRead:
    return RecordedRead(table_key=key, column=column, values=values, columns=columns)


def test_an_insert_without_a_key_reads_nothing() -> None:
    text = 'insert Note { text: "x" } insert Feeds { from: "A", to: "D" } insert Note { text: "y" }'
    delta, affected, reads = run(text)
    assert reads == []
    assert affected == Affected(nodes=2, edges=1)
    assert delta.tables["node:Note"].ids_fresh
    assert delta.tables["node:Note"].rows["id"].to_pylist() == ["fresh0", "fresh2"]
    assert delta.tables["edge:Feeds"].rows["id"].to_pylist() == ["fresh1"]


def test_inserts_of_keys_are_looked_up_together_and_only_what_exists_is_read() -> None:
    delta, _, reads = run(
        'insert Port { code: "A", berths: 9 } insert Port { code: "X" } upsert Port { code: "B" }'
    )
    assert reads == [
        read("node:Port", "id", ("A", "B", "X")),
        read("node:Port", "@", (0, 1), *ALL["node:Port"]),
    ]
    assert delta.tables["node:Port"].rows["id"].to_pylist() == ["A", "X"], "B is what it was"
    _, _, reads = run('insert Port { code: "X" }')
    assert reads == [read("node:Port", "id", ("X",))]


@pytest.mark.parametrize(
    ("where", "key", "lookup", "found"),
    [
        ('Port set { berths: 9 } where code = "C"', "node:Port", ("C",), (2,)),
        ('Port set { berths: 9 } where "C" = code and berths > 0', "node:Port", ("C",), (2,)),
        ('Port set { berths: 9 } where id in ["C", "D"]', "node:Port", ("C", "D"), (2, 3)),
        ('Port set { berths: 9 } where code = "A" or code = "B"', "node:Port", ("A", "B"), (0, 1)),
        ('Port set { berths: 9 } where (code = "A" or id = "B") and berths = 0',
         "node:Port", ("A", "B"), (0, 1)),
        ('Pair set { n: 1 } where b = "y" and a = 1', "node:Pair", ('["1","y"]',), (1,)),
        ('Pair set { n: 1 } where b in ["x", "y"] and a = 2',
         "node:Pair", ('["2","x"]', '["2","y"]'), (2, 3)),
        ('Note set { n: 9 } where id = "n2"', "node:Note", ("n2",), (1,)),
    ],
)  # fmt: skip
def test_an_update_by_key_reads_rows_by_id(
    where: str, key: str, lookup: tuple[str, ...], found: tuple[int, ...]
) -> None:
    _, _, reads = run(f"update {where}")
    first, second = reads
    assert first == read(key, "id", lookup)
    assert (second.column, second.values) == ("@", found)
    assert sorted(second.columns) == sorted(ALL[key])


def test_a_key_that_no_entity_can_have_reads_no_rows() -> None:
    for where in ('a = 1.5 and b = "x"', 'a in [] and b = "x"'):
        _, affected, reads = run(f"update Pair set {{ n: 1 }} where {where}")
        assert affected == Affected()
        assert [(r.column, r.values) for r in reads] == [("id", ()), ("@", ())]


def test_an_update_by_other_columns_scans_those_and_reads_matches() -> None:
    _, affected, reads = run('update Port set { note: "x" } where berths > 1 and code != "D"')
    assert affected == Affected(nodes=1)
    assert reads == [
        read("node:Port", None, (), "id", "berths", "code"),
        read("node:Port", "@", (2,), *ALL["node:Port"]),
    ]
    _, _, reads = run('update Port set { note: "x" } where berths > 100')
    assert reads == [read("node:Port", None, (), "id", "berths")]


def test_part_of_a_key_is_no_key() -> None:
    _, affected, reads = run("update Pair set { n: 1 } where a = 1")
    assert affected == Affected(nodes=2)
    assert reads[0] == read("node:Pair", None, (), "id", "a")
    _, _, reads = run('update Pair set { n: 1 } where a = 1 and b = "x" or n = 5')
    assert reads[0].column is None


def test_a_row_that_is_touched_already_is_not_read_again() -> None:
    _, affected, reads = run(
        'update Port set { berths: 9 } where code = "A" update Port set { note: "x" } where berths = 9'
    )
    assert affected == Affected(nodes=2)
    assert [r.values for r in reads if r.column == "@"] == [(0,)]


def test_edges_are_found_by_their_ends() -> None:
    delta, affected, reads = run('delete Feeds where from = "A" and n = 0')
    assert reads == [
        read("edge:Feeds", "src", ("A",)),
        read("edge:Feeds", "@", (0,), "id", "src", "n"),
    ]
    assert affected == Affected(edges=1)
    assert delta.tables["edge:Feeds"].removed.to_pylist() == ["f0"]


def test_a_delete_of_nodes_looks_at_every_edge_column_that_can_end_there() -> None:
    delta, affected, reads = run('delete Port where code = "A"')
    assert reads == [
        read("node:Port", "id", ("A",)),
        read("node:Port", "@", (0,), "id", "code"),
        read("edge:Feeds", "src", ("A",), "id"),
        read("edge:Feeds", "dst", ("A",), "id"),
        read("edge:Cites", "dst", ("A",), "id"),
    ]
    assert affected == Affected(nodes=1, edges=3)
    assert {k: t.removed.to_pylist() for k, t in delta.tables.items()} == {
        "node:Port": ["A"],
        "edge:Feeds": ["f0", "f2"],
        "edge:Cites": ["c1"],
    }


def test_a_delete_that_matches_nothing_asks_no_edges() -> None:
    delta, affected, reads = run(
        "delete Port where berths > 100 delete Port where note is not null"
    )
    assert [r.table_key for r in reads] == ["node:Port", "node:Port"]
    assert not delta.tables and affected == Affected()
