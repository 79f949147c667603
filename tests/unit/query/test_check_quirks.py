"""Behaviour that others got wrong, one test each: every test fails on the old behaviour."""

from __future__ import annotations

from datetime import date

import pytest
from check_support import (
    CATALOG,
    WORKED,
    change,
    change_codes,
    codes,
    diagnostics,
    match_codes,
    one,
    read,
    read_text,
)

from omnigraph.errors import ParameterError
from omnigraph.query import typed
from omnigraph.query.codes import QueryCode
from omnigraph.query.describe import describe
from omnigraph.query.lint import lint
from omnigraph.query.params import bind
from omnigraph.schema.catalog import Scalar

QUERY = "query q($name: String, $big: U64?) { match { $v: Vessel { name: $name } $v.imo < $big } return { $v.name } }"
DECLS = one(QUERY).params


# ---------------------------------------------------------------- files and parameters


def test_quirk_two_queries_of_one_name_are_an_error():
    body = "match { $v: Vessel } return { $v.name }"
    assert codes(f"query a() {{ {body} }} query a() {{ {body} }}") == ["Q107"]


def test_quirk_a_missing_parameter_never_widens_a_query():
    with pytest.raises(ParameterError, match="missing required parameter 'name'"):
        bind(DECLS, {})


def test_quirk_unknown_parameters_are_refused():
    with pytest.raises(ParameterError, match="did you mean `name`"):
        bind(DECLS, {"name": "x", "nmae": "y"})


def test_quirk_duplicate_parameters_are_an_error():
    assert match_codes("$v.name = $a", params="$a: String, $a: String") == ["Q108"]


def test_quirk_u64_parameters_have_their_whole_range():
    assert bind(DECLS, {"name": "x", "big": 2**64 - 1})["big"] == 2**64 - 1


def test_quirk_a_timestamp_is_not_a_day():
    decls = (typed.ParamDecl(name="d", type=typed.PropertyType(scalar=Scalar.DATE)),)
    with pytest.raises(ParameterError):
        bind(decls, {"d": "2026-01-02T00:00:00Z"})
    assert bind(decls, {"d": "2026-01-02"}) == {"d": date(2026, 1, 2)}
    assert match_codes('$v.built = date("2026-01-02T00:00:00Z")') == ["Q213"]


# ---------------------------------------------------------------- names


def test_quirk_a_binding_cannot_shadow_a_parameter():
    assert match_codes("$p: Port", params="$p: String") == ["Q109"]
    assert match_codes("$v callsAt $p", params="$p: String") == ["Q109"]


def test_quirk_an_unknown_variable_in_an_inline_match_is_an_error():
    assert match_codes("$w: Vessel { name: $nope }") == ["Q106"]
    assert match_codes("$v callsAt $p $p: Port { code: $nope }") == ["Q106"]


def test_quirk_an_unknown_order_key_is_an_error():
    assert codes(read_text("$v: Vessel", "$v.name as n", "order { m }")) == ["Q406"]


# ---------------------------------------------------------------- comparisons


def test_quirk_columns_of_two_types_are_compared_without_a_cast():
    body = read("$v: Vessel $v callsAt $p $v.imo = $p.depth")
    (test,) = body.pattern.filters
    assert (test.left.type.scalar, test.right.type.scalar) == (Scalar.I64, Scalar.F64)


def test_quirk_there_is_a_language_for_or_not_null_and_in():
    assert match_codes("not ($v.imo in [1, -2] or $v.flag is null) and ($v.imo > 1)") == []


# ---------------------------------------------------------------- results


@pytest.mark.parametrize(
    "returned",
    ["$v.name", "$v", "count($v)", "avg($v.imo), $v.flag", "count(distinct $v.flag)", "now(), 1"],
)
def test_quirk_descriptor_and_rows_have_the_same_names(returned):
    query = one(read_text("$v: Vessel", returned))
    described = [c.name for c in describe(query, CATALOG).result]
    assert described == [o.name for o in query.body.outputs]
    assert "name" not in described


def test_quirk_two_columns_of_one_name_are_an_error():
    assert codes(read_text("$v: Vessel", "$v.name, $v.name")) == ["Q401"]
    assert codes(read_text("$v: Vessel", "$v.name as x, $v.imo as x")) == ["Q401"]


def test_quirk_a_node_is_returned_whole():
    (output,) = read("$v: Vessel", "$v").outputs
    assert isinstance(output.value, typed.Entity)
    (column,) = describe(one(read_text("$v: Vessel", "$v")), CATALOG).result
    assert column.kind == "object"


def test_quirk_a_score_can_be_returned():
    text = read_text("$v: Vessel", 'bm25($v.name, "x") as s', 'order { bm25($v.name, "x") }')
    assert codes(text) == []


def test_quirk_the_limit_can_be_a_parameter():
    assert isinstance(read("$v: Vessel", tail="limit $n", params="$n: I64").limit, typed.Param)


def test_quirk_now_has_a_value_in_reads():
    (test,) = read("$v: Vessel $v.seen < now()").pattern.filters
    assert test.right == typed.Now()


# ---------------------------------------------------------------- search


def test_quirk_match_text_is_a_phrase():
    (test,) = read('$v: Vessel match_text($v.name, "a b")').pattern.filters
    assert test.kind == "phrase"


def test_quirk_the_worst_first_is_refused_not_ignored():
    tail = 'order { bm25($v.name, "x") asc }'
    assert codes(read_text("$v: Vessel", "$v.name", tail)) == ["Q512"]
    for word in ("", "desc"):
        (key,) = read("$v: Vessel", tail=f'order {{ bm25($v.name, "x") {word} }}').order
        assert not key.descending


def test_quirk_the_end_of_a_traversal_can_be_ranked():
    body = read("$v: Vessel $v callsAt $p", tail='order { bm25($p.name, "x") }')
    assert body.order[0].value.variable == "p"


def test_quirk_two_text_tests_on_one_variable_both_count():
    body = read('$v: Vessel search($v.name, "a") search($v.name, "b")')
    assert len(body.pattern.filters) == 2


def test_quirk_order_keys_behind_rrf_are_kept():
    tail = 'order { rrf(bm25($v.name, "a"), bm25($v.name, "b")), $v.name } limit 3'
    assert len(read("$v: Vessel", tail=tail).order) == 2


def test_quirk_text_search_without_an_index_is_refused():
    assert match_codes('search($v.note, "x")') == ["Q503"]
    assert codes(read_text("$v: Vessel", "$v.name", 'order { bm25($v.note, "x") }')) == ["Q503"]


# ---------------------------------------------------------------- mutations


def test_quirk_mixing_deletes_with_the_rest_is_found_without_running():
    text = 'query q($c: String) { delete Port where code = $c  insert Port { code: $c, name: "x", berths: 1 } }'
    assert codes(text) == ["Q612"]
    assert lint(text, CATALOG).status == "error"


def test_quirk_whole_numbers_can_be_assigned_to_floats_and_back():
    (statement,) = change('insert Vessel { imo: 7.0, name: "x", draft: 3 }').statements
    values = [a.value.value for a in statement.assignments]
    assert [type(v) for v in values] == [int, str, float]
    assert change_codes('insert Vessel { imo: 7.5, name: "x" }') == ["Q605"]


def test_quirk_null_clears_a_blob():
    (statement,) = change("update Vessel set { photo: null } where imo = 1").statements
    assert statement.assignments == (
        typed.Assignment(
            column="photo",
            value=typed.Const(value=None, type=CATALOG.nodes["Vessel"].by_name["photo"].type),
        ),
    )


def test_quirk_an_embedded_vector_that_nobody_fills_is_missing():
    (found,) = diagnostics('insert Page { title: "x" }')
    assert found.code == "Q603"
    assert "embed" in (found.hint or "")


def test_quirk_edges_can_be_updated():
    assert change_codes('update CallsAt set { cargo: "x" } where from = "1" and to = "A"') == []


def test_quirk_insert_and_upsert_are_two_things():
    one_, other = change('insert Vessel { imo: 1, name: "x" } upsert Vessel { imo: 1 }').statements
    assert (one_.upsert, other.upsert) == (False, True)


# ---------------------------------------------------------------- codes


def test_quirk_every_code_has_one_meaning():
    outer = match_codes("not { $p: Port }")
    grouped = codes(read_text("$v: Vessel", "count($v), 1 as one"))
    bounds = match_codes("$v callsAt{0,1} $p")
    vector = codes(read_text("$v: Vessel", "$v.name", 'order { nearest($v.name, "x") } limit 1'))
    found = [*outer, *grouped, *bounds, *vector]
    assert len(set(found)) == 4
    assert len({code.explanation for code in QueryCode}) == len(QueryCode)


# ---------------------------------------------------------------- the worked example


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("match { $p: Port $p feeds{0,2} $q } return { $q.code }", ["Q301"]),
        ("match { $p: Port $p feeds{2,} $q } return { $q.code }", ["Q301"]),
        ("match { $v: Vessel not { $v callsAt $_ } } return { $v.name }", []),
        ('match { $v: Vessel { tags: "ice" } } return { $v.name }', []),
        (
            "match { $v: Vessel $v callsAt $p } return { $p.code, count($v) as n }"
            " order { n desc, $p.code }",
            [],
        ),
        ('insert CallsAt { from: "100", to: "BGO", on: date("2026-03-01") }', []),
        ('insert Vessel { imo: 100, name: "Alba II" }', []),
        ('delete Port where code = "AAR"', []),
    ],
)
def test_worked_example(text, expected):
    assert [d.code for d in diagnostics(text, WORKED)] == expected
