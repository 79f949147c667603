"""Match clauses: variables, directions, blocks, and what each scope sees."""

from __future__ import annotations

from itertools import permutations

import pytest
from check_support import change, codes, diagnostics, match_codes, one, read, read_text

from omnigraph.query import typed


def hops(clauses):
    return {
        (h.left, h.right, h.edge, h.direction) for h in read(f"{clauses} $v: Vessel").pattern.hops
    }


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("$v callsAt $p", ("v", "p", "CallsAt", "out")),
        ("$p callsAt $v", ("p", "v", "CallsAt", "in")),
        ("$v cALLSat $p", ("v", "p", "CallsAt", "out")),
        ("$p: Port $q: Port $p feeds $q", ("p", "q", "Feeds", "out")),
        ("$p: Port $q: Port $q feeds $p", ("q", "p", "Feeds", "out")),
        ("$p <feeds> $q", ("p", "q", "Feeds", "both")),
        ("$a feeds $a", ("a", "a", "Feeds", "out")),
        ("$b callsAt $c", ("b", "c", "CallsAt", "out")),
    ],
)
def test_direction(clauses, expected):
    assert expected in hops(clauses)


def test_direction_does_not_depend_on_the_order_of_clauses():
    clauses = ["$q callsAt $w", "$p callsAt $v", "$p feeds $q", "$v: Vessel"]
    found = {hops(" ".join(order)) == hops(" ".join(clauses)) for order in permutations(clauses)}
    assert found == {True}


def test_a_later_traversal_settles_an_earlier_one():
    """`$a callsAt $b` alone would run from `$a`; here `$a` turns out to be the port."""
    assert ("a", "b", "CallsAt", "in") in hops("$a callsAt $b $c: Port $c feeds $a")


def test_nodes_stand_in_the_order_of_their_first_mention():
    pattern = read("$p callsAt $v $q feeds $p $_: Log $v: Vessel").pattern
    assert [n.name for n in pattern.nodes] == ["p", "v", "q", "_#1"]
    assert [n.anonymous for n in pattern.nodes] == [False, False, False, True]


def test_every_anonymous_variable_is_another_one():
    pattern = read("$v callsAt $_ $v callsAt $_ $_: Port { berths: 3 } $_: Port").pattern
    names = [n.name for n in pattern.nodes if n.anonymous]
    assert len(set(names)) == 4
    (test,) = pattern.filters
    assert isinstance(test, typed.Compare)
    assert test.left == typed.Prop(variable=names[2], column="berths", type=test.left.type)


def test_an_anonymous_edge_binds_nothing():
    assert read("$v: Vessel $v $_:callsAt $p").pattern.hops[0].variable is None


def test_bounds():
    hop = read("$v: Vessel $v callsAt $p $p feeds{2,4} $q").pattern.hops[1]
    assert (hop.low, hop.high) == (2, 4)
    assert read("$v: Vessel $v $e:callsAt{1,1} $p").pattern.hops[0].variable == "e"


def test_binding_again_adds_conditions():
    pattern = read('$v: Vessel { name: "a" } $v: Vessel { imo: 3 }').pattern
    assert len(pattern.nodes) == 1
    assert len(pattern.filters) == 2


def test_conjunctions_are_split_and_disjunctions_are_not():
    pattern = read(
        "$v: Vessel ($v.imo > 1 and ($v.imo < 5 and $v.imo != 3)) $v.imo = 1 or $v.imo = 2"
    )
    assert [type(f) for f in pattern.pattern.filters] == [typed.Compare] * 3 + [typed.Or]


# ---------------------------------------------------------------- blocks


def test_variables_of_inner_blocks_are_local_and_unique():
    pattern = read("$v: Vessel not { $v callsAt $p } not { $v charters $p }").pattern
    one_block, other = pattern.negations
    assert one_block.nodes[0].name != other.nodes[0].name
    assert one_block.outer == other.outer == ("v",)
    assert "Q104" in match_codes("not { $v callsAt $p }", "$p.name")


def test_an_outer_variable_is_found_wherever_it_is_bound():
    """Clauses have no order, so the port of the block is the port of the match."""
    (block,) = read("not { $v charters $p } $v: Vessel $v callsAt $p").pattern.negations
    assert block.outer == ("p", "v")
    assert block.nodes == ()


def test_outer_variables_of_nested_blocks_count_for_those_around():
    (block,) = read(
        "$v: Vessel not { $v callsAt $p not { $p feeds $_  $v charters $p } }"
    ).pattern.negations
    (inner,) = block.negations
    assert inner.outer == ("p", "v")
    assert block.outer == ("v",)


def test_a_filter_is_enough_to_mention_an_outer_variable():
    (block,) = read("$v: Vessel not { $p: Port  $p.name = $v.name }").pattern.negations
    assert block.outer == ("v",)


def test_a_block_may_only_filter():
    (block,) = read('$v: Vessel not { $v.flag = "dk" }').pattern.negations
    assert block.nodes == block.hops == ()


def test_variables_of_optional_blocks_are_nullable_outside_only():
    body = read("$v: Vessel optional { $v $c:callsAt $p  $p.berths > 1 }", "$p.berths, $c.on, $p")
    (block,) = body.pattern.optionals
    (inside,) = block.filters
    assert not inside.left.type.nullable
    assert [o.type.nullable for o in body.outputs] == [True, True, True]


def test_nested_and_later_optional_blocks_see_optional_variables():
    pattern = read(
        "$v: Vessel optional { $v callsAt $p optional { $p feeds $q } } optional { $q feeds $r }",
        "$q.code, $r.code",
    ).pattern
    assert pattern.optionals[1].outer == ("q",)
    assert pattern.optionals[0].optionals[0].outer == ("p",)


def test_blocks_behind_an_optional_see_its_variables_and_those_before_do_not():
    pattern = read(
        "$v: Vessel not { $v charters $p } optional { $v callsAt $p } not { $p feeds $_ }"
    ).pattern
    before, behind = pattern.negations
    (block,) = pattern.optionals
    assert before.outer == ("v",)
    assert behind.outer == ("p",)
    # What the result can show has its own name; what it cannot gets another one.
    assert [n.name for n in block.nodes] == ["p"]
    assert [n.name for n in before.nodes] == ["p#2"]


def test_required_clauses_cannot_rest_on_optional_variables():
    assert match_codes("optional { $v callsAt $p } $p feeds $q") == ["Q307"]
    assert match_codes("optional { $v callsAt $p } $p: Port") == ["Q307"]
    assert match_codes("optional { $v $e:callsAt $p optional { $p feeds $q } } $q: Port") == [
        "Q307"
    ]
    assert match_codes("$p: Port optional { $v callsAt $p } $p feeds $q") == []
    assert match_codes("optional { $v callsAt $p } not { $p feeds $q }") == []


def test_count_and_exists_are_expressions():
    body = read(
        "$v: Vessel count { $v callsAt $p } > 2 not exists { $v charters $p }",
        "count { $v callsAt $p } as n",
    )
    assert isinstance(body.pattern.filters[0].left, typed.CountOf)
    assert isinstance(body.pattern.filters[1], typed.Not)
    assert body.outputs[0].type == typed.COUNT


def test_nodes_of_one_type_are_compared_by_id():
    (test,) = read("$v: Vessel $w: Vessel $v != $w").pattern.filters
    assert (test.op, test.left.column, test.right.column) == ("!=", "id", "id")


def test_presence_of_nodes_and_edges():
    pattern = read("$v: Vessel optional { $v $e:callsAt $p } $p is null $e is not null").pattern
    node, edge = pattern.filters
    assert isinstance(node.operand, typed.Entity)
    assert edge.operand.operand == typed.Prop(
        variable="e", column="id", type=edge.operand.operand.type
    )


def test_one_mistake_does_not_hide_another():
    text = read_text(
        '$v: Vesel $v callsAt $p $p feed $q $p.cod = "x" $p.berths = "four" not { $l: Log }',
        "$p.name, $x",
        "order { nam } limit $n",
    )
    assert codes(text) == ["Q101", "Q102", "Q103", "Q204", "Q306", "Q104", "Q406", "Q106"]


def test_a_refused_type_is_reported_once():
    assert codes(read_text("$v: Vesel $v.name = 3 $v callsAt $p $v.imo > 3", "$v.x")) == ["Q101"]


def test_diagnostics_have_places():
    (found,) = diagnostics('match {\n  $v: Vessel\n  $v.nme = "x"\n}\nreturn { $v.name }')
    assert (found.line, found.column, found.length) == (3, 6, 3)
    assert found.source_line == '  $v.nme = "x"'


def test_bare_bodies_are_queries():
    assert one("match { $v: Vessel } return { $v.name }").name is None
    assert change("delete Vessel where imo = 1").statements
