"""What `explain(analyze=True)` says of each step: rows, requests, how often."""

from __future__ import annotations

import re

import pytest

import omnigraph
from omnigraph.testing.clock import ManualClock

SCHEMA = """
node P { name: String @key  age: I64  note: String? }
edge Knows: P -> P
"""
NOTE = re.compile(
    r"^ *(?P<step>.*?)  \[(?P<rows>\d+) rows, (?P<ms>[\d.]+) ms, (?P<requests>-?\d+) requests"
    r"(?:, (?P<calls>\d+) times)?\]$"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    place = tmp_path_factory.mktemp("profile") / "g"
    with omnigraph.init(place, SCHEMA) as graph:
        people = [{"name": f"p{i}", "age": i, "note": f"note {i}"} for i in range(10)]
        knows = [{"src": f"p{i}", "dst": f"p{j}"} for i in range(4) for j in range(i + 1, 6)]
        graph.load({"P": people, "Knows": knows})
    return place


def profile(graph, text, **options):
    """Step text to (rows, requests, calls); and the explanation."""
    explanation = graph.explain(text, analyze=True, **options)
    lines = str(explanation).rstrip("\n").split("\n")
    found = {}
    for line in lines[:-1]:
        matched = NOTE.match(line)
        assert matched, f"no notes: {line}"
        name = matched["step"].split(" ")[0]
        found.setdefault(name, []).append(
            (int(matched["rows"]), int(matched["requests"]), int(matched["calls"] or 1))
        )
    assert lines[-1].startswith(f"{explanation.rows} rows in ")
    return found, explanation


def rows_of(found):
    return {name: [n[0] for n in notes] for name, notes in found.items()}


def test_rows_of_every_step(root):
    with omnigraph.open(root) as graph:
        found, explanation = profile(
            graph,
            "match { $a: P  $a.age < 3  $a knows $b  $b.age >= 4 } return { $b.name } order { $b.name } limit 4",
        )
    assert rows_of(found) == {"return": [4], "order": [4], "expand": [6], "scan": [3]}
    assert explanation.rows == 4


def test_steps_that_are_run_as_one_still_tell(root):
    """Counting and the hop below it are one operation; the hop is not said to have been left out."""
    with omnigraph.open(root) as graph:
        for start in ("", '{ name: "p0" }'):
            text = f"match {{ $a: P {start} $a knows $b  $b knows $c }} return {{ $c.name, count($a) as n }}"
            found, explanation = profile(graph, text)
            assert "not run" not in explanation.text
            assert set(found) == {"aggregate", "expand", "count", "scan" if not start else "seek"}


def test_blocks_say_how_often_they_ran(root):
    text = (
        "match { $a: P } return { $a.name, count { $a knows $b } as n } order { n desc, $a.name }"
    )
    with omnigraph.open(root) as graph:
        found, _ = profile(graph, text)
    assert [n[0] for n in found["return"]] == [10]
    # The same count is asked for the order and for the result; the block is shown at both places.
    calls = {n[2] for name, notes in found.items() if name in ("count", "rows") for n in notes}
    assert calls == {2}


def test_a_step_that_has_nothing_to_do_is_not_run(root):
    text = "match { $a: P  $a.age > 100  not { $a knows $b } } return { $a.name }"
    with omnigraph.open(root) as graph:
        explanation = graph.explain(text, analyze=True)
    assert str(explanation).count("[not run]") == 2, "the block of no rows"


def test_requests_belong_to_the_step_that_made_them(root):
    text = "match { $a: P  $a.age < 3  $a knows $b } return { $b.note }"
    with omnigraph.open(root) as graph:
        found, _ = profile(graph, text)
        (cold,) = graph._engine._worlds.values()
        total = sum(n[1] for notes in found.values() for n in notes)
        assert all(n[1] > 0 for name in ("scan", "expand", "return") for n in found[name]), found
        # Opening a table is counted with it, but belongs to no step's own reading of rows.
        assert 0 < total <= cold.requests()
        before = cold.requests()
        warm, _ = profile(graph, text)
        assert cold.requests() == before
        assert {n[1] for notes in warm.values() for n in notes} == {0}
        assert rows_of(warm) == rows_of(found)


def test_time_is_the_clocks(root):
    class Ticking(ManualClock):
        """Every look at the clock takes a second."""

        def monotonic_s(self):
            self.advance(1.0)
            return super().monotonic_s()

    with omnigraph.open(root, clock=Ticking()) as graph:
        explanation = graph.explain("match { $a: P } return { $a.name }", analyze=True)
    times = [float(ms) for ms in re.findall(r"([\d.]+) ms, ", explanation.text)]
    # Two looks a step; the outer step's own time is without the inner one's.
    assert times == [2_000.0, 1_000.0]
    assert explanation.seconds == 5.0


def test_without_analyze_nothing_is_run_or_asked(root):
    text = "query q($n: I64) { match { $a: P  $a.age = $n } return { $a.name } }"
    with omnigraph.open(root) as graph:
        explanation = graph.explain(text)
        assert explanation.rows is None
        assert explanation.seconds is None
        assert "[" not in explanation.text
        (world,) = graph._engine._worlds.values()
        assert world.opened == []
        with pytest.raises(omnigraph.ParameterError):
            graph.explain(text, analyze=True)
