"""Branches, indexes and one handle: every branch answers as its own rows say, whatever came before.

Loads, merges of rows, deletions, maintenance, resets, adoption and new handles in any order, on
branches that were made from each other. A dict of each branch says what lookups by key, by value
and by part of a text have to find, asked of the handle that did it all and of one that did nothing.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query.exec import columns, world
from omnigraph.storage import compact, staging
from omnigraph.testing.clock import ManualClock
from omnigraph.upkeep import indexes
from support.examples import examples

SCHEMA = """
node N { k: String @key  color: enum(red, green, blue) @index  text: String @index  n: I64 @index }
edge To: N -> N
"""
COLORS = ("red", "green", "blue")
QUESTIONS = {
    "k": "query q($v: String) { match { $n: N { k: $v } } return { $n.k } }",
    "color": "query q($v: String) { match { $n: N  $n.color = $v } return { $n.k } }",
    "n": "query q($v: I64) { match { $n: N  $n.n = $v } return { $n.k } }",
    "text": "query q($v: String) { match { $n: N  $n.text contains $v } return { $n.k } }",
}
NAMES = ("main", "b", "c")
Rows = dict[str, dict[str, Any]]


class Histories:
    """One graph with its model, and the dice that decide what happens next."""

    def __init__(self, place: Path, graph: omnigraph.Graph, dice: random.Random) -> None:
        self.place = place
        self.graph = graph
        self.dice = dice
        self.rows: dict[str, Rows] = {"main": {}}
        self.commits: dict[str, list[tuple[str, Rows]]] = {"main": []}
        self.made = 0

    def step(self) -> None:
        name = self.dice.choice(sorted(self.rows))
        acts = (
            *[self.load] * 5,
            self.change,
            self.delete,
            *[self.maintain] * 4,
            self.branch,
            self.branch,
            self.reset,
            self.adopt,
            self.open_again,
        )
        act = self.dice.choice(acts)
        note(f"{act.__name__} {name}")
        act(name)
        if name in self.rows:
            self.remember(name)

    def remember(self, name: str) -> None:
        head = self.graph.commits(branch=name, limit=1)[0].id
        self.commits[name].append((head, dict(self.rows[name])))

    def row(self, key: str) -> dict[str, Any]:
        self.made += 1
        number = self.dice.randrange(50)
        text = f"the {key} of {self.made}"
        return {"k": key, "color": self.dice.choice(COLORS), "text": text, "n": number}

    def load(self, name: str) -> None:
        # Keys of all branches come from one set: the same ones stand at the same places.
        keys = [f"k{i}" for i in range(200) if f"k{i}" not in self.rows[name]]
        keys = self.dice.sample(keys, min(len(keys), self.dice.choice((1, 3, 12, 40))))
        fresh = [self.row(key) for key in keys]
        if fresh:
            self.graph.load({"N": fresh}, branch=name)
            self.rows[name] |= {row["k"]: row for row in fresh}

    def change(self, name: str) -> None:
        keys = self.dice.sample(sorted(self.rows[name]), min(len(self.rows[name]), 5))
        changed = [self.row(key) for key in keys]
        if changed:
            self.graph.load({"N": changed}, mode="merge", branch=name)
            self.rows[name] |= {row["k"]: row for row in changed}

    def delete(self, name: str) -> None:
        for key in self.dice.sample(sorted(self.rows[name]), min(len(self.rows[name]), 2)):
            self.graph.mutate(f'delete N where k = "{key}"', branch=name)
            del self.rows[name][key]

    def maintain(self, name: str) -> None:
        if self.dice.random() < 0.5:
            self.graph.optimize(branch=name)
        else:
            self.graph.build_indexes(branch=name)

    def branch(self, name: str) -> None:
        new = next((n for n in NAMES if n not in self.rows), None)
        if new is None:
            gone = self.dice.choice(NAMES[1:])
            self.graph.branches.delete(gone)
            del self.rows[gone], self.commits[gone]
        else:
            self.graph.branches.create(new, name)
            self.rows[new] = dict(self.rows[name])
            self.commits[new] = []
            self.remember(new)

    def reset(self, name: str) -> None:
        if self.commits[name]:
            commit, rows = self.dice.choice(self.commits[name][-6:])
            self.graph.reset(commit, branch=name)
            self.rows[name] = dict(rows)

    def adopt(self, name: str) -> None:
        """Two branches show the very same version, and go on from it."""
        other = self.dice.choice(sorted(self.rows))
        if other != name:
            self.graph.reset(self.graph.commits(branch=other, limit=1)[0].id, branch=name)
            self.rows[name] = dict(self.rows[other])

    def open_again(self, _: str) -> None:
        self.graph.close()
        self.graph = omnigraph.open(self.place, clock=ManualClock())

    def check(self, graph: omnigraph.Graph) -> None:
        for name, rows in self.rows.items():
            some = self.dice.sample(sorted(rows), min(len(rows), 6))
            strange = [f"k{self.dice.randrange(200)}" for _ in range(3)]
            asked = {
                "k": [*some, *strange],
                "color": COLORS,
                "n": [rows[key]["n"] for key in some[:2]],
                "text": [rows[key]["text"] for key in some[:2]],
            }
            for column, values in asked.items():
                for value in values:
                    found = graph.query(QUESTIONS[column], {"v": value}, branch=name).to_dicts()
                    expected = sorted(k for k, row in rows.items() if row[column] == value)
                    answer = sorted(row["n.k"] for row in found)
                    assert answer == expected, f"{name}: {column} = {value!r}"


@settings(max_examples=examples(5))
@given(seed=st.integers(0, 2**32))
def test_every_branch_answers_from_its_own_indexes(seed: int) -> None:
    dice = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setenv(columns.CACHE_VARIABLE, dice.choice(("1", "1", "1000000000")))
        patch.setattr(staging, "CACHE_BYTES_MAX", dice.choice((1, 1 << 20)))
        patch.setattr(indexes, "PARTS_ROWS_MIN", 1)
        patch.setattr(world, "PARTS_ROWS_MIN", 1)
        patch.setattr(compact, "TAIL_MAX", dice.choice((3, 48)))
        place = Path(folder) / "g"
        history = Histories(place, omnigraph.init(place, SCHEMA, clock=ManualClock()), dice)
        history.load("main")
        history.remember("main")
        for _ in range(24):
            history.step()
            if dice.random() < 0.3:
                history.check(history.graph)
        history.check(history.graph)
        with omnigraph.open(place) as fresh:
            history.check(fresh)
            report = fresh.upkeep.check(full=True)
            assert report.ok, report.findings
        history.graph.close()
