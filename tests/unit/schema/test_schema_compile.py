from __future__ import annotations

import pytest

from omnigraph.errors import SchemaError
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Cardinality
from omnigraph.schema.compile import compile_schema, parse_schema


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


def findings(text):
    with pytest.raises(SchemaError) as caught:
        compile_schema(text)
    return [(d.code, d.message, d.hint) for d in caught.value.diagnostics]


@pytest.mark.parametrize(
    "text",
    [
        "node A { x: I64 @kye }",
        "node A { x: I64 @kex }",
        "node A { x: I64 @kye(x) }",
        "node A { x: I64\n @kye(x) }",
        "node A {} edge E: A -> A @crad",
        "node A {} edge E: A -> A @crad(0..1)",
        "node A { x: I64 @idx2 @idnex }",
    ],
)
def test_misspelled_word_is_an_error_however_short(text):
    assert codes(text) == ["S304"]


@pytest.mark.parametrize("word", ["owner", "kind", "desc", "since", "unknown", "keep", "tag"])
def test_other_annotations_are_kept(word):
    node = compile_schema(f"node A {{ x: I64 @{word} }}").nodes["A"]
    assert [a.name for a in node.properties[0].annotations] == [word]


@pytest.mark.parametrize(
    ("kind", "bound", "value"),
    [
        ("F64", "99999999999999999999999999999999999999999999", 1e44),
        ("F64", "9007199254740993", 9007199254740992.0),
        ("F64", "-0", 0.0),
        ("F32", "16777217", 16777216.0),
        ("F32", "0.1", 0.10000000149011612),
    ],
)
def test_bound_of_a_float_is_the_nearest_float(kind, bound, value):
    node = compile_schema(f"node A {{ x: {kind} @range(x, {bound}..) }}").nodes["A"]
    assert node.ranges[0].low == value


@pytest.mark.parametrize(
    ("kind", "bound", "hint"),
    [
        ("F32", "1" + "0" * 39, "largest `F32` is about 3.4e+38"),
        ("F64", "1" + "0" * 309, "largest `F64` is about 1.8e+308"),
        ("I32", "2147483648", "whole numbers from -2147483648 to 2147483647"),
        ("U32", "-1", "whole numbers from 0 to 4294967295"),
        ("I64", "0.5", "whole numbers from"),
    ],
)
def test_hint_on_a_bound_fits_the_type(kind, bound, hint):
    [(code, message, found)] = findings(f"node A {{ x: {kind} @range(x, {bound}..) }}")
    assert (code, hint in found) == ("S315", True), (message, found)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("Int", "use `I32` or `I64`"),
        ("Integer", "use `I32` or `I64`"),
        ("Long", "use `I64`"),
        ("Float", "use `F32` or `F64`"),
        ("Double", "use `F64`"),
        ("Number", "use `I64` or `F64`"),
        ("Text", "use `String`"),
        ("Str", "use `String`"),
        ("Boolean", "use `Bool`"),
        ("Timestamp", "use `DateTime`"),
        ("UUID", "use `String`"),
        ("Bytes", "use `Blob`"),
        ("Binary", "use `Blob`"),
        ("Json", "use `String`"),
        ("[Int]", "use `I32` or `I64`"),
        ("varchar(20)?", "use `String`"),
        ("vector(3)", "did you mean `Vector(3)`?"),
        ("vector", "did you mean `Vector(8)`?"),
        ("Enum(a,\n b)", "did you mean `enum(a, b)`?"),
        ("Enum", "did you mean `enum(a, b)`?"),
        ("string", "did you mean `String`?"),
        ("Strin", "did you mean `String`?"),
    ],
)
def test_unknown_type_comes_with_the_one_to_use(written, hint):
    [(code, message, found)] = findings(f"node A {{ x: {written} @key }}")
    assert (code, found) == ("S201", hint), message


def test_decimal_has_two_ways_out():
    [(_, _, hint)] = findings("node A { x: Decimal(10, 2) }")
    assert "F64" in hint
    assert "String" in hint


def test_hint_on_a_strange_type_lists_all_types():
    [(_, _, hint)] = findings("node A { x: Xyzzy }")
    assert all(word in hint for word in ("String", "I32", "DateTime", "Vector(8)", "enum(a, b)"))


def test_type_without_arguments_says_so():
    [(code, _, hint)] = findings("node A { x: String(20) }")
    assert (code, hint) == ("S010", "`String` has no arguments")


def test_argument_of_an_unknown_type_ends_with_its_body():
    assert codes("node A { x: vector(3 }\nnode B {}\nnode C { y: Enum(a") == ["S010", "S010"]


@pytest.mark.parametrize("written", ["[vector(3)]", "[Enum(a)]"])
def test_list_of_a_misspelled_type_is_still_no_list(written):
    assert codes(f"node A {{ x: {written} }}") == ["S202"]


@pytest.mark.parametrize(
    "text",
    [
        "node A { ü: String }",
        "node A { größe: String }",
        "node Élan { a: String }",
        "é: x\nnode A {}",
        "node A { a: “b” }",
    ],
)
def test_hole_of_an_illegal_character_is_not_reported_again(text):
    assert set(codes(text)) == {"S001"}


def test_mistake_elsewhere_is_reported_beside_an_illegal_character():
    assert codes("node A { a: String; b String }\nnode B { c I32; ") == [
        "S001",
        "S010",
        "S010",
        "S001",
    ]
    assert codes("node A { a: String;") == ["S001", "S017"]


@pytest.mark.parametrize(
    ("range_", "plain"),
    [
        ("1e3..", "1000"),
        ("..1E3", "1000"),
        ("0..1e3", "1000"),
        ("-1.5e3..", "1500"),
        ("-2e-3..", "0.002"),
        ("0..25e+1", "250"),
    ],
)
def test_exponent_is_named_with_the_number_to_write(range_, plain):
    found = findings(f"node A {{ x: F64 @range(x, {range_}) }}")
    assert [f for f in found if f[0] != "S001"] == [
        ("S010", f"numbers have no exponent here: write {plain}", None)
    ]


def test_huge_exponent_is_not_written_out():
    [(code, message, _)] = findings("node A { x: F64 @range(x, 1e999999999..) }")
    assert (code, message) == ("S010", "numbers have no exponent here")
    assert "write 1000" in findings("node A {} edge E: A -> A @card(0..1e3)")[0][1]


@pytest.mark.parametrize(
    ("body", "hint"),
    [
        ("@key(src, dst)", "write `@key(@src, @dst)`"),
        ("a: I32 @key(src, dst, a)", "write `@key(@src, @dst, a)`"),
        ("a: I32 @key(a)", "write `@key(@src, @dst, a)`"),
    ],
)
def test_edge_key_without_at_signs_is_one_finding(body, hint):
    found = findings(f"node A {{}} edge E: A -> A {{ {body} }}")
    assert [(code, h) for code, _, h in found] == [("S310", hint)]


def test_endpoint_stands_in_a_key_once():
    assert codes("node A {} edge E: A -> A { @key(@src, @dst, src) }") == ["S312"]


@pytest.mark.parametrize("text", ["", " \n", "// only a comment", "/* a */\n\ufeff"[:-1]])
def test_schema_without_declarations_is_refused(text):
    assert codes(text) == ["S018"]


def test_what_could_not_be_read_is_no_empty_schema():
    assert codes("/* node A {}") == ["S003"]
    assert codes("noed A {}") == ["S013"]
