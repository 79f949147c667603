"""Parquet files and batches of DataFrames: columns by name, the rules of the local loader's tables,
every bad row with its number."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from input_cases import CATALOG, IR, carried, parse_here, stats_of

from omnigraph import InputError, UsageError
from omnigraph.ids import SeededIds, derived_ulids
from omnigraph.input.table_shape import piece_of, table_shape
from omnigraph.input.tables import rows_from_table
from omnigraph.input.units import (
    TableShape,
    WorkPlan,
    byte_cuts,
    group_unit,
    grouped_cuts,
)
from omnigraph.spark.input import frame_task
from support.ulids import number

ALL = CATALOG.nodes["All"]


@pytest.fixture
def parquet(tmp_path: Path):
    def write(table: pa.Table, name: str = "in.parquet", rows: int = 100) -> str:
        pq.write_table(table, tmp_path / name, row_group_size=rows)
        return str(tmp_path / name)

    return write


def random_table(random: Random, count: int) -> pa.Table:
    def some(value):
        return [None if random.random() < 0.2 else value() for _ in range(count)]

    return pa.table(
        {
            "s": pa.array(some(lambda: random.choice(["", "é", "x" * 50]))).dictionary_encode(),
            "b": some(lambda: random.randbytes(5)),
            "t": pa.array(some(lambda: random.random() < 0.5), pa.bool_()),
            "i": pa.array(some(lambda: random.randrange(-(2**31), 2**31)), pa.int64()),
            "u": pa.array(some(lambda: float(random.randrange(2**32))), pa.float64()),
            "w": pa.array(some(lambda: Decimal(random.randrange(2**64))), pa.decimal128(20, 0)),
            "f": pa.array(some(lambda: np.float32(random.random())), pa.float32()),
            "at": pa.array(some(lambda: random.randrange(10**12) * 1000), pa.timestamp("us")),
            "on": pa.array(some(lambda: random.randrange(20000)), pa.date32()),
            "v": pa.array(some(lambda: [1.0, 2.0, random.random()]), pa.list_(pa.float64())),
            "is": pa.array(some(lambda: [1, 2][: random.randrange(3)]), pa.list_(pa.int32())),
        }
    )


# --- Parquet ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_parquet_gives_the_rows_that_the_local_loader_takes_from_the_table(parquet, seed: int):
    random = Random(seed)
    table = random_table(random, random.choice([0, 1, 250, 1000]))
    path = parquet(table, rows=random.choice([1, 7, 100, 10_000]) if table.num_rows < 300 else 90)
    parsed = parse_here(path, type_name="All", range_bytes=random.choice([1, 500, 1 << 20]))
    local = carried(rows_from_table(ALL, table, SeededIds(1)))
    assert not parsed.problems
    ours = parsed.rows["node:All"]
    assert str(ours.drop_columns(["id"]).to_pylist()) == str(local.drop_columns(["id"]).to_pylist())
    assert len(set(ours["id"].to_pylist())) == table.num_rows


def test_every_bad_row_is_a_problem_and_the_first_ones_are_the_local_loaders(parquet):
    values = list(range(250))
    for bad in (3, 99, 100, 249):
        values[bad] = 2**40
    table = pa.table(
        {"i": values, "s": ["x"] * 250, "d": [1.0] * 200 + [float("nan")] + [1.0] * 49}
    )
    parsed = parse_here(parquet(table), type_name="All", range_bytes=10)
    found = [(p.line, p.message) for p in parsed.problems]
    assert [line for line, _ in found] == [4, 100, 101, 201, 250]
    with pytest.raises(InputError) as local:
        rows_from_table(ALL, table, SeededIds(1))
    told = {(p["line"], p["message"]) for p in local.value.details["problems"]}
    assert told == {(4, found[0][1]), (201, found[3][1])}


def test_whole_columns_that_do_not_fit_are_refused_before_anything_is_read(parquet):
    table = pa.table({"i": ["x"], "v": [1.0]})
    with pytest.raises(InputError) as ours:
        parse_here(parquet(table), type_name="All")
    with pytest.raises(InputError) as local:
        rows_from_table(ALL, table, SeededIds(1), source_name="in.parquet")
    lines = [line.rpartition("/")[2] for line in ours.value.message.splitlines()]
    assert lines == local.value.message.splitlines()


def test_unknown_columns_and_mappings(parquet):
    table = pa.table({"x": ["a"], "y": [1]})
    with pytest.raises(InputError, match='Bare has no property "x"'):
        parse_here(parquet(table), type_name="Bare")
    parsed = parse_here(parquet(table), type_name="Bare", mapping={"note": "x"})
    assert parsed.rows["node:Bare"]["note"].to_pylist() == ["a"]


def test_one_column_may_fill_two(parquet):
    path = parquet(pa.table({"x": ["a", "b"]}))
    parsed = parse_here(path, type_name="Knows", mapping={"from": "x", "to": "x"})
    assert parsed.rows["edge:Knows"].select(["src", "dst"]).to_pylist() == [
        {"src": "a", "dst": "a"},
        {"src": "b", "dst": "b"},
    ]


def test_null_endpoints_are_problems(parquet):
    path = parquet(pa.table({"src": ["a", None, "c"], "dst": ["a", "b", None]}))
    parsed = parse_here(path, type_name="Knows")
    assert [(p.line, p.message) for p in parsed.problems] == [
        (2, "column 'src': an endpoint of an edge cannot be null"),
        (3, "column 'dst': an endpoint of an edge cannot be null"),
    ]


def test_a_parquet_file_needs_its_type_and_is_known_by_its_content(parquet):
    path = parquet(pa.table({"note": ["a"]}), name="in.data")
    with pytest.raises(UsageError, match="a Parquet file needs its type"):
        parse_here(path)
    assert parse_here(path, type_name="Bare").rows["node:Bare"].num_rows == 1


def test_damaged_parquet(parquet, tmp_path: Path):
    path = Path(parquet(pa.table({"note": ["a" * 50] * 5000}), rows=1000))
    raw = path.read_bytes()
    path.write_bytes(raw[:-20])
    with pytest.raises(InputError, match=r"in\.parquet: cannot be read as Parquet"):
        parse_here(str(path), type_name="Bare")
    middle = raw[:60] + bytes(40) + raw[100:]
    path.write_bytes(middle)
    try:
        parsed = parse_here(str(path), type_name="Bare", range_bytes=1)
    except InputError:
        return
    assert [p.message for p in parsed.problems if "cannot be read as Parquet" in p.message]


def test_a_table_without_rows_mentions_its_type(parquet):
    parsed = parse_here(parquet(pa.table({"note": pa.array([], pa.string())})), type_name="Bare")
    assert list(parsed.rows) == ["node:Bare"] and parsed.rows["node:Bare"].num_rows == 0


def test_types_by_name(parquet, tmp_path: Path):
    (tmp_path / "knows.csv").write_text("from,to\na,b\n")
    nodes = parquet(pa.table({"text": ["a"]}))
    source = {"knows": str(tmp_path / "knows.csv"), "Bare": [nodes, nodes]}
    parsed = parse_here(source, mapping={"Bare": {"note": "text"}})
    assert list(parsed.rows) == ["edge:Knows", "node:Bare"]
    assert parsed.rows["node:Bare"]["_file"].to_pylist() == [1, 2]
    with pytest.raises(UsageError, match="both name the edge type Knows"):
        parse_here({"knows": nodes, "Knows": nodes})
    with pytest.raises(UsageError, match="its keys are the types"):
        parse_here({"Bare": nodes}, type_name="Bare")
    with pytest.raises(UsageError, match="a mapping of columns needs a type"):
        parse_here(nodes, mapping={"note": "text"})


# --- batches of a DataFrame ---------------------------------------------------------------------


def test_a_partition_is_a_unit_and_its_rows_are_counted_through():
    shape = TableShape(table_key="node:Bare", columns=(("note", "n"),))

    def batch(partition: int, first: int, *notes: str) -> pa.RecordBatch:
        places = [(partition << 33) + first + n for n in range(len(notes))]
        return pa.RecordBatch.from_arrays(
            [pa.array(notes), pa.array(places)], names=["c0", "place"]
        )

    task = frame_task(IR, shape, 2, 5)
    given = [batch(3, 0), batch(3, 0, "a", "b"), batch(3, 2, "c")]
    found = list(task(iter(given)))
    (stats,) = stats_of(found)
    assert (stats.unit, stats.file, stats.lines) == (group_unit(2, 3), 5, 3)
    assert [b.column("before").to_pylist() for b in found] == [[0], [2], [3]]
    assert list(task(iter([batch(3, 0)]))) == []


def test_bad_rows_are_found_by_halves_wherever_they_are():
    random = Random(5)
    shape = table_shape(ALL, ["i"], mapping=None, source="x")
    for _ in range(30):
        values = [random.choice([1, 2, None, 2**40]) for _ in range(random.randrange(1, 40))]
        piece = piece_of(ALL, shape, {"i": pa.array(values, pa.int64())}, len(values))
        expected = [n for n, v in enumerate(values, 1) if v == 2**40]
        assert [p.line for p in piece.problems] == expected
        assert bool(piece.parts) == (not expected)


# --- units and ids ------------------------------------------------------------------------------


def test_units_are_found_by_their_number(parquet):
    path = parquet(pa.table({"note": ["a"] * 10}), rows=3)
    parsed = parse_here([path, path, path], type_name="Bare", range_bytes=1)
    plan = parsed.plan.work
    assert plan.unit_count == 12
    assert [plan.unit(n).file for n in range(12)] == [0] * 4 + [1] * 4 + [2] * 4
    assert [(plan.unit(n).start, plan.unit(n).stop) for n in range(4, 6)] == [(0, 1), (1, 2)]
    assert parsed.rows["node:Bare"]["_line"].to_pylist() == list(range(1, 11)) * 3


def test_cuts():
    assert byte_cuts(0, 16) == (0,)
    assert byte_cuts(33, 16) == (0, 16, 32, 33)
    assert byte_cuts(32, 16) == (0, 16, 32)
    assert grouped_cuts([], 10) == (0,)
    assert grouped_cuts([5, 5, 5, 20, 1, 1], 10) == (0, 2, 3, 4, 6)
    assert WorkPlan(files=(), indices=()).task_count == 1


def test_ids_are_ulids_that_ascend_with_their_place_and_never_meet():
    run, other = "01KA3Q1Z5N0000000000000000", "01KA3Q1Z5N0000000000000001"
    lines = np.array([1, 2, 3, 10**12], dtype=np.int64)
    ids = [i for source in range(3) for i in derived_ulids(run, source, lines).to_pylist()]
    assert ids == sorted(set(ids)) and all(i[:10] == run[:10] and len(i) == 26 for i in ids)
    assert ids[4:8] == derived_ulids(run, 1, lines).to_pylist()
    assert not set(ids) & set(derived_ulids(other, 0, lines).to_pylist())
    assert derived_ulids(run, 0, lines[:0]).to_pylist() == []
    plain = derived_ulids(run, 0, np.arange(1, 6, dtype=np.int64)).to_pylist()
    assert [number(i) - number(plain[0]) for i in plain] == [0, 1, 2, 3, 4]
    high = derived_ulids(run, 2**36 - 1, np.array([2**42 - 1])).to_pylist()
    assert high[0][:10] == run[:10]


@pytest.mark.parametrize("run", ["", "x" * 26, "8" * 26, "01KA3Q1Z5N000000000000000I"])
def test_a_run_id_is_a_ulid(run: str):
    from omnigraph import InternalError

    with pytest.raises(InternalError, match="not a ULID"):
        derived_ulids(run, 0, np.array([1]))
