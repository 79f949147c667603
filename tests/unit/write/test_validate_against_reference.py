"""The validator and the naive reference agree on random schemas, states and deltas."""

from __future__ import annotations

import json
import math
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from validate_fixtures import catalog, edge, node, prop, table_of
from validate_reference import Reference

from omnigraph.arrow import sets
from omnigraph.errors import ConstraintError, ErrorKind
from omnigraph.rules import endpoints, repeats, table_delta
from omnigraph.rules.table_delta import TableDelta, WriteMode
from omnigraph.schema.catalog import Check, Range, Scalar
from omnigraph.testing.committed import MemoryState
from omnigraph.write.txn import GraphDelta
from omnigraph.write.validate import validate
from support.examples import examples

IDS = ["a", "b", "c", "d"]
CARDS = [(0, None), (0, 1), (1, None), (1, 2), (2, 2)]


def some(draw, *options):
    return draw(st.sampled_from(options))


@st.composite
def schemas(draw):
    keyed = draw(st.booleans())
    n = node(
        "N",
        prop("k", Scalar.STRING, nullable=False),
        prop("u", Scalar.STRING),
        prop("n", Scalar.I64),
        prop("f", Scalar.F64),
        prop("kind", Scalar.STRING, enum_values=("x", "y")),
        prop("list", Scalar.F32, is_list=True),
        key=("k",) if keyed else (),
        unique=some(draw, (), (("u",),), (("u", "n"),), (("n",), ("kind", "f")), (("k",),)),
        ranges=some(draw, (), (Range(property_name="n", low=0, high=None),))
        + some(draw, (), (Range(property_name="f", low=0.0, high=1.5),)),
        checks=some(draw, (), (Check(property_name="u", pattern="^v"),)),
    )
    m = node("M", prop("u", Scalar.STRING), unique=some(draw, (), (("u",),)))
    groups = [(), (("src", "dst"),), (("dst",),), (("src", "w"), ("w",))]
    return catalog(
        n,
        m,
        edge(
            "E",
            "N",
            "M",
            prop("w", Scalar.I64),
            card=some(draw, *CARDS),
            unique=some(draw, *groups),
        ),
        edge(
            "F",
            "N",
            "N",
            prop("w", Scalar.I64, nullable=True),
            card=some(draw, *CARDS),
            keyed=draw(st.booleans()),
            unique=some(draw, *groups),
        ),
    )


VALUES = {
    "k": st.sampled_from(IDS),
    "u": st.none() | st.sampled_from(["v1", "v2", "w"]),
    "n": st.none() | st.integers(-1, 2),
    "f": st.none() | st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf]),
    "kind": st.none() | st.sampled_from(["x", "y", "y", "z"]),
    "list": st.none() | st.lists(st.none() | st.sampled_from([1.0, 2.0, math.nan]), max_size=2),
    "w": st.none() | st.integers(0, 2),
    "src": st.sampled_from(IDS),
    "dst": st.sampled_from(IDS),
}


@st.composite
def rows_of(draw, graph_type, *, clean):
    """Some rows of a type. Clean ones have nothing wrong in themselves; others have holes."""
    rows = []
    for _ in range(draw(st.integers(0, 5))):
        row = {"id": draw(st.sampled_from(IDS))}
        names = [*graph_type.system_columns[1:], *(p.name for p in graph_type.properties)]
        for name in names:
            hole = not clean and draw(st.integers(0, 19)) == 0
            row[name] = None if hole else draw(VALUES[name])
        rows.append(with_derived_id(graph_type, row))
    if not clean and rows and not is_keyed(graph_type) and draw(st.integers(0, 9)) == 0:
        rows[0]["id"] = None
    return rows


def is_keyed(graph_type):
    return bool(graph_type.key) or getattr(graph_type, "keyed", False)


def with_derived_id(graph_type, row):
    if graph_type.kind == "node" and graph_type.key:
        return row | {"id": row["k"]}
    if getattr(graph_type, "keyed", False):
        ends = [row["src"], row["dst"]]
        return row | {"id": None if None in ends else json.dumps(ends)}
    return row


@st.composite
def committed_states(draw, schema):
    """A state in which ids are unique, tuples have one holder and edges have ends."""
    tables = {}
    for graph_type in schema.types():
        kept, seen = {}, set()
        for row in draw(rows_of(graph_type, clean=True)):
            tuples = {
                (g, tuple(row[m] for m in g))
                for g in graph_type.unique
                if all(row[m] is not None for m in g)
            }
            ends = graph_type.kind == "node" or (
                any(n["id"] == row["src"] for n in tables[f"node:{graph_type.source}"])
                and any(n["id"] == row["dst"] for n in tables[f"node:{graph_type.target}"])
            )
            if row["id"] not in kept and not tuples & seen and ends:
                kept[row["id"]] = row
                seen |= tuples
        tables[graph_type.table_key] = list(kept.values())
    return tables


@st.composite
def deltas(draw, schema):
    tables = {}
    for graph_type in draw(st.permutations(list(schema.types()))):
        if not draw(st.booleans()):
            continue
        rows = draw(rows_of(graph_type, clean=draw(st.booleans())))
        mode = some(draw, *WriteMode)
        free = sorted({*IDS, '["a", "b"]', '["b", "b"]'} - {r["id"] for r in rows})
        removed = draw(st.lists(st.sampled_from(free), unique=True, max_size=3)) if free else []
        tables[graph_type.table_key] = TableDelta(
            type=graph_type,
            mode=mode,
            rows=chunk(table_of(graph_type, rows), draw(st.integers(0, 5))),
            removed=pa.array([] if mode is WriteMode.OVERWRITE else removed, pa.string()),
        )
    return GraphDelta(tables=tables)


def chunk(table, cut):
    cut = min(cut, table.num_rows)
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])


@st.composite
def cases(draw):
    schema = draw(schemas())
    return schema, draw(committed_states(schema)), draw(deltas(schema))


@pytest.fixture(params=["small", "large"])
def paths(request, monkeypatch):
    """Also the ways that only large inputs take: hashing, threads, pieces and sets of texts."""
    if request.param == "large":
        monkeypatch.setattr(repeats, "_EXACT_ROWS_MAX", 0)
        monkeypatch.setattr(sets, "TEXT_SET_ROWS_MIN", 0)
        monkeypatch.setattr(endpoints, "PIECE_ROWS", 2)
        monkeypatch.setattr(endpoints, "SCANNED_MIN", 0)
        monkeypatch.setattr(table_delta, "_PARALLEL_ROWS_MIN", 0)


@pytest.mark.usefixtures("paths")
@settings(
    deadline=None,
    max_examples=examples(130),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cases())
def test_same_result_same_violations_same_counts(case):
    schema, tables, delta = case
    committed = MemoryState(
        {k: table_of(schema.table(k), rows) for k, rows in tables.items() if rows}
    )
    reference = Reference(schema, delta, tables)
    try:
        outcome = validate(schema, delta, committed, violations_max=1000)
    except ConstraintError as error:
        event("refused")
        found = Counter((v.rule, v.type_name, v.entity_id, v.message) for v in error.violations)
        assert found == reference.found
        assert error.total == reference.found.total()
        only_conflicts = all(m.startswith("key conflict") for *_, m in reference.found)
        assert (error.kind is ErrorKind.KEY_CONFLICT) == only_conflicts
        return
    event("accepted")
    assert not reference.found
    for key, table in outcome.tables.items():
        counts = (table.inserted_count, table.updated_count, table.deleted_count)
        assert counts == reference.counts[key]
        final = reference.tables[key].final
        assert {r["id"]: r for r in table.rows.to_pylist()} == final
        assert table.rows.num_rows == len(final)


@settings(deadline=None, max_examples=examples(30))
@given(cases())
def test_the_first_violations_are_a_prefix_in_a_stable_order(case):
    schema, tables, delta = case
    committed = {k: table_of(schema.table(k), rows) for k, rows in tables.items() if rows}

    def first(limit):
        try:
            validate(schema, delta, MemoryState(committed), violations_max=limit)
        except ConstraintError as error:
            return error.violations, error.total
        return (), 0

    everything, total = first(1000)
    for limit in (0, 1, 3):
        assert first(limit) == (everything[:limit], total)
