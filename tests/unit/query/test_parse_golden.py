"""Walks `tests/golden/query/parse/<case>`: `query.gq` gives `ast.txt` or `diagnostics.txt`.

`GOLDEN_UPDATE=1` rewrites the expected files; the diff is the thing to review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ast_dump import dump

from omnigraph.errors import QueryError
from omnigraph.lang.source import Source
from omnigraph.query.parse import SyntaxCode, parse_queries

GOLDEN = Path(__file__).parents[2] / "golden" / "query" / "parse"
CASES = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())


def parse_case(case):
    return parse_queries(Source(name="query.gq", text=(GOLDEN / case / "query.gq").read_text()))


@pytest.mark.parametrize("case", CASES)
def test_golden_case(case):
    folder = GOLDEN / case
    try:
        name, actual = "ast.txt", dump(parse_case(case))
    except QueryError as error:
        name, actual = "diagnostics.txt", str(error) + "\n"
    if os.environ.get("GOLDEN_UPDATE") == "1":
        for other in ("ast.txt", "diagnostics.txt"):
            (folder / other).unlink(missing_ok=True)
        (folder / name).write_text(actual)
    assert (folder / name).exists(), f"this text now gives {name}:\n{actual}"
    assert actual == (folder / name).read_text()


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("err_")])
def test_case_shows_the_code_it_is_named_after(case):
    with pytest.raises(QueryError) as caught:
        parse_case(case)
    assert case.split("_")[1].upper() in {d.code for d in caught.value.diagnostics}


def test_every_code_has_a_golden_case():
    shown = {c.split("_")[1].upper() for c in CASES if c.startswith("err_")}
    assert shown == {str(c) for c in SyntaxCode}


def test_every_code_is_explained():
    assert len({code.explanation for code in SyntaxCode}) == len(SyntaxCode)
