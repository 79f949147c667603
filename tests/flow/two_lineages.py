"""Two lineages of one table made by one handle, and what every index of them answers.

Lance keeps what it knows of a version under its number, and two lineages count alike: the graphs
here reach the same numbers with an index on one side and without one on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import lance
import pytest

import omnigraph
from omnigraph.failpoints import FailPoint, armed
from omnigraph.query.exec import columns, world
from omnigraph.storage import namespace, staging
from omnigraph.storage.indexing import IndexKind
from omnigraph.storage.tables import Table
from omnigraph.upkeep import indexes

SCHEMA = """
node N {
  k: String @key
  color: enum(red, green, blue)? @index
  text: String? @index
  place: Vector(4)? @index
}
"""
COLORS = ("red", "green", "blue")
KEY_QUERY = "query q($v: String) { match { $n: N { k: $v } } return { $n.k } }"
COLOR_QUERY = "query q($v: String) { match { $n: N  $n.color = $v } return { $n.k } }"
PART_QUERY = "query q($v: String) { match { $n: N  $n.text contains $v } return { $n.k } }"

Rows = dict[str, dict[str, Any]]


def rows(name: str, start: int, stop: int) -> dict[str, list[dict[str, Any]]]:
    """Rows whose every value tells which they are."""
    return {"N": [row(f"{name}{i}", i) for i in range(start, stop)]}


def row(key: str, number: int) -> dict[str, Any]:
    return {
        "k": key,
        "color": COLORS[(number + ord(key[0])) % 3],
        "text": f"about word{key} here",
        "place": [float(ord(key[0])), float(number), 0.0, 1.0],
    }


def ask_indexes(patch: pytest.MonkeyPatch) -> None:
    """Nothing is kept in memory, so that small graphs are answered as large ones are."""
    patch.setenv(columns.CACHE_VARIABLE, "1")
    patch.setattr(staging, "CACHE_BYTES_MAX", 1)
    patch.setattr(indexes, "PARTS_ROWS_MIN", 1)
    patch.setattr(world, "PARTS_ROWS_MIN", 1)


def one_session_for_all(patch: pytest.MonkeyPatch) -> None:
    """What older releases did: the session of a version serves all that are made on it."""
    patch.setattr(namespace.Succession, "claim", lambda _: True)
    patch.setattr(staging, "verify_indexes", lambda *_: None)


# -- histories -------------------------------------------------------------------------------------

BASE, STEP = 260, 30
"""Enough vectors for an index, and files that are smaller than the one that is joined."""
ASKED = 20
"""Rows that are asked for, evenly: some of every file."""


def write_on(graph: omnigraph.Graph, branch: str, name: str, commits: int = 4) -> None:
    for number in range(commits):
        graph.load(rows(name, number * STEP, (number + 1) * STEP), branch=branch)


def index_main(graph: omnigraph.Graph) -> None:
    """A load, then all indexes over joined files: two numbers more than loads alone make."""
    graph.load(rows("m", 0, BASE))
    graph.optimize()
    graph.build_indexes()


def by_branch(graph: omnigraph.Graph) -> None:
    graph.load(rows("x", 0, BASE))
    graph.branches.create("b")
    index_main(graph)
    write_on(graph, "b", "b", commits=6)


def by_branch_first(graph: omnigraph.Graph) -> None:
    """The branch goes ahead, and main follows."""
    graph.load(rows("x", 0, BASE))
    graph.branches.create("b")
    graph.load(rows("b", 0, BASE), branch="b")
    graph.optimize(branch="b")
    graph.build_indexes(branch="b")
    write_on(graph, "main", "m", commits=6)


def by_rename(graph: omnigraph.Graph) -> None:
    graph.load(rows("x", 0, BASE))
    graph.branches.create("a")
    graph.branches.rename("a", "b")
    index_main(graph)
    write_on(graph, "b", "b", commits=6)


def by_reset(graph: omnigraph.Graph) -> None:
    """Main is set back to where a branch still stands, and goes another way."""
    graph.load(rows("x", 0, BASE))
    first = graph.commits(limit=1)[0].id
    graph.branches.create("b")
    index_main(graph)
    graph.reset(first)
    write_on(graph, "main", "n", commits=6)


def by_adoption(graph: omnigraph.Graph) -> None:
    """A merge shows the very version of the branch on main, and both go on from it."""
    graph.load(rows("x", 0, BASE))
    graph.branches.create("b")
    graph.load(rows("y", 0, STEP), branch="b")
    graph.merge("b")
    index_main(graph)
    write_on(graph, "b", "b", commits=6)


def by_lost_race(graph: omnigraph.Graph) -> None:
    """Maintenance loses to another handle, and its version number is taken by a load."""
    graph.load(rows("x", 0, BASE))
    graph.branches.create("b")

    def overtake() -> None:
        with omnigraph.open(graph.uri) as other:
            other.load(rows("o", 0, STEP))

    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, _once(overtake)):
        graph.build_indexes()
    write_on(graph, "b", "b", commits=6)
    write_on(graph, "main", "m", commits=3)


def by_failure(graph: omnigraph.Graph) -> None:
    """Maintenance fails before it is published; loads follow on the version it started from."""
    graph.load(rows("x", 0, BASE))
    graph.branches.create("b")

    def fail() -> None:
        raise SystemExit

    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, fail), pytest.raises(SystemExit):
        graph.build_indexes()
    write_on(graph, "main", "m", commits=4)
    write_on(graph, "b", "b", commits=4)


HISTORIES: Mapping[str, Callable[[omnigraph.Graph], None]] = {
    "branch": by_branch,
    "branch first": by_branch_first,
    "rename": by_rename,
    "reset": by_reset,
    "adoption": by_adoption,
    "lost race": by_lost_race,
    "failure": by_failure,
}


def _once(act: Callable[[], None]) -> Callable[[], None]:
    done = False

    def first() -> None:
        nonlocal done
        if not done:
            done = True
            act()

    return first


# -- what a version says, and what it holds --------------------------------------------------------


def table_of(graph: omnigraph.Graph, branch: str, key: str = "node:N") -> Table:
    """Opened anew, in a session that has seen nothing else."""
    repository = graph._repository
    return repository.tables.open(repository.head(branch).snapshot.pins[key].name)


def content(table: Table) -> Rows:
    """The rows by key, read without any index."""
    return {found["k"]: found for found in table.dataset.to_table().to_pylist()}


def wrong_answers(table: Table, kind: IndexKind) -> list[str]:
    """Rows of a version that an index of this kind does not find, or finds for others."""
    found, held = table.dataset, content(table)
    ask = _ASK[kind]
    wrong: list[str] = []
    asked = list(held)[:: max(1, len(held) // ASKED)]
    if kind is IndexKind.BITMAP:
        asked = list({held[key]["color"]: key for key in asked}.values())  # Each colour once.
    for key in asked:
        try:
            answer = ask(found, held, key)
        except (OSError, ValueError) as e:  # Lance notices addresses that are not there, sometimes.
            answer = str(e)
        if answer is not None:
            wrong.append(f"{key}: {answer}")
    return wrong


def _filtered(dataset: lance.LanceDataset, condition: str) -> set[str]:
    return set(dataset.to_table(columns=["k"], filter=condition)["k"].to_pylist())


def _ask_keys(dataset: lance.LanceDataset, _: Rows, key: str) -> str | None:
    found = _filtered(dataset, f"k = '{key}'")
    return None if found == {key} else str(found)


def _ask_colors(dataset: lance.LanceDataset, held: Rows, key: str) -> str | None:
    color = held[key]["color"]
    expected = {k for k, r in held.items() if r["color"] == color}
    found = _filtered(dataset, f"color = '{color}'")
    return None if found == expected else f"{len(found)} of {len(expected)}"


def _ask_parts(dataset: lance.LanceDataset, held: Rows, key: str) -> str | None:
    part = f"word{key} "
    expected = {k for k, r in held.items() if part in r["text"]}
    found = _filtered(dataset, f"contains(text, '{part}')")
    return None if found == expected else str(found)


def _ask_words(dataset: lance.LanceDataset, _: Rows, key: str) -> str | None:
    if not any(index.index_type == "Inverted" for index in dataset.describe_indices()):
        return None  # Lance searches words in an index or not at all.
    table = dataset.to_table(columns=["k"], full_text_query=f"word{key}")
    found = set(table["k"].to_pylist())
    return None if found == {key} else str(found)


def _ask_places(dataset: lance.LanceDataset, held: Rows, key: str) -> str | None:
    nearest = {"column": "place", "q": held[key]["place"], "k": 1}
    found = dataset.to_table(columns=["k"], nearest=nearest)["k"].to_pylist()
    return None if found == [key] else str(found)


_ASK = {
    IndexKind.BTREE: _ask_keys,
    IndexKind.BITMAP: _ask_colors,
    IndexKind.NGRAM: _ask_parts,
    IndexKind.TEXT: _ask_words,
    IndexKind.VECTOR: _ask_places,
}
