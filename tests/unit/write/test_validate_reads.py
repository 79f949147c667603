"""What the validator reads: nothing it does not need."""

from __future__ import annotations

from validate_fixtures import MERGE, OVERWRITE, accepted, catalog, change, edge, fleet, node, state

from omnigraph.rules import endpoints
from omnigraph.testing.committed import RecordedRead

FLEET = fleet()
V1, V2 = ({"imo": i, "name": "A"} for i in (1, 2))
CALL = {"id": "e", "src": "1", "dst": "p"}
TOW = {"id": "t", "src": "1", "dst": "2"}


def lookup(table_key, column, values, *columns):
    return RecordedRead(table_key=table_key, column=column, values=tuple(values), columns=columns)


def scan(table_key, *columns):
    return RecordedRead(table_key=table_key, column=None, values=(), columns=columns)


def reads(schema, delta, **committed):
    memory = state(schema, **committed)
    accepted(schema, delta, memory)
    return memory.reads


def test_nothing_is_read_from_an_empty_graph():
    schema = fleet(card=(1, 3))
    for mode in (MERGE, OVERWRITE):
        delta = change(schema, mode, Vessel=[V1], Port=[{"id": "p", "code": "x"}], CallsAt=[CALL])
        assert reads(schema, delta) == []


def test_one_fresh_edge_costs_one_lookup_per_node_type():
    delta = change(FLEET, CallsAt=[CALL], fresh=("CallsAt",))
    assert reads(FLEET, delta, Vessel=[V1], Port=[{"id": "p"}], CallsAt=[CALL | {"id": "x"}]) == [
        lookup("node:Vessel", "id", ["1"], "id"),
        lookup("node:Port", "id", ["p"], "id"),
    ]


def test_both_ends_at_one_type_are_one_lookup_over_all_edge_types():
    delta = change(FLEET, Tows=[TOW], CallsAt=[CALL], fresh=("Tows", "CallsAt"))
    assert reads(FLEET, delta, Vessel=[V1, V2], Port=[{"id": "p"}]) == [
        lookup("node:Vessel", "id", ["1", "2"], "id"),
        lookup("node:Port", "id", ["p"], "id"),
    ]


def test_only_nodes_that_the_delta_does_not_bring_are_looked_up():
    delta = change(FLEET, Vessel=[V1], Tows=[TOW], fresh=("Tows", "Vessel"))
    assert reads(FLEET, delta, Vessel=[V2]) == [lookup("node:Vessel", "id", ["2"], "id")]


def test_of_no_more_nodes_than_ends_are_left_all_are_read_once(monkeypatch):
    monkeypatch.setattr(endpoints, "SCANNED_MIN", 2)
    both = [TOW, {"id": "u", "src": "2", "dst": "1"}]
    delta = change(FLEET, Tows=both, CallsAt=[CALL], fresh=("Tows", "CallsAt"))
    assert reads(FLEET, delta, Vessel=[V1, V2], Port=[{"id": "p"}]) == [
        scan("node:Vessel", "id"),
        lookup("node:Port", "id", ["p"], "id"),
    ]


def test_a_unique_value_is_looked_up_and_null_is_not():
    port = {"id": "q", "code": "x"}
    delta = change(FLEET, Port=[port], fresh=("Port",))
    assert reads(FLEET, delta, Port=[{"id": "p"}]) == [
        lookup("node:Port", "code", ["x"], "id", "code")
    ]
    assert reads(FLEET, change(FLEET, Port=[{"id": "q"}], fresh=("Port",)), Port=[port]) == []


def test_a_composite_group_is_looked_up_by_its_most_selective_member():
    schema = catalog(node("N"), edge("E", "N", "N", unique=(("src", "dst"),)))
    rows = [{"id": str(i), "src": f"n{i}", "dst": "n0"} for i in range(3)]
    delta = change(schema, N=[{"id": f"n{i}"} for i in range(3)], E=rows, fresh=("E",))
    old = {"id": "x", "src": "n9", "dst": "n0"}
    assert reads(schema, delta, E=[old]) == [
        lookup("edge:E", "src", ["n0", "n1", "n2"], "id", "src", "dst")
    ]


def test_supplied_ids_are_looked_up_once_together_with_removed_ones():
    delta = change(FLEET, MERGE, Port=[{"id": "q"}], removed={"Port": ["p"]})
    assert reads(FLEET, delta, Port=[{"id": "p"}]) == [lookup("node:Port", "id", ["p", "q"], "id")]


def test_cardinality_reads_the_touched_sources():
    schema = fleet(card=(0, 3))
    delta = change(schema, MERGE, Vessel=[V1], Port=[{"id": "p"}], CallsAt=[CALL])
    old = [{"id": "e", "src": "2", "dst": "p"}]
    assert reads(schema, delta, CallsAt=old) == [
        lookup("edge:CallsAt", "id", ["e"], "id", "src"),
        lookup("edge:CallsAt", "src", ["1", "2"], "id", "src"),
    ]


def test_a_removed_node_asks_every_edge_column_at_its_type_that_has_rows():
    delta = change(FLEET, removed={"Vessel": ["2"]})
    assert reads(FLEET, delta, Vessel=[V1, V2], Tows=[TOW | {"dst": "1"}]) == [
        lookup("node:Vessel", "id", ["2"], "id"),
        lookup("edge:Tows", "src", ["2"], "id"),
        lookup("edge:Tows", "dst", ["2"], "id"),
    ]


def test_an_overwrite_scans_the_ids_once_and_the_sources_only_for_a_minimum():
    nodes = {"Vessel": [V1], "Port": [{"id": "p"}]}
    for card, columns in (((0, 3), ("id",)), ((1, 3), ("id", "src"))):
        schema = fleet(card=card)
        delta = change(schema, OVERWRITE, CallsAt=[CALL], **nodes)
        assert reads(schema, delta, CallsAt=[CALL]) == [scan("edge:CallsAt", *columns)]


def test_an_overwrite_with_fresh_ids_counts_without_reading():
    memory = state(FLEET, Port=[{"id": "p"}, {"id": "q"}])
    delta = change(FLEET, OVERWRITE, Port=[{"id": "r"}], fresh=("Port",))
    outcome = accepted(FLEET, delta, memory).tables["node:Port"]
    assert memory.reads == []
    assert (outcome.inserted_count, outcome.updated_count, outcome.deleted_count) == (1, 0, 2)
