"""Lint: errors and doubts of a whole file, and descriptors of what is valid."""

from __future__ import annotations

import json

import pytest
from check_support import CATALOG

from omnigraph.errors import QueryError
from omnigraph.query.compile import compile_queries
from omnigraph.query.lint import lint

GOOD = "query good($n: String) { match { $v: Vessel { name: $n } } return { $v.imo } }"


def found(text):
    report = lint(text, CATALOG, name="f.gq")
    return [(f.severity, f.diagnostic.code, f.query) for f in report.findings]


def test_a_good_file():
    report = lint(GOOD, CATALOG, name="f.gq")
    assert (report.status, report.findings) == ("ok", ())
    assert [q.name for q in report.queries] == ["good"]
    assert str(report) == ""


def test_an_error_does_not_hide_other_queries():
    bad = "query bad() { match { $v: Vesel } return { $v.imo } }"
    report = lint(f"{bad}\n{GOOD}", CATALOG)
    assert report.status == "error"
    assert [q.name for q in report.queries] == ["good"]
    assert found(f"{bad}\n{GOOD}") == [("error", "Q101", "bad")]


UNKNOWN = "query unknown() { match { $v: Vesel } return { $v.imo } }"


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ("query (", "Q010"),
        ("query bad() { match { $v: Vessel } return { $v.imo AS n } }", "Q020"),
        ("query bad() { match { $v: Vessel $v.imo = } return { $v.imo } }", "Q010"),
        ("query bad() { match { $v: Vessel } return { $v.imo }", "Q015"),
        ("query bad() { match { $v: Vessel { name: 'x' } } return { $v.imo } }", "Q001"),
        ("query bad( { match { $v: Vessel } return { $v.imo } }", "Q010"),
        ("query bad() { match { $v -[:CALLS*]-> $p } return { $v.imo } }", "Q020"),
        ("}", "Q014"),
    ],
)
def test_a_query_that_cannot_be_read_does_not_hide_the_others(broken, code):
    for text in (f"{UNKNOWN}\n{broken}\n{GOOD}", f"{GOOD}\n{broken}\n{UNKNOWN}"):
        report = lint(text, CATALOG)
        codes = {f.diagnostic.code: f.query for f in report.findings}
        assert codes == {code: None, "Q101": "unknown"}
        assert [q.name for q in report.queries] == ["good"]
        with pytest.raises(QueryError) as caught:
            compile_queries(text, CATALOG)
        assert {d.code for d in caught.value.diagnostics} == set(codes)


def test_an_open_string_hides_what_it_swallows_and_nothing_else():
    report = lint(f'{UNKNOWN}\nquery bad() {{ match {{ $v: Vessel {{ name: "x\n{GOOD}', CATALOG)
    assert [f.diagnostic.code for f in report.findings] == ["Q101", "Q002"]
    assert report.queries == ()


def test_half_a_query_is_not_looked_at():
    text = "query bad() { match { $v: Vesel $v.imo = } return { $x.imo } }"
    assert [code for _, code, _ in found(text)] == ["Q010"]


def test_duplicate_names():
    assert found(f"{GOOD}\n{GOOD}") == [("error", "Q107", None)]


def test_unused_parameters_are_warnings():
    text = "query q($a: String, $b: I64) { match { $v: Vessel { imo: $b } } return { $v.imo } }"
    assert found(text) == [("warning", "L203", "q")]
    assert lint(text, CATALOG).status == "warning"


def test_parameters_are_used_wherever_they_stand():
    text = """query q($a: String, $b: I64, $c: I64, $d: I64, $e: String, $f: [I64]) {
      match { $v: Vessel { name: $a } not { $v callsAt $p  $p.berths > $b } $v.imo in [$d, 1] search($v.name, $e) }
      return { $v.imo, $v.imo in $f as x } limit $c
    }"""
    assert found(text) == []


def test_mutations_without_parameters():
    assert found("query q() { delete Vessel where imo = 1 }") == [("warning", "L202", "q")]
    assert found("delete Vessel where imo = 1") == []


def test_properties_that_no_update_sets():
    text = """
    query one($n: I64) { update Port set { name: "x" } where berths = $n }
    query two($n: I64) { update CallsAt set { on: date("2026-01-02") } where id = "x" or $n = 1 }
    query three($n: I64) { insert Log { text: "x", level: $n } }
    """
    report = lint(text, CATALOG)
    assert [(f.diagnostic.code, f.diagnostic.message) for f in report.findings] == [
        ("L201", "no update sets the nullable property Port.depth"),
        ("L201", "no update sets the nullable property CallsAt.cargo"),
    ]
    assert report.findings[0].diagnostic.line == 2


def test_updates_and_upserts_anywhere_in_the_file_count():
    text = """
    query one($n: I64) { update Port set { name: "x" } where berths = $n }
    query two($n: F64) { upsert Port { code: "x", depth: $n } }
    """
    assert found(text) == []
    assert found('query q($n: F64) { upsert Port { code: "x", depth: $n } }') == []


def test_plain_data():
    text = f"{GOOD}\nquery bad($x: I64) {{ match {{ $v: Vesel }} return {{ $v.imo }} }}"
    body = lint(text, CATALOG, name="f.gq").to_dict()
    assert (body["source"], body["status"]) == ("f.gq", "error")
    assert body["findings"] == [
        {
            "severity": "error",
            "query": "bad",
            "code": "Q101",
            "message": "unknown node type `Vesel`",
            "line": 2,
            "column": 34,
            "length": 5,
            "hint": "did you mean `Vessel`?",
        }
    ]
    assert [q["name"] for q in body["queries"]] == ["good"]
    json.dumps(body)
    assert str(lint(text, CATALOG, name="f.gq")).startswith("error: f.gq:2:34: Q101")
