"""Rules 3 and 4 of the validator: endpoints and cardinality."""

from __future__ import annotations

import pytest
from validate_fixtures import (
    APPEND,
    MERGE,
    OVERWRITE,
    accepted,
    both,
    change,
    counts,
    failure,
    fleet,
    messages,
    state,
)

FLEET = fleet()
V1, V2, V3 = ({"imo": i, "name": "A"} for i in (1, 2, 3))
PORTS = [{"id": "p"}, {"id": "q"}]


def call(id, src, dst="p"):
    return {"id": id, "src": str(src), "dst": dst}


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_nodes_of_the_same_write_count(mode):
    accepted(FLEET, change(FLEET, mode, CallsAt=[call("e", 1)], Vessel=[V1], Port=PORTS))


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_an_end_that_is_nowhere_is_told_with_its_line(mode):
    rows = [call("e", 1, "p"), call("f", 9, "z")]
    delta = change(FLEET, mode, CallsAt=rows, lines=True)
    committed = state(FLEET, Vessel=[V1], Port=PORTS)
    error = failure(FLEET, delta, committed)
    assert [v.message for v in error.violations] == [
        "src '9' not found in Vessel",
        "dst 'z' not found in Port",
    ]
    first = error.violations[0]
    assert (first.rule, first.entity_kind, first.type_name) == ("endpoint", "edge", "CallsAt")
    assert (first.entity_id, first.property_name, first.line) == ("f", "src", 2)


def test_a_removed_node_does_not_count_although_it_is_committed():
    committed = state(FLEET, Vessel=[V1, V2])
    delta = change(
        FLEET, MERGE, Tows=[{"id": "t", "src": "1", "dst": "2"}], removed={"Vessel": ["2"]}
    )
    assert messages(FLEET, delta, committed) == ["dst '2' not found in Vessel"]


def test_a_node_that_an_overwrite_drops_does_not_count():
    committed = state(FLEET, Vessel=[V1, V2])
    delta = change(FLEET, OVERWRITE, Vessel=[V1], Tows=[{"id": "t", "src": "1", "dst": "2"}])
    assert messages(FLEET, delta, committed) == ["dst '2' not found in Vessel"]


def test_a_surviving_edge_may_not_lose_a_node():
    committed = state(
        FLEET, Vessel=[V1, V2], Port=PORTS, CallsAt=[call("e2", 2), call("e1", 1), call("e0", 1)]
    )
    error = failure(FLEET, change(FLEET, removed={"Vessel": ["1"]}), committed)
    assert [v.message for v in error.violations] == [
        "edge CallsAt 'e0': src '1' not found in Vessel",
        "edge CallsAt 'e1': src '1' not found in Vessel",
    ]
    first = error.violations[0]
    assert (first.rule, first.entity_kind, first.type_name) == ("endpoint", "edge", "CallsAt")
    assert (first.entity_id, first.source, first.line) == ("e0", None, None)


def test_an_overwrite_of_nodes_is_checked_against_the_edges_of_other_types():
    committed = state(
        FLEET, Vessel=[V1, V2], Tows=[{"id": "t", "src": "1", "dst": "2"}], Port=PORTS
    )
    assert messages(FLEET, change(FLEET, OVERWRITE, Vessel=[V3, V1]), committed) == [
        "edge Tows 't': dst '2' not found in Vessel"
    ]
    accepted(FLEET, change(FLEET, OVERWRITE, Vessel=[V2, V1]), committed)


def test_edges_that_go_or_move_in_the_same_write_do_not_survive():
    committed = state(
        FLEET, Vessel=[V1, V2], Port=PORTS, CallsAt=[call("e", 1), call("f", 1), call("g", 2)]
    )
    delta = change(
        FLEET, MERGE, CallsAt=[call("f", 2)], removed={"Vessel": ["1"], "CallsAt": ["e"]}
    )
    outcome = accepted(FLEET, delta, committed)
    assert counts(outcome, "edge:CallsAt") == (0, 1, 1)
    assert counts(outcome, "node:Vessel") == (0, 0, 1)


def test_edges_of_an_overwritten_type_do_not_survive():
    committed = state(FLEET, Vessel=[V1, V2], Port=PORTS, CallsAt=[call("e", 1)])
    delta = both(
        change(FLEET, removed={"Vessel": ["1"]}), change(FLEET, OVERWRITE, CallsAt=[call("e", 2)])
    )
    accepted(FLEET, delta, committed)


def test_removing_a_node_that_is_not_there_changes_nothing():
    committed = state(FLEET, Vessel=[V1], Tows=[{"id": "t", "src": "1", "dst": "1"}])
    outcome = accepted(FLEET, change(FLEET, removed={"Vessel": ["9"]}), committed)
    assert counts(outcome, "node:Vessel") == (0, 0, 0)


@pytest.mark.parametrize("mode", [APPEND, MERGE, OVERWRITE])
def test_too_many_edges_in_the_input(mode):
    schema = fleet(card=(0, 2))
    rows = [call(i, 1) for i in "abc"] + [call(i, 2) for i in "de"]
    delta = change(schema, mode, Vessel=[V1, V2], Port=PORTS, CallsAt=rows, lines=True)
    (violation,) = failure(schema, delta).violations
    assert violation.message == "@card violation on edge CallsAt: source '1' has 3 edges (max 2)"
    assert (violation.rule, violation.entity_id, violation.line) == ("cardinality", "c", 3)


def test_committed_edges_count_unless_replaced_or_removed():
    schema = fleet(card=(0, 2))
    committed = state(schema, Vessel=[V1], Port=PORTS, CallsAt=[call("a", 1), call("b", 1)])
    assert messages(schema, change(schema, CallsAt=[call("c", 1)]), committed) == [
        "@card violation on edge CallsAt: source '1' has 3 edges (max 2)"
    ]
    accepted(schema, change(schema, MERGE, CallsAt=[call("b", 1, "q")]), committed)
    delta = change(schema, MERGE, CallsAt=[call("c", 1)], removed={"CallsAt": ["a"]})
    accepted(schema, delta, committed)


def test_the_minimum_holds_for_the_source_an_edge_leaves():
    schema = fleet(card=(1, None))
    committed = state(schema, Vessel=[V1, V2, V3], Port=PORTS, CallsAt=[call("a", 1), call("b", 2)])
    assert messages(schema, change(schema, MERGE, CallsAt=[call("a", 2)]), committed) == [
        "@card violation on edge CallsAt: source '1' has 0 edges (min 1)"
    ]
    error = failure(schema, change(schema, removed={"CallsAt": ["b"]}), committed)
    (violation,) = error.violations
    assert violation.message == "@card violation on edge CallsAt: source '2' has 0 edges (min 1)"
    assert (violation.entity_id, violation.line) == (None, None)


def test_a_removed_source_is_held_to_nothing():
    schema = fleet(card=(1, None))
    committed = state(schema, Vessel=[V1, V2], Port=PORTS, CallsAt=[call("a", 1), call("b", 2)])
    accepted(schema, change(schema, removed={"CallsAt": ["a"], "Vessel": ["1"]}), committed)
    accepted(schema, change(schema, OVERWRITE, CallsAt=[call("c", 2)], Vessel=[V2]), committed)


def test_an_overwrite_holds_the_old_sources_to_the_minimum():
    schema = fleet(card=(1, 1))
    committed = state(schema, Vessel=[V1, V2, V3], Port=PORTS, CallsAt=[call("b", 3), call("a", 2)])
    rows = [call("x", 1), call("y", 1)]
    assert messages(schema, change(schema, OVERWRITE, CallsAt=rows), committed) == [
        "@card violation on edge CallsAt: source '1' has 2 edges (max 1)",
        "@card violation on edge CallsAt: source '2' has 0 edges (min 1)",
        "@card violation on edge CallsAt: source '3' has 0 edges (min 1)",
    ]


def test_a_node_that_never_had_an_edge_is_not_held_to_the_minimum():
    schema = fleet(card=(1, None))
    accepted(schema, change(schema, Vessel=[V1]))
