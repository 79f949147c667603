"""Valid texts: what they mean as a tree, where its nodes stand, and that keywords stay names."""

from __future__ import annotations

import pytest
from ast_dump import bare, dump
from ast_strategy import files, laid_out, tokens_of
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import QueryError
from omnigraph.lang.source import Source
from omnigraph.query import ast
from omnigraph.query.parse import parse_queries
from support.examples import examples


def parse(text):
    return parse_queries(Source(name="q.gq", text=text))


def clauses(text):
    return parse(f"match {{ {text} }} return {{ $v }}").queries[0].body.clauses


def expression(text):
    """A projection is an expression in the purest surroundings."""
    return parse(f"match {{ $v: V }} return {{ {text} }}").queries[0].body.projections[0].value


def condition(text):
    return parse(f"delete T where {text}").queries[0].body.statements[0].where


@settings(max_examples=examples(100))
@given(files, st.data())
def test_what_is_written_down_is_read_back(file, data):
    text = data.draw(laid_out(tokens_of(file)))
    assert bare(parse(text)) == bare(file), text


@settings(max_examples=examples(30))
@given(files)
def test_white_space_is_needed_between_words_only(file):
    text = ""
    for token in tokens_of(file):
        touching = (text[-1:] + token[0]).replace("_", "a").replace("$", "a").isalnum()
        # Two dots, a minus and a greater-than sign, and so on would become other tokens.
        joined = text[-1:] + token[0] in ("..", "->", ">=", "<=", "!=", "//", "/*")
        text += (" " if touching or joined else "") + token
    assert bare(parse(text)) == bare(file), text


# ---------------------------------------------------------------- clauses


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("$v: Vessel", "Binding"),
        ("$v: Vessel { a: 1, b: $x, }", "Binding"),
        ("$a knows $b", "Traversal"),
        ("$a contains $b", "Traversal"),
        ("$a starts_with $b", "Traversal"),
        ("$a limit{1,2} $b", "Traversal"),
        ("$a count{1,2} $b", "Traversal"),
        ("$a exists{2,} $b", "Traversal"),
        ("$a $e:knows $b", "Traversal"),
        ("$a <knows> $b", "Traversal"),
        ("$a $e:<knows>{1,2} $b", "Traversal"),
        ("$a < $b", "FilterClause"),
        ("$a in $b", "Traversal"),
        ("$a and{1,2} $b", "Traversal"),
        ("$v not $w.active", "FilterClause FilterClause"),
        ("$a is null", "FilterClause"),
        ("$a not in $b", "FilterClause"),
        ("($a) contains $b", "FilterClause"),
        ('$a contains "x"', "FilterClause"),
        ("$flag", "FilterClause"),
        ("not $flag", "FilterClause"),
        ("not { $a knows $b }", "Negation"),
        ("optional { $a knows $b }", "OptionalBlock"),
        ("exists { $a knows $b }", "FilterClause"),
        ("$flag $a: T", "FilterClause Binding"),
        ("$flag $a knows $b", "FilterClause Traversal"),
        ("$flag $a $e:knows $b", "FilterClause Traversal"),
        ("$flag not { $a: T }", "FilterClause Negation"),
        ("$flag optional { $a: T }", "FilterClause OptionalBlock"),
        ("$flag exists { $a: T }", "FilterClause FilterClause"),
        ("$flag count { 1 < $a.x } > 2", "FilterClause FilterClause"),
        ("$flag search($a.x, $q)", "FilterClause FilterClause"),
        ("$flag ($a or $b)", "FilterClause FilterClause"),
        ("$a.x = $b $c: T", "FilterClause Binding"),
        ("$a.x = 1 $a.y", "FilterClause FilterClause"),
        ("$a: T -1 < $a.x", "Binding FilterClause"),
        ("$a: T (-1) < $a.x", "Binding FilterClause"),
        ("$a knows $b -1 < $a.x", "Traversal FilterClause"),
    ],
)
def test_what_a_clause_is_shows_in_its_first_tokens(text, kinds):
    assert " ".join(type(c).__name__ for c in clauses(text)) == kinds


@pytest.mark.parametrize("word", ["and", "or", "in", "is", "not"])
@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("$a {} $b", "Traversal"),
        ("$a {}{{2,3}} $flag", "Traversal"),
        ("$a $e:{} $b", "Traversal"),
        ("$a <{}> $b", "Traversal"),
        ("$flag $a {} $b", "FilterClause Traversal"),
    ],
)
def test_behind_a_variable_every_word_is_an_edge(text, kinds, word):
    found = parse(f"query q($flag: Bool) {{ match {{ {text.format(word)} }} return {{ $a }} }}")
    assert " ".join(type(c).__name__ for c in found.queries[0].body.clauses) == kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("$flag and $b $c: T", "FilterClause Binding"),
        ("$flag or $other", "FilterClause"),
        ("$flag not $other", "FilterClause FilterClause"),
        ("$flag in $b", "FilterClause"),
        ("$flag not in $b", "FilterClause"),
        ("$flag not { $a: T }", "FilterClause Negation"),
        ("$flag knows $b", "Traversal"),
    ],
)
def test_behind_a_parameter_such_a_word_is_an_operator(text, kinds):
    head = "query q($flag: Bool, $other: Bool, $b: [Bool])"
    found = parse(f"{head} {{ match {{ {text} }} return {{ $a }} }}")
    assert " ".join(type(c).__name__ for c in found.queries[0].body.clauses) == kinds


@pytest.mark.parametrize("word", ["and", "or", "in", "is", "not"])
@pytest.mark.parametrize(
    "text",
    ["{0} = 1", "{0} is null", "{0} is not null", "{0} in [1]", "{0} not in [1]", "{0} contains 1"],
)
def test_such_a_word_is_a_property_before_an_operator(text, word):
    found = condition(text.format(word))
    named = found.left if isinstance(found, ast.CompareExpr) else found.operand
    assert bare(named) == ("NameRef", ("name", word))
    if text.format(word) == "not in [1]":
        return  # A second `not` before it would be the property, and the first its operator.
    negated = condition(f"not {text.format(word)} and k = 1")
    assert bare(negated.operands[0].operand) == bare(found)


def test_a_traversal_has_all_its_parts():
    (found,) = clauses("$a $e:<knows>{2,} $_")
    assert (found.source.text, found.edge_variable.text, found.target.text) == ("a", "e", "_")
    assert (found.word.text, found.undirected) == ("knows", True)
    assert (found.bounds.low, found.bounds.high) == (2, None)


# ---------------------------------------------------------------- expressions


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a or b and c", "a or (b and c)"),
        ("not a and b", "(not a) and b"),
        ("not a = 1", "not (a = 1)"),
        ("not a in [1]", "not (a in [1])"),
        ("not a is null or b", "(not (a is null)) or b"),
        ("a = 1 and b = 2 or c = 3", "((a = 1) and (b = 2)) or (c = 3)"),
        ("((a))", "a"),
        ("not not a", "not (not a)"),
    ],
)
def test_precedence(text, same):
    assert bare(condition(text)) == bare(condition(same))


def test_chains_are_flat_and_parentheses_are_kept():
    flat = condition("a or b or c")
    assert [o.name for o in flat.operands] == ["a", "b", "c"]
    nested = condition("(a or b) or c")
    assert [type(o).__name__ for o in nested.operands] == ["OrExpr", "NameRef"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("007", 7),
        ("-5", -5),
        ("- 5", -5),
        ("18446744073709551616", 2**64),
        ("-9223372036854775809", -(2**63) - 1),
        ("1.5", 1.5),
        ("-0.25", -0.25),
        ("true", True),
        ("false", False),
        ('""', ""),
        (r'"\"\\\n\r\t"', '"\\\n\r\t'),
        ('"é\n—"', "é\n—"),
    ],
)
def test_literals(text, value):
    found = expression(text)
    assert found.value == value and type(found.value) is type(value)


def test_calls_and_blocks():
    assert dump(expression("count(distinct $v.x)")).startswith("Call function=count distinct=True")
    assert dump(expression("now()")) == "Call function=now\n"
    assert isinstance(expression("count { $v knows $_ }"), ast.CountExpr)
    assert isinstance(expression("count"), ast.NameRef)
    assert isinstance(expression("exists"), ast.NameRef)
    assert isinstance(expression("date"), ast.NameRef)
    assert isinstance(expression('date("2026-01-02")'), ast.DateLiteral)
    assert isinstance(expression('datetime("x")'), ast.DateTimeLiteral)
    # `distinct` is a name where nothing follows that it could apply to.
    assert expression("count(distinct)").args[0].name == "distinct"


def test_nesting_up_to_the_bound_is_fine():
    deep = "(" * 60 + "$v.x" + ")" * 60
    assert isinstance(expression(deep), ast.PropertyRef)
    assert clauses("not { " * 60 + "$v: V" + " }" * 60)


# ---------------------------------------------------------------- whole texts


def test_limit_and_offset_come_in_either_order():
    one, other = (
        parse(f"match {{ $v: V }} return {{ $v }} {tail}")
        for tail in ("limit 3 offset $n", "offset $n limit 3")
    )
    assert bare(one) == bare(other)


def test_commas_between_projections_and_assignments_are_optional():
    texts = ("$v.a, $v.b, $v.c,", "$v.a $v.b $v.c", "$v.a\n$v.b, $v.c")
    trees = [parse(f"match {{ $v: V }} return {{ {t} }}") for t in texts]
    assert bare(trees[0]) == bare(trees[1]) == bare(trees[2])
    one, other = (parse(f"insert T {{ {t} }}") for t in ("a: 1, b: 2,", "a: 1 b: 2"))
    assert bare(one) == bare(other)


def test_a_bare_body_is_one_query_without_a_name():
    (query,) = parse("insert T { a: 1 } delete T where true").queries
    assert query.name is None and query.params == ()
    assert [type(s).__name__ for s in query.body.statements] == [
        "InsertStatement",
        "DeleteStatement",
    ]


def test_a_minus_behind_an_expression_is_never_a_second_item():
    """`$v.x - 1` would otherwise be two projections, since the comma may be left out."""
    with pytest.raises(QueryError, match="Q024"):
        parse("match { $v: V } return { $v.x -1 }")
    assert len(parse("match { $v: V } return { $v.x, -1 }").queries[0].body.projections) == 2


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem():
    text = "\ufeffquery a() {\r\n  match { $v: V }\r\n  return { $v }\r\n}\r\n"
    assert parse(text).queries[0].name.text == "a"


# ---------------------------------------------------------------- places

PLACES = """query q($a: [I64]?) @description("d") {
    match { $v: V { x: 1 }  $v $e:knows{1,2} $w  ($v.x = 1) and not $w.y  exists { $v: V } }
    return { count(distinct $v) as n }
    order { n desc }
    limit 10
}"""


def test_every_node_knows_its_place():
    (query,) = parse(PLACES).queries
    read = query.body

    def text(node):
        return PLACES[node.span.start : node.span.end]

    assert text(query) == PLACES
    assert text(query.params[0]) == "$a: [I64]?"
    assert text(query.params[0].type) == "[I64]?"
    assert text(query.annotations[0]) == '@description("d")'
    assert [text(c) for c in read.clauses] == [
        "$v: V { x: 1 }",
        "$v $e:knows{1,2} $w",
        "($v.x = 1) and not $w.y",
        "exists { $v: V }",
    ]
    assert text(read.clauses[0].matches[0]) == "x: 1"
    assert text(read.clauses[1].bounds) == "{1,2}"
    assert text(read.clauses[2].condition.operands[1]) == "not $w.y"
    assert text(read.projections[0]) == "count(distinct $v) as n"
    assert text(read.projections[0].value) == "count(distinct $v)"
    assert text(read.order[0]) == "n desc"
    assert text(read.limit) == "10"
    assert text(read) == PLACES[PLACES.index("match") : PLACES.index("\n}")]
