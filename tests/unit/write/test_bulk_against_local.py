"""Rules bucket by bucket and the local validator agree on random schemas, states and inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from frames_in_memory import Session, State, input_frame, with_places
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from test_validate_against_reference import cases
from validate_fixtures import catalog, change, node, origins, prop, table_of

from omnigraph.errors import ConstraintError
from omnigraph.rules.bulk import BulkInput, InputTable
from omnigraph.rules.table_delta import NO_IDS, WriteMode
from omnigraph.schema.catalog import Scalar
from omnigraph.spark import check as checking
from omnigraph.spark.check import check
from omnigraph.spark.exchange import LoadSources
from omnigraph.spark.input import Intake
from omnigraph.testing.committed import MemoryState
from omnigraph.write.txn import GraphDelta
from omnigraph.write.validate import validate
from support.examples import examples

pytest.importorskip("pyspark")


@st.composite
def loads(draw):
    """Schema, committed rows and a delta that a load could have made."""
    schema, tables, delta = draw(cases())
    mode = draw(st.sampled_from(list(WriteMode)))
    changed = {
        key: replace(t, mode=mode, removed=NO_IDS, origins=origins(t.rows.num_rows, "in"))
        for key, t in delta.tables.items()
    }
    return schema, tables, GraphDelta(tables=changed), mode


def bulk_check(schema, committed, delta, mode, **options):
    session = Session()
    placed = {k: with_places(t.rows) for k, t in delta.tables.items()}
    frame, read = input_frame(session, placed)
    given = BulkInput(
        catalog=schema,
        mode=mode,
        tables={k: InputTable(type=t.type, rows=len(t.rows)) for k, t in delta.tables.items()},
        files=("in",),
        committed_rows=MemoryState(committed).row_count,
    )
    sources = LoadSources(
        spark=session, intake=Intake(frame=frame, read=read), state=State(schema, committed)
    )
    return check(sources, given, **options), session


@settings(
    deadline=None,
    max_examples=examples(130),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(loads(), st.integers(1, 4))
def test_same_violations_in_the_same_order_and_the_same_counts(load, parts):
    schema, tables, delta, mode = load
    committed = {k: table_of(schema.table(k), rows) for k, rows in tables.items() if rows}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "BUCKET_ROWS", parts)  # Buckets of the first pass are divided.
        checked, session = bulk_check(schema, committed, delta, mode)
        every = list(checked.every())
    try:
        outcome = validate(schema, delta, MemoryState(committed), violations_max=1000)
    except ConstraintError as error:
        event("refused")
        assert every == list(error.violations)
        assert list(checked.first) == list(error.violations[:20])
        assert checked.total == error.total
        assert checked.refusal().kind is error.kind
        return
    event(f"accepted by {session.exchanges} exchanges")
    assert not checked.total
    for key, table in outcome.tables.items():
        assert table.rows.num_rows == delta.tables[key].rows.num_rows - checked.superseded[key]
        assert table.updated_count == checked.known.get(key, 0)


def test_ids_that_agree_in_their_ends_alone_are_two_entities():
    """Of a long id only the ends are hashed: a tuple that passes from one to the other is held."""
    schema = catalog(node("N", prop("u", Scalar.STRING), unique=(("u",),)))
    one, other = ("h" * 8 + middle + "t" * 32 for middle in "ab")
    committed = {"node:N": table_of(schema.table("node:N"), [{"id": one, "u": "v"}])}
    delta = change(schema, WriteMode.MERGE, N=[{"id": other, "u": "v"}])
    checked, _ = bulk_check(schema, committed, delta, WriteMode.MERGE)
    assert [v.entity_id for v in checked.first] == [other]
