"""Rule 2 of the validator: keys, supplied ids and unique groups."""

from __future__ import annotations

import pytest
from validate_fixtures import (
    APPEND,
    MERGE,
    OVERWRITE,
    accepted,
    catalog,
    change,
    counts,
    edge,
    failure,
    fleet,
    messages,
    node,
    prop,
    state,
)

from omnigraph.errors import ErrorKind
from omnigraph.schema.catalog import Scalar

FLEET = fleet()


def vessel(imo, name="A", **more):
    return {"imo": imo, "name": name} | more


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_a_key_twice_in_the_input_is_a_violation_in_every_mode(mode):
    delta = change(FLEET, mode, Vessel=[vessel(7), vessel(8), vessel(7, "B")], lines=True)
    error = failure(FLEET, delta)
    (violation,) = error.violations
    assert violation.message == (
        "@key violation on Vessel.imo: value '7' repeated in the input (in.jsonl:1 and in.jsonl:3)"
    )
    assert (violation.rule, violation.entity_id, violation.line) == ("key", "7", 3)
    assert error.kind is ErrorKind.CONSTRAINT


def test_a_composite_key_is_named_as_a_tuple():
    schema = catalog(
        node(
            "N",
            prop("a", Scalar.STRING, nullable=False),
            prop("b", Scalar.I32, nullable=False),
            key=("a", "b"),
        )
    )
    rows = [{"id": '["x","1"]', "a": "x", "b": 1}] * 2
    assert messages(schema, change(schema, N=rows)) == [
        "@key violation on N.(a, b): value (x, 1) repeated in the input"
    ]


def test_a_keyed_edge_twice_names_its_ends():
    schema = catalog(node("N"), edge("E", "N", "N", keyed=True, unique=(("src", "dst"),)))
    row = {"id": '["a","b"]', "src": "a", "dst": "b"}
    delta = change(schema, MERGE, N=[{"id": "a"}, {"id": "b"}], E=[row, row])
    assert messages(schema, delta) == [
        "@key violation on E.(src, dst): value (a, b) repeated in the input"
    ]


@pytest.mark.parametrize("mode", [APPEND, OVERWRITE])
def test_a_supplied_id_may_not_repeat(mode):
    assert (
        messages(FLEET, change(FLEET, mode, Port=[{"id": "p"}] * 3))
        == ["@key violation on Port.id: value 'p' repeated in the input"] * 2
    )


def test_in_a_merge_the_last_row_of_a_supplied_id_wins():
    rows = [{"id": "p", "code": "1"}, {"id": "q"}, {"id": "p", "code": "2"}]
    committed = state(FLEET, Port=[{"id": "p", "code": "0"}])
    outcome = accepted(FLEET, change(FLEET, MERGE, Port=rows), committed)
    table = outcome.tables["node:Port"]
    assert table.rows.to_pylist() == [{"id": "q", "code": None}, {"id": "p", "code": "2"}]
    assert table.matched.to_pylist() == ["p"]
    assert counts(outcome, "node:Port") == (1, 1, 0)


def test_append_refuses_ids_that_exist_with_a_kind_of_its_own():
    committed = state(FLEET, Vessel=[vessel(100), vessel(5)])
    error = failure(FLEET, change(FLEET, Vessel=[vessel(6), vessel(100)], lines=True), committed)
    (violation,) = error.violations
    assert violation.message == "key conflict on Vessel: '100' exists already"
    assert (violation.rule, violation.entity_id, violation.line) == ("key", "100", 2)
    assert error.kind is ErrorKind.KEY_CONFLICT


def test_a_key_conflict_among_other_violations_is_a_constraint_error():
    committed = state(FLEET, Vessel=[vessel(100)])
    error = failure(FLEET, change(FLEET, Vessel=[vessel(100), vessel(6, None)]), committed)
    assert error.total == 2
    assert error.kind is ErrorKind.CONSTRAINT


def test_merge_replaces_and_overwrite_counts_exactly():
    committed = state(FLEET, Vessel=[vessel(1), vessel(2), vessel(3)])
    delta = change(FLEET, MERGE, Vessel=[vessel(2, "B"), vessel(4)], removed={"Vessel": ["3", "9"]})
    outcome = accepted(FLEET, delta, committed)
    assert counts(outcome, "node:Vessel") == (1, 1, 1)
    assert outcome.tables["node:Vessel"].matched.to_pylist() == ["2"]
    assert outcome.tables["node:Vessel"].removed.to_pylist() == ["3"]
    outcome = accepted(
        FLEET, change(FLEET, OVERWRITE, Vessel=[vessel(2, "B"), vessel(4)]), committed
    )
    assert counts(outcome, "node:Vessel") == (1, 1, 2)
    assert outcome.tables["node:Vessel"].matched.to_pylist() == []
    assert outcome.tables["node:Vessel"].removed.to_pylist() == ["1", "3"]


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_a_unique_value_twice_in_the_input(mode):
    rows = [vessel(1, sign="S"), vessel(2), vessel(3), vessel(4, sign="S")]
    error = failure(FLEET, change(FLEET, mode, Vessel=rows))
    (violation,) = error.violations
    assert violation.message == "@unique violation on Vessel.sign: value 'S' held by '1' and '4'"
    assert (violation.rule, violation.entity_id, violation.property_name) == ("unique", "4", "sign")


def test_the_same_tuple_under_the_same_id_is_a_violation_too():
    rows = [{"id": "p", "code": "x"}, {"id": "p", "code": "x"}]
    assert messages(FLEET, change(FLEET, MERGE, Port=rows)) == [
        "@unique violation on Port.code: value 'x' held by 'p' and 'p'"
    ]


def test_a_composite_group_names_the_tuple_and_exempts_null():
    rows = [vessel(i, "Alba", flag=flag) for i, flag in enumerate(["DK", None, None, "NO", "DK"])]
    assert messages(FLEET, change(FLEET, Vessel=rows)) == [
        "@unique violation on Vessel.(name, flag): value (Alba, DK) held by '0' and '4'"
    ]


@pytest.mark.parametrize("mode", [APPEND, MERGE])
def test_a_committed_holder_of_a_unique_value(mode):
    committed = state(FLEET, Vessel=[vessel(1, sign="S", flag="DK"), vessel(2, flag="NO")])
    delta = change(FLEET, mode, Vessel=[vessel(3, sign="S"), vessel(4, flag="DK")])
    assert messages(FLEET, delta, committed) == [
        "@unique violation on Vessel.sign: value 'S' held by '1' and '3'",
        "@unique violation on Vessel.(name, flag): value (A, DK) held by '1' and '4'",
    ]


def test_a_value_released_in_the_same_write_may_be_reused():
    committed = state(FLEET, Vessel=[vessel(1, sign="S"), vessel(2, sign="T")])
    delta = change(
        FLEET,
        MERGE,
        Vessel=[vessel(1, sign="X"), vessel(3, sign="S"), vessel(4, sign="T")],
        removed={"Vessel": ["2"]},
    )
    accepted(FLEET, delta, committed)


def test_an_overwrite_does_not_meet_the_rows_it_replaces():
    committed = state(FLEET, Vessel=[vessel(1, sign="S")])
    accepted(FLEET, change(FLEET, OVERWRITE, Vessel=[vessel(2, sign="S")]), committed)


def test_ends_may_be_members_of_a_group():
    schema = catalog(node("N"), edge("E", "N", "N", unique=(("src", "dst"),)))
    nodes = [{"id": "a"}, {"id": "b"}]
    committed = state(schema, N=nodes, E=[{"id": "1", "src": "a", "dst": "b"}])
    rows = [{"id": "2", "src": "b", "dst": "a"}, {"id": "3", "src": "a", "dst": "b"}]
    assert messages(schema, change(schema, E=rows, fresh=("E",)), committed) == [
        "@unique violation on E.(src, dst): value (a, b) held by '1' and '3'"
    ]


def test_zero_is_one_value_whatever_its_sign():
    schema = catalog(node("N", prop("f", Scalar.F64), unique=(("f",),)))
    rows = [{"id": "a", "f": 0.0}, {"id": "b", "f": -0.0}]
    assert len(messages(schema, change(schema, N=rows))) == 1
    committed = state(schema, N=rows[1:])
    assert messages(schema, change(schema, N=rows[:1]), committed) == [
        "@unique violation on N.f: value '0.0' held by 'b' and 'a'"
    ]


@pytest.mark.parametrize("scalar,value", [(Scalar.BOOL, True), (Scalar.I32, 5), (Scalar.DATE, 9)])
def test_groups_of_any_scalar(scalar, value):
    schema = catalog(node("N", prop("p", scalar), unique=(("p",),)))
    delta = change(schema, N=[{"id": "a", "p": value}, {"id": "b", "p": value}])
    (message,) = messages(schema, delta)
    assert message.startswith("@unique violation on N.p: value '")


def test_fresh_ids_are_neither_compared_nor_looked_up():
    committed = state(FLEET, Port=[{"id": "p"}])
    outcome = accepted(FLEET, change(FLEET, Port=[{"id": "q"}], fresh=("Port",)), committed)
    assert committed.reads == []
    assert counts(outcome, "node:Port") == (1, 0, 0)
