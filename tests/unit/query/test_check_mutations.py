"""Statements: targets, assignments, keys, conditions."""

from __future__ import annotations

import pytest
from check_support import CATALOG, change, change_codes, codes, diagnostics

from omnigraph.query import typed
from omnigraph.query.check.constants import SINGLE
from omnigraph.query.compile import compile_queries
from omnigraph.schema.catalog import Scalar
from omnigraph.schema.compile import compile_schema

VESSEL = 'imo: 1, name: "a"'


def assigned(assignment, params=""):
    (statement,) = change(f"insert Vessel {{ {VESSEL}, {assignment} }}", params).statements
    return statement.assignments[-1].value


@pytest.mark.parametrize(
    ("assignment", "value", "scalar"),
    [
        ("draft: 7", 7.0, Scalar.F32),
        ("draft: 0.5", 0.5, Scalar.F32),
        ("active: false", False, Scalar.BOOL),
        ('flag: "no"', "no", Scalar.STRING),
        ('photo: "base64:AAE="', b"\x00\x01", Scalar.BLOB),
    ],
)
def test_constants_are_values_of_the_property(assignment, value, scalar):
    assert assigned(assignment) == typed.Const(value=value, type=SINGLE[scalar])


def test_whole_decimals_are_integers():
    (statement,) = change('insert Log { text: "x", level: 3.0 }').statements
    value = statement.assignments[1].value
    assert value == typed.Const(value=3, type=SINGLE[Scalar.I32])
    assert type(value.value) is int


def test_null_clears_what_may_be_null():
    for name in ("flag", "photo", "shape", "tags"):
        assert assigned(f"{name}: null").value is None
    assert change_codes("update Port set { name: null } where berths = 1") == ["Q606"]


@pytest.mark.parametrize(
    ("assignment", "params"),
    [
        ("draft: $x", "$x: F64"),
        ("draft: $x", "$x: I32?"),
        ("years: $x", "$x: [I64]"),
        ("shape: $x", "$x: Vector(3)"),
        ("photo: $x", "$x: Blob"),
        ("photo: $x", "$x: String"),
        ("flag: $x", "$x: String?"),
        ("seen: now()", ""),
    ],
)
def test_values_that_fit(assignment, params):
    assert isinstance(assigned(assignment, params), typed.Param | typed.Now)


@pytest.mark.parametrize(
    ("assignment", "params", "code"),
    [
        ("draft: $x", "$x: String", "Q605"),
        ("years: $x", "$x: I64", "Q605"),
        ("shape: $x", "$x: Vector(2)", "Q605"),
        ("shape: [1, 2]", "", "Q221"),
        ("shape: [1, 2, 1000000000000000000000000000000000000000.0]", "", "Q605"),
        ('flag: "xx"', "", "Q212"),
        ("built: now()", "", "Q605"),
        ('tags: "a"', "", "Q605"),
        ('tags: ["a", null]', "", "Q215"),
        ("years: [1.5]", "", "Q605"),
        ("note: name", "", "Q220"),
        ("note: $v.name", "", "Q220"),
        ("note: $x", "", "Q106"),
        ("draft: 400000000000000000000000000000000000000.0", "", "Q605"),
        ('photo: "base64:?"', "", "Q605"),
        ("photo: 7", "", "Q605"),
    ],
)
def test_values_that_do_not_fit(assignment, params, code):
    text = f"insert Vessel {{ {VESSEL}, {assignment} }}"
    assert change_codes(text, params) == [code]


def test_ends_of_edges_have_two_names_each():
    for source, target in (("from", "to"), ("src", "dst"), ("from", "dst")):
        (statement,) = change(f'insert Feeds {{ {source}: "A", {target}: "B" }}').statements
        assert [a.column for a in statement.assignments] == ["src", "dst"]


def test_ids_can_be_given_to_nodes_without_a_key():
    (statement,) = change('insert Log { id: "x", text: "t", level: 1 }').statements
    assert statement.assignments[0].column == "id"
    assert change_codes('insert Log { id: 7, text: "t", level: 1 }') == ["Q605"]


def test_a_declared_id_is_an_ordinary_key():
    catalog = compile_schema("node Doc { id: String @key  text: String? }")
    (query,) = compile_queries('upsert Doc { id: "a", text: "b" }', catalog)
    assert [a.column for a in query.body.statements[0].assignments] == ["id", "text"]


def test_upsert_needs_only_the_key():
    (statement,) = change("upsert Vessel { imo: 1 }").statements
    assert statement.upsert
    assert change_codes('upsert Vessel { name: "x" }') == ["Q611"]
    assert change_codes('upsert Charters { from: "1", fee: 1 }') == ["Q604", "Q611"]


def test_where_has_the_whole_expression_grammar():
    (statement,) = change(
        'delete CallsAt where (from = "1" or src in ["2", $x]) and not (cargo is null) and on >= $d',
        "$x: String, $d: Date",
    ).statements
    names = {p.column for p in typed.walk(statement.where) if isinstance(p, typed.Prop)}
    assert names == {"src", "cargo", "on"}
    assert all(p.variable == "" for p in typed.walk(statement.where) if isinstance(p, typed.Prop))


def test_where_knows_the_id_of_nodes():
    (statement,) = change('delete Vessel where id = "7"').statements
    assert statement.where.left.column == "id"


def test_where_refuses_what_it_cannot_mean():
    assert change_codes("delete Vessel where nme = 1") == ["Q103"]
    assert change_codes("delete Vessel where photo is null") == ["Q207"]
    assert change_codes("delete Vessel where imo") == ["Q216"]
    assert change_codes("delete Vessel where imo = $x") == ["Q106"]
    assert change_codes("delete Vessel where from = 1") == ["Q103"]


def test_a_name_that_is_both_is_the_node_type():
    catalog = compile_schema("node Call { n: I64 @key }  edge Call: Call -> Call")
    (query,) = compile_queries("delete Call where n = 1", catalog)
    assert query.body.statements[0].kind == "node"


def test_edges_can_be_updated_but_not_moved():
    (statement,) = change('update CallsAt set { cargo: "x" } where to = "A"').statements
    assert (statement.kind, statement.where.left.column) == ("edge", "dst")
    assert change_codes('update CallsAt set { dst: "x" } where to = "A"') == ["Q608"]


def test_all_statements_are_looked_at():
    text = """query q() {
      insert Vessel { imo: "x" }
      update Prot set { name: "x" } where name = 1
      delete Port where cod = "x"
    }"""
    assert codes(text) == ["Q603", "Q605", "Q601", "Q612", "Q103"]


def test_assigned_columns_are_stored_ones():
    (statement,) = change(f"insert Vessel {{ {VESSEL} }}").statements
    known = {p.name for p in CATALOG.nodes["Vessel"].properties}
    assert {a.column for a in statement.assignments} <= known


def test_the_example_for_a_condition_is_one_that_its_place_takes():
    (found,) = diagnostics("delete Vessel where name")
    assert found.expected == 'a test such as `name = "x"` or a Bool'
    (found,) = diagnostics("match { $v: Vessel $v.name } return { $v.imo }")
    assert found.expected == 'a test such as `$v.name = "x"` or a Bool'
