from __future__ import annotations

import pytest

from omnigraph.errors import SchemaError
from omnigraph.schema import Cardinality, compile_schema, parse_schema, table_schema


def codes(text):
    with pytest.raises(SchemaError) as caught:
        compile_schema(text)
    return [d.code for d in caught.value.diagnostics]


def test_numbers_come_from_one_counter_in_a_fixed_order():
    catalog = compile_schema(
        "edge E: A -> A { w: F32 } node A implements I { b: I32 } interface I { a: String }"
    )
    interface, node, edge = catalog.interfaces["I"], catalog.nodes["A"], catalog.edges["E"]
    assert (interface.id, interface.properties[0].id) == (1, 2)
    assert (node.id, node.incarnation, [p.id for p in node.properties]) == (3, 4, [5, 6])
    assert (edge.id, edge.incarnation, edge.properties[0].id) == (7, 8, 9)
    assert catalog.next_id == 10


def test_declarations_may_come_in_any_order():
    assert list(compile_schema("edge E: B -> A node B {} node A {}").nodes) == ["B", "A"]


def test_key_is_ordered_by_number_and_indexed():
    node = compile_schema("node A { a: I32 b: I32 c: I32 @key(c, a) }").nodes["A"]
    assert node.key == ("a", "c")
    assert node.indexes == (("c",), ("a",))


def test_own_property_hides_the_constraints_of_the_interface():
    catalog = compile_schema(
        "interface I { a: String @key @unique } node A implements I { a: String }"
    )
    assert (catalog.nodes["A"].key, catalog.nodes["A"].unique) == ((), ())


def test_constraints_of_two_interfaces_add_up():
    node = compile_schema(
        "interface I { a: String @unique } interface J { a: String @index } node A implements I, J {}"
    ).nodes["A"]
    assert [p.name for p in node.properties] == ["a"]
    assert (node.unique, node.indexes) == ((("a",),), (("a",),))


def test_body_constraint_may_name_an_injected_property():
    node = compile_schema("interface I { a: I32 } node A implements I { @range(a, 0..1) @key(a) }")
    assert node.nodes["A"].key == ("a",)


def test_default_cardinality_is_unbounded():
    assert compile_schema("node A {} edge E: A -> A").edges["E"].cardinality == Cardinality()


def test_id_property_is_stored_once():
    node = compile_schema("node A { id: String @key  b: I32 }").nodes["A"]
    assert table_schema(node).names == ["id", "b"]


def test_rename_hint_is_inert_but_kept_for_migration():
    text = 'node A @rename_from("B") { a: String @rename_from(b) }'
    assert compile_schema(text) == compile_schema("node A { a: String }")
    assert parse_schema(text).nodes[0].annotations[0].name.text == "rename_from"


def test_all_broken_declarations_are_reported():
    assert codes("node A { a String }\nnode B {}\nedge e: A -> B\ninterface I { @key(a) }") == [
        "S010",
        "S011",
        "S015",
    ]


def test_all_rules_report_in_the_order_of_the_text():
    assert codes("node A { a: Strin @key  b: I32? @key }\nedge E: A -> C") == [
        "S201",
        "S306",
        "S307",
        "S106",
    ]


def test_source_name_is_in_the_message():
    with pytest.raises(SchemaError, match=r"^my\.pg:1:1: S013"):
        compile_schema("x", source_name="my.pg")


def test_keywords_are_contextual():
    node = compile_schema(
        "node A { node: String implements: I32 interface: Bool edge: Date }"
    ).nodes["A"]
    assert [p.name for p in node.properties] == ["node", "implements", "interface", "edge"]


def test_bare_word_and_quoted_text_are_the_same_argument():
    one = compile_schema("node A { t: String v: Vector(2) @embed(t) @x(y) }")
    assert one == compile_schema('node A { t: String v: Vector(2) @embed("t") @x("y") }')
