"""Walks `tests/golden/schema/<case>`: `in.pg` gives `catalog.json` or `errors.txt`.

`GOLDEN_UPDATE=1` rewrites the expected files; the diff is the thing to review.
"""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pytest

from omnigraph.errors import SchemaError
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import from_ir, to_ir

GOLDEN = Path(__file__).parents[2] / "golden" / "schema"
CASES = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())


def run(text: str) -> tuple[str, str]:
    try:
        catalog = compile_schema(text)
    except SchemaError as error:
        return "errors.txt", str(error) + "\n"
    document = orjson.loads(to_ir(catalog, text))
    del document["source"]  # it is in.pg
    return "catalog.json", orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


@pytest.mark.parametrize("case", CASES)
def test_golden_case(case):
    folder = GOLDEN / case
    name, actual = run((folder / "in.pg").read_text())
    if os.environ.get("GOLDEN_UPDATE") == "1":
        for other in ("errors.txt", "catalog.json"):
            (folder / other).unlink(missing_ok=True)
        (folder / name).write_text(actual)
    assert (folder / name).exists(), f"this schema now gives {name}:\n{actual}"
    assert actual == (folder / name).read_text()


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("err_")])
def test_case_shows_the_code_it_is_named_after(case):
    with pytest.raises(SchemaError) as caught:
        compile_schema((GOLDEN / case / "in.pg").read_text())
    assert case.split("_")[1].upper() in {d.code for d in caught.value.diagnostics}


@pytest.mark.parametrize("case", [c for c in CASES if c.startswith("ok_")])
def test_valid_case_survives_the_round_trip(case):
    text = (GOLDEN / case / "in.pg").read_text()
    catalog = compile_schema(text)
    assert from_ir(to_ir(catalog, text)) == (catalog, text)


def test_every_code_has_a_golden_case():
    shown = {c.split("_")[1].upper() for c in CASES if c.startswith("err_")}
    assert shown == {str(c) for c in SchemaCode}


def test_every_code_is_explained():
    assert len({code.explanation for code in SchemaCode}) == len(SchemaCode)
