"""Behaviour of mutations that other implementations surprise with, resolved and pinned here."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation_support import compiled, counts, edge, ends, fleet, mutate, nodes

import omnigraph


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return fleet(tmp_path / "fleet")


def test_quirk_deletes_among_other_statements_are_refused_before_anything_runs(
    graph: omnigraph.Graph,
) -> None:
    text = 'insert Port { code: "X", name: "x", berths: 1 } delete Port where code = "X"'
    with pytest.raises(omnigraph.QueryError):
        compiled(graph, text)
    assert len(graph.commits()) == 2


def test_quirk_whole_literals_fit_float_properties_and_whole_floats_integer_ones(
    tmp_path: Path,
) -> None:
    schema = "node P { code: String @key  f: F32?  d: F64?  i: I32? }"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        mutate(graph, 'insert P { code: "a", f: 3, d: -4, i: 5.0 }')
        assert nodes(graph, "P")["a"] == {"code": "a", "f": 3.0, "d": -4.0, "i": 5}
        with pytest.raises(omnigraph.QueryError):
            mutate(graph, 'insert P { code: "b", i: 5.5 }')


def test_quirk_a_null_clears_a_blob(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", "node P { code: String @key  photo: Blob? }") as graph:
        graph.load([{"code": c, "photo": b"bytes"} for c in "abc"], type="P")
        clear = "query q($p: Blob?) { update P set { photo: $p } where code = $c }"
        clear = clear.replace("($p", "($c: String, $p")
        mutate(graph, clear, {"p": None, "c": "a"})
        mutate(graph, 'update P set { photo: null } where code = "b"')
        mutate(graph, 'upsert P { code: "c" }')
        found = {k: v["photo"] for k, v in nodes(graph, "P").items()}
        assert found == {"a": None, "b": None, "c": b"bytes"}


def test_quirk_null_is_a_literal(graph: omnigraph.Graph) -> None:
    assert counts(mutate(graph, "update Vessel set { flag: null } where flag is not null")) == (
        2,
        0,
    )
    assert {v["flag"] for v in nodes(graph, "Vessel").values()} == {None}


def test_quirk_a_vector_that_nothing_fills_is_null_or_refused(tmp_path: Path) -> None:
    schema = """
    node Soft { code: String @key  text: String  face: Vector(2)? @embed(text) }
    node Hard { code: String @key  text: String  face: Vector(2) @embed(text) }
    """
    with omnigraph.init(tmp_path / "g", schema) as graph:
        mutate(graph, 'insert Soft { code: "a", text: "x" }')
        assert nodes(graph, "Soft")["a"]["face"] is None
        with pytest.raises((omnigraph.ConstraintError, omnigraph.QueryError)):
            mutate(graph, 'insert Hard { code: "a", text: "x" }')
        given = mutate(graph, 'insert Hard { code: "a", text: "x", face: [1.0, 2.0] }')
        assert counts(given) == (1, 0)


def test_quirk_the_least_number_of_edges_is_asked_where_edges_change(tmp_path: Path) -> None:
    schema = "node P { code: String @key }\nedge E: P -> P @card(1..2)"
    with omnigraph.init(tmp_path / "g", schema) as graph:
        mutate(graph, 'insert P { code: "a" } insert P { code: "b" }')
        mutate(graph, 'insert E { from: "a", to: "b" }')
        with pytest.raises(omnigraph.ConstraintError, match=r"source 'a' has 0 edges \(min 1\)"):
            mutate(graph, 'delete E where from = "a"')
        with pytest.raises(omnigraph.ConstraintError, match=r"source 'a' has 0 edges \(min 1\)"):
            mutate(graph, 'delete P where code = "b"')
        # A source that goes itself is not asked, and one that never had an edge never is.
        assert counts(mutate(graph, 'delete P where code in ["a", "b"]')) == (2, 1)


def test_quirk_a_missing_parameter_is_an_error_and_matches_nothing_else(
    graph: omnigraph.Graph,
) -> None:
    text = "query q($code: String) { delete Port where code = $code }"
    for params in (None, {}, {"cod": "AAR"}, {"code": None}, {"code": "AAR", "x": 1}, {"code": 7}):
        with pytest.raises(omnigraph.ParameterError):
            mutate(graph, text, params)
    assert len(nodes(graph, "Port")) == 3


def test_quirk_unsigned_parameters_have_their_full_range(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", "node P { u: U64 @key }") as graph:
        put = "query q($u: U64) { insert P { u: $u } }"
        mutate(graph, put, {"u": 2**64 - 1})
        mutate(graph, put, {"u": str(2**63)})
        assert set(nodes(graph, "P")) == {str(2**64 - 1), str(2**63)}
        drop = "query q($u: U64) { delete P where u >= $u }"
        assert counts(mutate(graph, drop, {"u": 2**64 - 1})) == (1, 0)


def test_quirk_a_timestamp_is_no_date(graph: omnigraph.Graph) -> None:
    text = "query q($d: Date) { update Vessel set { built: $d } where imo = 100 }"
    with pytest.raises(omnigraph.ParameterError):
        mutate(graph, text, {"d": "2026-01-01T10:00:00Z"})
    assert counts(mutate(graph, text, {"d": "2026-01-01"})) == (1, 0)


def test_quirk_edges_are_updated_but_not_moved(graph: omnigraph.Graph) -> None:
    assert counts(mutate(graph, 'update CallsAt set { cargo: "x" } where to = "AAR"')) == (0, 2)
    with pytest.raises(omnigraph.QueryError):
        mutate(graph, 'update CallsAt set { to: "BGO" } where to = "AAR"')
    with pytest.raises(omnigraph.QueryError):
        mutate(graph, "update Vessel set { imo: 1 } where imo = 100")


def test_quirk_where_has_the_whole_grammar(graph: omnigraph.Graph) -> None:
    text = """
    delete CallsAt where (from = "100" and to = "AAR" and on > date("2026-01-15"))
                      or not (cargo is null) or from in ["300", "400"]
    """
    assert counts(mutate(graph, text)) == (0, 1)
    assert counts(mutate(graph, 'delete Vessel where tags contains "ice"')) == (1, 1)
    assert counts(mutate(graph, 'delete Vessel where name starts_with "C"')) == (1, 0)
    assert ends(graph, "CallsAt") == [("100", "AAR"), ("100", "CPH")]


def test_quirk_insert_and_upsert_differ_in_what_they_keep(graph: omnigraph.Graph) -> None:
    mutate(graph, 'upsert Vessel { imo: 200, name: "B" }')
    assert nodes(graph, "Vessel")["200"]["tags"] == ["ice"]
    mutate(graph, 'insert Vessel { imo: 200, name: "B" }')
    assert nodes(graph, "Vessel")["200"]["tags"] is None


def test_quirk_a_delete_after_an_unknown_one_still_sees_the_row(graph: omnigraph.Graph) -> None:
    """Two statements never skip a row because an earlier condition was unknown on it."""
    text = 'delete Vessel where flag = "dk" delete Vessel where name = "Cora"'
    assert counts(mutate(graph, text)) == (2, 3)
    graph.load([edge("CallsAt", "200", "CPH", on="2026-03-03")])
    assert set(nodes(graph, "Vessel")) == {"200"}
