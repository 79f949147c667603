"""Return, aggregates, order, limit: names, types, and which keys are possible."""

from __future__ import annotations

import pytest
from check_support import codes, read, read_text

from omnigraph.query import typed
from omnigraph.schema.catalog import Scalar


def names(returned, clauses="$v: Vessel", params=""):
    return [o.name for o in read(clauses, returned, params=params).outputs]


def test_names_of_columns():
    returned = (
        '$v.name, $v, $v.imo as number, $q, 1 as one, "x", now(), count { $v callsAt $_ } as calls'
    )
    assert names(returned, params="$q: String") == [
        "v.name", "v", "number", "q", "one", "literal", "now", "calls",
    ]  # fmt: skip
    assert names("count($v), avg($v.imo), count(distinct $v.flag), $v.flag, sum(distinct $v.imo)") == [
        "count(v)", "avg(v.imo)", "count(distinct v.flag)", "v.flag", "sum(distinct v.imo)",
    ]  # fmt: skip


@pytest.mark.parametrize("written", ["id", "from", "src", "to", "dst"])
def test_columns_of_edges_keep_the_word_that_was_written(written):
    (output,) = read("$v: Vessel $v $e:callsAt $p", f"$e.{written}").outputs
    assert output.name == f"e.{written}"
    assert output.value.column == {"from": "src", "to": "dst"}.get(written, written)
    assert output.type == typed.STRING


def test_a_node_is_an_object():
    (output,) = read("$v: Vessel", "$v").outputs
    assert output.type == typed.ObjectType(type_name="Vessel")


@pytest.mark.parametrize(
    ("returned", "nullable"),
    [
        ("$v.name = $v.name as x", False),
        ("$v.flag = $v.name as x", True),
        ("$v.flag is null as x", False),
        ("not ($v.flag is null) as x", False),
        ('$v.flag in ["dk"] as x', True),
        ("$v.imo in [1] as x", False),
        ("$v.imo in [1, null] as x", True),
        ("$v.imo = 1 and $v.active as x", True),
        ("$v.note contains $v.name as x", False),
        ("exists { $v callsAt $_ } as x", False),
        ("$v.active", True),
        ("$v.imo", False),
        ("count($v)", False),
        ("sum($v.imo)", True),
        ("min($v.imo)", True),
    ],
)
def test_nullability_of_columns(returned, nullable):
    (output,) = read("$v: Vessel", returned).outputs
    assert output.type.nullable is nullable


def test_aggregates_have_the_types_of_the_language():
    outputs = read(
        "$v: Vessel", "count($v.tags), sum($v.imo), avg($v.imo), min($v.flag), max($v.built)"
    ).outputs
    assert [str(o.type) for o in outputs] == ["I64", "F64?", "F64?", "enum(dk, no, pa)?", "Date?"]


@pytest.mark.parametrize(
    "operand", ["$v.name", "$v.flag", "$v.active", "$v.built", "$v.seen", "$v.imo", "$v.draft"]
)
def test_min_and_max_take_everything_with_an_order(operand):
    assert codes(read_text("$v: Vessel", f"min({operand}), max({operand})")) == []


def test_order_by_output_becomes_the_expression_itself():
    body = read("$v: Vessel", "$v.name as n", "order { n desc, $v.imo }")
    assert [k.value for k in body.order] == [
        body.outputs[0].value,
        typed.Prop(variable="v", column="imo", type=body.order[1].value.type),
    ]
    assert [k.descending for k in body.order] == [True, False]


@pytest.mark.parametrize("head", ["return distinct", "return"])
def test_grouped_results_are_ordered_by_outputs(head):
    aggregate = "" if "distinct" in head else ", count($v) as n"
    text = f"match {{ $v: Vessel }} {head} {{ $v.name as title, $v.imo{aggregate} }} order {{ $v.name, title, $v.imo desc }}"
    assert codes(text) == []
    refused = text.replace("$v.imo desc", "$v.draft")
    assert codes(refused) == ["Q407"]


def test_equal_aggregates_are_the_same_output():
    body = read("$v: Vessel", "$v.flag, count($v) as n", "order { count($v) desc }")
    assert body.order[0].value == typed.OutputRef(name="n", type=typed.COUNT)


def test_keywords_may_name_columns():
    body = read(
        "$v: Vessel", "$v.name as true_total, $v.imo as limit", "order { true_total, limit }"
    )
    assert len(body.order) == 2


def test_limit_and_offset():
    body = read("$v: Vessel", "$v.name", "limit $n offset 3", "$n: U64")
    assert body.limit == typed.Param(name="n", type=body.limit.type)
    assert body.offset == typed.Const(value=3, type=body.offset.type)
    assert body.offset.type.scalar is Scalar.I64
    assert read("$v: Vessel", "$v.name", "limit 0").limit is not None


@pytest.mark.parametrize("kind", ["String", "F64", "I64?", "[I64]"])
def test_only_plain_integers_count_rows(kind):
    assert codes(read_text("$v: Vessel", "$v.name", "limit $n", f"$n: {kind}")) == ["Q410"]


def test_limit_names_a_parameter_not_a_variable():
    assert codes(read_text("$v: Vessel", "$v.name", "limit $v")) == ["Q106"]


def test_aggregated_is_known_from_the_outputs():
    assert read("$v: Vessel", "count($v)").aggregated
    assert not read("$v: Vessel", "count { $v callsAt $_ } as n").aggregated


def test_distinct_with_aggregates():
    text = "match { $v: Vessel } return distinct { $v.flag, count($v) as n } order { n }"
    assert codes(text) == []
