"""Walks `tests/golden/migrate/<case>`: `before.pg` and `after.pg` give a plan, or findings.

`GOLDEN_UPDATE=1` rewrites the expected files; the diff is the thing to review.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.errors import SchemaError
from omnigraph.schema.codes import HintCode
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.migrate import LintCode, SchemaPlan, StepKind, make_plan, resolve

GOLDEN = Path(__file__).parents[2] / "golden" / "migrate"
CASES = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())
FILES = ("plan.txt", "plan.json", "errors.txt")


def plan_of(case: str) -> SchemaPlan:
    before, after = ((GOLDEN / case / f"{name}.pg").read_text() for name in ("before", "after"))
    accepted = compile_schema(before)
    return make_plan(accepted, before, resolve(accepted, after))


def run(case: str) -> dict[str, str]:
    try:
        plan = plan_of(case)
    except SchemaError as error:
        return {"errors.txt": str(error) + "\n"}
    document = json.dumps(plan.to_dict(), ensure_ascii=False, indent=2)
    return {"plan.txt": str(plan) + "\n", "plan.json": document + "\n"}


@pytest.mark.parametrize("case", CASES)
def test_golden_case(case: str) -> None:
    folder, made = GOLDEN / case, run(case)
    if os.environ.get("GOLDEN_UPDATE") == "1":
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        for name, text in made.items():
            (folder / name).write_text(text)
    kept = {name: (folder / name).read_text() for name in FILES if (folder / name).exists()}
    assert made == kept


def test_every_step_kind_has_a_case() -> None:
    shown = {
        step.kind for case in CASES if not case.startswith("err_") for step in plan_of(case).steps
    }
    assert shown == set(StepKind)


def test_every_lint_code_has_a_case() -> None:
    shown = {
        step.code for case in CASES if not case.startswith("err_") for step in plan_of(case).steps
    }
    assert shown - {None} == set(LintCode)


def test_every_code_of_a_hint_has_a_case() -> None:
    shown = {c.split("_")[1].upper() for c in CASES if c.startswith(("err_", "warn_"))}
    assert shown == {str(code) for code in HintCode}
    for case in (c for c in CASES if c.startswith("warn_")):
        assert case.split("_")[1].upper() in {w.code for w in plan_of(case).warnings}
    for case in (c for c in CASES if c.startswith("err_")):
        assert case.split("_")[1].upper() in run(case)["errors.txt"]
