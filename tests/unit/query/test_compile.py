"""A text to its queries, and the choice of one of them."""

from __future__ import annotations

import pytest
from check_support import CATALOG

from omnigraph.errors import QueryError, UsageError
from omnigraph.query.compile import compile_queries, pick

BODY = "match { $v: Vessel } return { $v.name }"
FILE = f"query ships() {{ {BODY} }} query names() {{ {BODY} }}"


def test_all_queries_in_their_order():
    assert [q.name for q in compile_queries(FILE, CATALOG)] == ["ships", "names"]


def test_findings_of_all_queries_together():
    text = FILE.replace("$v.name", "$v.nme")
    with pytest.raises(QueryError) as caught:
        compile_queries(text, CATALOG, name="my.gq")
    assert [d.code for d in caught.value.diagnostics] == ["Q103", "Q103"]
    assert caught.value.source_name == "my.gq"


def test_pick():
    queries = compile_queries(FILE, CATALOG)
    assert pick(queries, "names").name == "names"
    (only,) = compile_queries(BODY, CATALOG)
    assert pick([only]) is only
    with pytest.raises(UsageError) as several:
        pick(queries)
    assert "ships, names" in str(several.value)
    with pytest.raises(UsageError) as unknown:
        pick(queries, "shps")
    assert "did you mean `ships`?" in str(unknown.value)
    with pytest.raises(UsageError) as nameless:
        pick([only], "ships")
    assert "without a name" in str(nameless.value)
