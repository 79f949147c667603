"""Input for the readers of the Spark pipeline: a schema, lines good and bad, and the readers run
without Spark (tasks are plain functions of batches)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InputError
from omnigraph.ids import SeededIds
from omnigraph.input.loaded_rows import LoadedRows
from omnigraph.input.packed import UNIT, Ledger, UnitStats
from omnigraph.input.plan import InputPlan, plan_input
from omnigraph.input.problems import Problem
from omnigraph.input.sources import sort_out
from omnigraph.input.threads import read_input
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import GraphType
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import to_ir
from omnigraph.spark.arrow import carried_schema, to_spark
from omnigraph.spark.input import read_units, unpack_problems, unpack_rows
from support.places import lines, sources

SCHEMA = """
node All {
  s: String?  b: Blob?  t: Bool?  i: I32?  l: I64?  u: U32?  w: U64?  f: F32?  d: F64?
  on: Date?  at: DateTime?  v: Vector(3)?  e: enum(x, y)?
  ss: [String]?  is: [I32]?  ds: [F64]?  ons: [Date]?
}
node Vessel { imo: I64 @key  name: String }
node Named  { id: String @key  rank: I32? }
node Pair   { a: I64  b: String  @key(a, b) }
node Bare   { note: String? }
edge Knows: Bare -> Bare { since: I32?  on: Date?  f: F32? }
edge CallsAt: Vessel -> Bare { @key(@src, @dst) }
"""
CATALOG = compile_schema(SCHEMA)
IR = to_ir(CATALOG, "")
RUN = "01KA3Q1Z5N0000000000000000"


@dataclass(frozen=True, kw_only=True)
class Parsed:
    """An input as the tasks gave it."""

    plan: InputPlan
    stats: list[UnitStats]
    rows: dict[str, pa.Table]
    """As carried to Spark, in input order."""
    problems: list[Problem]
    batches: list[pa.RecordBatch]
    ledger: Ledger


def parse_here(
    source: Any,
    *,
    type_name: str | None = None,
    mapping: Mapping[str, Any] | None = None,
    range_bytes: int = 1 << 20,
    run_id: str = RUN,
) -> Parsed:
    """What ``parse_input`` does, in this process."""
    given = sort_out(source, type_name=type_name, columns=mapping)
    plan = plan_input(given, CATALOG, range_bytes=range_bytes)
    batches = run_files(plan)
    torn = plan.torn(stats_of(batches))
    if torn:
        plan = plan.uncut(torn)
        batches = run_files(plan)
    stats = stats_of(batches)
    ledger = Ledger.of(plan.names, stats)
    rows = {
        key: in_order(
            carried_rows(unpack_rows(IR, run_id, ledger, of_kind(batches, key, UNIT)), key)
        )
        for key in plan.counts(stats)
    }
    found = [
        Problem(source=r["file"], line=r["line"], column=r["column"], message=r["message"])
        for batch in unpack_problems(ledger, None, batches_without_rows(batches))
        for r in batch.to_pylist()
    ]
    return Parsed(plan=plan, stats=stats, rows=rows, problems=found, batches=batches, ledger=ledger)


def run_files(plan: InputPlan) -> list[pa.RecordBatch]:
    numbers = pa.array(range(plan.work.unit_count), pa.int64())
    given = iter([pa.RecordBatch.from_arrays([numbers], names=["id"])])
    return list(read_units(IR, plan.work, given))


def carried_rows(tables: Iterator[tuple[str, pa.Table]], key: str) -> pa.Table:
    """The rows of one type as Spark has them."""
    schema, batches = rows_schema(CATALOG.table(key)), []
    for found, table in tables:
        if found == key:
            batches += table.cast(schema).to_batches()
    kept = carried_schema(schema)
    return pa.Table.from_batches([to_spark(batch, kept) for batch in batches], kept)


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([("_file", "ascending"), ("_line", "ascending")])


def of_kind(batches: list[pa.RecordBatch], *kinds: str) -> Iterator[pa.RecordBatch]:
    wanted = pa.array(kinds)
    for batch in batches:
        yield batch.filter(pa.compute.is_in(batch.column(0), value_set=wanted))


def batches_without_rows(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return of_kind(batches, UNIT, "!problems")


def stats_of(batches: list[pa.RecordBatch]) -> list[UnitStats]:
    found = [
        UnitStats.from_bytes(r["unit"], r["file"], r["payload"])
        for batch in of_kind(batches, UNIT)
        for r in batch.to_pylist()
    ]
    return sorted(found, key=lambda s: s.unit)


# --- the local loader, for comparison -----------------------------------------------------------


def read_locally(paths: list[Path]) -> dict[str, LoadedRows] | list[dict[str, Any]]:
    """Rows by table key, or the problems that the local loader reports."""
    try:
        return read_input(sort_out(paths), CATALOG, SeededIds(1))
    except InputError as error:
        return error.details["problems"]


def rows_schema(graph_type: GraphType) -> pa.Schema:
    """The columns of a table, any of which may be null yet, and the place of each row."""
    own = [f.with_nullable(True) for f in table_schema(graph_type)]
    return pa.schema([*own, pa.field("_file", pa.int32()), pa.field("_line", pa.int64())])


def carried(loaded: LoadedRows) -> pa.Table:
    """Rows of the local loader as Spark has them, with their places."""
    own = pa.schema([f.with_nullable(True) for f in table_schema(loaded.type)])
    rows = loaded.rows.cast(own).combine_chunks()
    batches = [to_spark(b, carried_schema(own)) for b in rows.to_batches()]
    table = pa.Table.from_batches(batches, carried_schema(own))
    places = [sources(loaded.origins), np.array(lines(loaded.origins), np.int64)]
    for name, values in zip(("_file", "_line"), places, strict=True):
        table = table.append_column(name, pa.array(values))
    return table.cast(carried_schema(rows_schema(loaded.type)))


def assert_same(parsed: Parsed, paths: list[Path]) -> None:
    """The tasks found what the local loader finds: rows and places, or problems and places."""
    local = read_locally(paths)
    if isinstance(local, list):
        assert [p.to_dict() for p in parsed.problems[:20]] == local
        return
    assert not parsed.problems
    assert list(parsed.rows) == list(local)
    for key, loaded in local.items():
        ours, theirs = parsed.rows[key], carried(loaded)
        assert ours.num_rows == theirs.num_rows
        for name in ours.column_names:
            if name == "id" and not is_given(loaded):
                ids = ours["id"].to_pylist()
                assert len(set(ids)) == len(ids) and all(len(i) == 26 for i in ids)
            else:
                assert str(ours[name].to_pylist()) == str(theirs[name].to_pylist()), (key, name)


def is_given(loaded: LoadedRows) -> bool:
    """Whether the ids of these rows follow from the input."""
    keyed = {"node:Vessel", "node:Named", "node:Pair", "edge:CallsAt"}
    return loaded.type.table_key in keyed


# --- generated lines ----------------------------------------------------------------------------

_BAD_LINES = [
    b"{",
    b'{"type":"Bare","data":{"note":5}}',
    b'{"type":"Nobody","data":{}}',
    b'{"type":"Bare","data":{"nota":"x"}}',
    b'{"type":"Bare","data":{"note":"x"}} trailing',
    b'{"type":"Vessel","data":{"imo":5,"name":"x","id":"6"}}',
    b'{"type":"All","data":{"i":99999999999,"u":-1,"on":"2020-02-30"}}',
    b'{"edge":"Knows","from":"a"}',
    b'{"type":"Bare","data":{"note":"\xff"}}',
    b'{"type":"Bare","data":{"note":"a","note":"b"}}',
    b'{"type":"Bare","data":null}',
    b"[1,2]",
    b"\xef\xbb\xbf" + b'{"type":"Bare","data":{}}',
    b'{"type":"Bare"}{"type":"Bare"}',
    b"\x00",
    b'{"type":"All","data":{"v":[1,2]}}',
]
_BLANK = [b"", b"  ", b"\t", b"\r"]


def good_line(random: Random) -> bytes:
    """A line that every reader takes, in one of the usual spellings."""
    text = "".join(random.choice('ab é€😀"\\/') for _ in range(random.choice([0, 3, 40, 900])))
    kind = random.randrange(8)
    if kind == 0:
        record: Any = {
            "type": "All",
            "data": {
                "s": text,
                "b": "base64:AAE=",
                "t": random.random() < 0.5,
                "i": random.randrange(-(2**31), 2**31),
                "w": random.randrange(2**64),
                "f": random.random(),
                "d": random.uniform(-1e300, 1e300),
                "on": f"20{random.randrange(10, 99)}-02-{random.randrange(10, 28)}",
                "at": random.choice(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00", 5]),
                "v": [random.random() for _ in range(3)],
                "ss": [text, "", "x"][: random.randrange(4)],
            },
        }
    elif kind == 1:
        record = {"type": "Vessel", "data": {"imo": random.randrange(10**9), "name": text}}
    elif kind == 2:
        record = {"type": "Named", "data": {"id": text, "rank": None}}
    elif kind == 3:
        record = {"type": "Pair", "data": {"a": random.randrange(99), "b": text}}
    elif kind == 4:
        record = {"edge": "Knows", "from": text, "to": "b", "data": {"since": 7}}
    elif kind == 5:
        record = {"edge": "CallsAt", "from": "1", "to": text}
    else:
        record = {"type": "Bare", "data": {"note": text}}
    ascii_only = random.random() < 0.5
    spaced = random.random() < 0.9
    separators = (", ", ": ") if spaced else (",", ":")
    return json.dumps(record, ensure_ascii=ascii_only, separators=separators).encode()


def random_text(random: Random, *, lines: int, bad: float) -> bytes:
    """A whole file: blank lines, both kinds of line ends, maybe a BOM, maybe no last newline."""
    ends = random.choice([[b"\n"], [b"\r\n"], [b"\n", b"\n", b"\r\n"]])
    pieces = [b"\xef\xbb\xbf"] if random.random() < 0.2 else []
    for _ in range(lines):
        roll = random.random()
        if roll < bad:
            line = random.choice(_BAD_LINES)
        elif roll < bad + 0.1:
            line = random.choice(_BLANK)
        else:
            line = good_line(random)
        pieces += [line, random.choice(ends)]
    if pieces and random.random() < 0.4:
        pieces.pop()
    return b"".join(pieces)
