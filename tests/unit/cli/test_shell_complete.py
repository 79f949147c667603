"""What the shell offers at the cursor: a pure function of the text and the schema."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.shell.complete import COMMANDS, complete
from omnigraph.cli.shell.scan import scan
from omnigraph.schema.compile import compile_schema

CATALOG = compile_schema(
    """
    interface Named { name: String @index }
    node Vessel implements Named {
      imo: I64 @key
      flag: enum(dk, no)?
      built: Date?
      seen: DateTime?
      active: Bool?
    }
    node Port implements Named { code: String @key  berths: U32 }
    edge CallsAt: Vessel -> Port { on: Date  cargo: String? }
    edge Feeds: Port -> Port
    """
)


def offered(text: str) -> list[str]:
    return [c.text for c in complete(text, CATALOG)[1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["match", "insert", "upsert", "update", "delete", "query"]),
        ("ma", ["match"]),
        ("match { $v: ", ["Vessel", "Port"]),
        ("match { $v: Ve", ["Vessel"]),
        ("match { $v: ve", ["Vessel"]),
        ("match { $v: Vessel } ", ["return"]),
        ("match { $v: Vessel } return ", ["distinct"]),
        ("match { $v: Vessel } return { $v } ", ["order", "limit", "offset"]),
        ("match { $v: Vessel } return { $v } order { $v.name } l", ["limit"]),
        ("match { $v: Vessel } return { $v } limit 3 ", ["offset"]),
        ("match { $v: Vessel } return { $v.name a", ["as", "avg("]),
        ("match { $v: Vessel } return { $v.name as n } order { n", ["nearest("]),
        ("match { $v: Vessel } return { $v.name as name } order { na", ["name"]),
        ("match { $v: Vessel } return { $v.name } order { $v.name d", ["desc"]),
        ("query q() { ", ["match", "insert", "upsert", "update", "delete"]),
        ("query q($a: S", ["String"]),
        ("query q($port: String) { match { $p: Port { code: $", ["$port", "$p"]),
        ("insert ", ["Vessel", "Port", "CallsAt", "Feeds"]),
        ("insert Port { ", ["code: ", "berths: ", "name: "]),
        ('insert Port { code: "X", b', ["berths: "]),
        ("insert CallsAt { ", ["on: ", "cargo: ", "from: ", "to: "]),
        ("update CallsAt set { ", ["on: ", "cargo: "]),
        ("update Vessel ", ["set"]),
        ("update Vessel set { flag: ", ['"dk"', '"no"', "null"]),
        ("update Vessel set { active: true } ", ["where"]),
        ("delete Vessel ", ["where"]),
        ("delete Vessel where im", ["imo"]),
        ("delete Vessel where flag = ", ['"dk"', '"no"']),
        ("delete CallsAt where f", ["from"]),
        ("delete Vessel where imo = 1 a", ["and", "active"]),
        ("match { $v: Vessel { fl", ["flag: "]),
        ("match { $v: Vessel $v.flag = ", ['"dk"', '"no"']),
        ("match { $v: Vessel $v.seen > ", ['datetime("', "now()"]),
        ("match { $v: Vessel $v.flag is ", ["null", "not"]),
        ("match { $v: Vessel $v.flag is not ", ["null"]),
        ("match { $p: Port } return { count(", ["distinct"]),
        ("match { $p: Port } return { count(d", ["distinct"]),
    ],
)
def test_what_is_offered(text: str, expected: list[str]) -> None:
    assert offered(text) == expected


def test_edges_behind_a_variable_fit_its_type() -> None:
    assert offered("match { $v: Vessel $v ") == ["callsAt", "is"]
    assert offered("match { $p: Port $p ") == ["callsAt", "feeds", "is"]
    assert offered("match { $x ") == ["callsAt", "feeds", "is"]
    assert offered("match { $p: Port $p <") == ["feeds"]
    assert offered("match { $v: Vessel $v $c:") == ["callsAt"]


@pytest.mark.parametrize(
    "text",
    [
        "match { $v: Vessel $v callsAt $p } return { $p.",
        "match { $p callsAt $v  $v: Vessel } return { $p.",
        "match { $q: Port $q feeds{1,3} $p $p.",
        "match { $q: Port $p <feeds> $q } return { $p.",
        "match { $v callsAt $p } return { $p.",
    ],
)
def test_properties_follow_the_type_that_a_traversal_gives(text: str) -> None:
    assert offered(text) == ["code", "berths", "name", "id"]


def test_properties_of_a_bound_edge() -> None:
    text = "match { $v: Vessel $v $c:callsAt $p } return { $c."
    assert offered(text) == ["on", "cargo", "id", "from", "to"]


def test_properties_of_a_property_are_not_offered_twice_or_for_strangers() -> None:
    assert offered("match { $v: Nothing } return { $v.") == []
    assert offered('insert Vessel { imo: 1, name: "a", ') == [
        "flag: ", "built: ", "seen: ", "active: ",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ['match { $v: Vessel { name: "ma', "match { // ma", "/* ma"])
def test_nothing_is_offered_inside_strings_and_comments(text: str) -> None:
    assert offered(text) == []


def test_what_stands_there_already_is_not_offered() -> None:
    assert offered("match { $v: Vessel") == []


def test_the_length_of_the_word_that_is_replaced() -> None:
    assert complete("match { $v: Ve", CATALOG)[0] == 2
    assert complete("match { $ve: Vessel $v", CATALOG)[0] == 2
    assert complete(":sch", CATALOG)[0] == 4


def test_names_belong_to_their_query() -> None:
    text = "query a($x: I64) { match { $old: Port } return { $old } } query b($y: I64) { match { $"
    assert offered(text) == ["$y"]


def test_commands() -> None:
    assert offered(":") == list(COMMANDS)
    assert offered(":sch") == [":schema"]
    assert offered(":schema P") == ["Port"]
    assert offered(":format ") == ["table", "kv", "csv", "jsonl", "json"]
    assert offered(":explain match { $v: P") == ["Port"]


def test_candidates_say_what_they_are() -> None:
    found = {c.text: c.note for c in complete("match { $v: Vessel $v.", CATALOG)[1]}
    assert found["flag"] == "enum(dk, no)?"
    edge = complete("match { $v: Vessel $v ", CATALOG)[1][0]
    assert edge.note == "Vessel -> Port"


@given(st.text(alphabet='$:{}()[]<>.,="@ \n/*vpqxVPmatchreturnorderinsertwhere_0123', max_size=60))
def test_no_text_is_too_strange(text: str) -> None:
    length, found = complete(text, CATALOG)
    assert 0 <= length <= len(text)
    assert len({c.text for c in found}) == len(found)
    scan(text, CATALOG)
