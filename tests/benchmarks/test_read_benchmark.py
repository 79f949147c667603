"""The read benchmark runs, and would notice a wrong answer. Its times are nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_every_question_is_answered_and_checked(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    options = ["--scale", "quick", "--engines", "omnigraph,lance", "--json", report]
    done = subprocess.run(
        [sys.executable, FOLDER / "queries.py", *options, "--data", tmp_path / "data"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    results = {r["workload"]: r for r in json.loads(report.read_text())["results"]}
    assert set(results) == {
        "lookup", "filter", "group", "hop1", "hop2", "hop3", "reach4", "all2", "first", "refresh",
    }  # fmt: skip
    assert all(t["calls"] > 0 for r in results.values() for t in r["timings"].values())
    assert {v["peer"] for v in results["lookup"]["verdicts"]} == {"lance"}
    assert results["hop1"]["spread"] >= 1


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ([("b", 2, 0.5), ("a", 1, 0.1 + 0.2)], True),
        ([("a", 1, 0.3), ("b", 2, 0.5), ("b", 2, 0.5)], False),
        ([("a", 1, 0.3)], False),
        ([("a", 1, 0.3), ("b", 3, 0.5)], False),
        ([("a", 1, 0.3), ("b", 2, 0.5001)], False),
        ([("a", "1", 0.3), ("b", "2", 0.5)], False),
    ],
)
def test_answers_are_compared_as_bags_of_rows(
    given: list[tuple[object, ...]], right: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    from social import same

    assert same(given, [("a", 1, 0.3), ("b", 2, 0.5)]) is right


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(0.5, "met"), (0.95, "met, in noise"), (1.05, "missed, in noise"), (1.5, "missed")],
)
def test_a_verdict_inside_the_noise_says_so(
    ratio: float, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    import queries

    assert queries.verdict(ratio, goal=1.0, spread=1.1) == verdict
