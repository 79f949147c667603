"""Walks `tests/golden/query/check/<case>`: a schema and queries give typed queries or diagnostics.

`GOLDEN_UPDATE=1` rewrites the expected files; the diff is the thing to review.
"""

from __future__ import annotations

import os

import pytest
from check_support import GOLDEN

from omnigraph.errors import QueryError
from omnigraph.query.codes import QueryCode
from omnigraph.query.compile import compile_queries
from omnigraph.query.parse.codes import SyntaxCode
from omnigraph.schema.compile import compile_schema
from support.dump import dump

CASES = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())
WARNINGS = {QueryCode.NEVER_UPDATED, QueryCode.NO_PARAMETERS, QueryCode.UNUSED_PARAMETER}
"""Nothing keeps a query with one of these from compiling; test_lint.py shows them."""


def compiled(case):
    folder = GOLDEN / case
    catalog = compile_schema((folder / "schema.pg").read_text())
    return compile_queries((folder / "query.gq").read_text(), catalog, name="query.gq")


def run(case):
    try:
        queries = compiled(case)
    except QueryError as error:
        return "diagnostics.txt", str(error) + "\n"
    return "typed.txt", "\n".join(map(dump, queries))


@pytest.mark.parametrize("case", CASES)
def test_golden_case(case):
    folder = GOLDEN / case
    name, actual = run(case)
    if os.environ.get("GOLDEN_UPDATE") == "1":
        for other in ("diagnostics.txt", "typed.txt"):
            (folder / other).unlink(missing_ok=True)
        (folder / name).write_text(actual)
    assert (folder / name).exists(), f"this case now gives {name}:\n{actual}"
    assert actual == (folder / name).read_text()


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("err_")])
def test_case_shows_only_the_code_it_is_named_after(case):
    with pytest.raises(QueryError) as caught:
        compiled(case)
    assert {d.code for d in caught.value.diagnostics} == {case.split("_")[1].upper()}


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("ok_")])
def test_typed_queries_are_values(case):
    """Compiled twice they are equal, and they can be keys of a dict."""
    assert compiled(case) == compiled(case)
    assert hash(compiled(case)) == hash(compiled(case))


def test_every_code_has_a_golden_case():
    shown = {c.split("_")[1].upper() for c in CASES if c.startswith("err_")}
    assert shown == {str(c) for c in QueryCode if c not in WARNINGS}


def test_every_code_is_explained_and_has_one_meaning():
    assert len({code.explanation for code in QueryCode}) == len(QueryCode)
    assert not {str(c) for c in QueryCode} & {str(c) for c in SyntaxCode}
