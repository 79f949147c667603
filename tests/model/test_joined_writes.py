"""Writes that are published together leave what they would have left one after the other.

Random writes queue up behind one that is held back. Whatever is then published together, in which
order, the same writes made one by one on another graph in that order must end alike: each with the
same counts or the same error, each commit showing the same graph, the same changes in the feed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, note, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.errors import OmnigraphError
from support.examples import examples
from support.queueing import Ended, queued

SCHEMA = """
node Person { name: String @key  age: I32?  code: String? @unique }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person @card(0..2) { how: String? }
edge Lives: Person -> City { since: I32?  @unique(src) }
"""

NAMES = st.sampled_from("abcde")
NUMBERS = st.integers(1, 2)


@dataclass(frozen=True, slots=True)
class Write:
    """One write, by its text and parameters, or by rows to load."""

    text: str = ""
    params: tuple[tuple[str, Any], ...] = ()
    rows: tuple[tuple[str, Any], ...] = ()
    mode: str = "merge"

    def __call__(self, graph: omnigraph.Graph) -> Any:
        if self.text:
            return graph.mutate(self.text, params=dict(self.params))
        return graph.load([_line(kind, fields) for kind, fields in self.rows], mode=self.mode)


def _line(kind: str, fields: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    data = dict(fields)
    if kind in ("Person", "City"):
        return {"type": kind, "data": data}
    ends = {"from": data.pop("from"), "to": data.pop("to")}
    return {"edge": kind, **ends, "data": data}


def _query(parameters: str, body: str) -> str:
    return f"query q({parameters}) {{ {body} }}"


INSERT = _query("$n: String, $a: I32", "insert Person { name: $n, age: $a }")
CODED = _query("$n: String, $a: String", "insert Person { name: $n, code: $a }")
AGE = _query("$n: String, $a: I32", "update Person set { age: $a } where name = $n")
OLDER = _query("$n: I32, $a: I32", "update Person set { age: $a } where age = $n")
DELETE = _query("$n: String", "delete Person where name = $n")
KNOWS = _query("$n: String, $m: String", "insert Knows { from: $n, to: $m }")
LIKES = _query("$n: String, $m: String", "insert Likes { from: $n, to: $m }")
LIVES = _query("$n: String, $m: String", "insert Lives { from: $n, to: $m }")
UNLIKE = _query("$n: String", "delete Likes where from = $n")
BOTH = _query(
    "$n: String, $m: String",
    "insert Person { name: $n, age: 7 } insert Knows { from: $n, to: $m }",
)


def _given(text: str, **values: st.SearchStrategy[Any]) -> st.SearchStrategy[Write]:
    drawn = st.fixed_dictionaries(values)
    return drawn.map(lambda params: Write(text=text, params=tuple(params.items())))


@st.composite
def _loads(draw: st.DrawFn) -> Write:
    kind = draw(st.sampled_from(["Person", "Knows", "Likes", "City"]))
    if kind == "City":
        fields: dict[str, Any] = {"name": draw(NAMES)}
    elif kind == "Person":
        fields = {"name": draw(NAMES), "age": draw(NUMBERS)}
    else:
        fields = {"from": draw(NAMES), "to": draw(NAMES)}
    mode = draw(st.sampled_from(["merge", "append"]))
    return Write(rows=((kind, tuple(fields.items())),), mode=mode)


JOINING = st.one_of(
    _given(INSERT, n=st.sampled_from("defgh"), a=NUMBERS),
    _given(KNOWS, n=st.sampled_from("abc"), m=st.sampled_from("abc")),
    _given(AGE, n=st.sampled_from("abc"), a=NUMBERS),
    _given(OLDER, n=NUMBERS, a=NUMBERS),
)
"""Writes that can be valid on the first state, so that many of them go together."""
ALL = st.one_of(
    _given(INSERT, n=NAMES, a=NUMBERS),
    _given(CODED, n=NAMES, a=st.sampled_from("xy")),
    _given(AGE, n=NAMES, a=NUMBERS),
    _given(OLDER, n=NUMBERS, a=NUMBERS),
    _given(DELETE, n=NAMES),
    _given(KNOWS, n=NAMES, m=NAMES),
    _given(LIKES, n=NAMES, m=NAMES),
    _given(LIVES, n=NAMES, m=st.sampled_from("ab")),
    _given(UNLIKE, n=NAMES),
    _given(BOTH, n=NAMES, m=NAMES),
    _loads(),
)
WRITES = st.one_of(JOINING, ALL)


def begun(root: Path, name: str) -> omnigraph.Graph:
    graph = omnigraph.init(root / name, SCHEMA)
    people = [{"type": "Person", "data": {"name": n, "age": 1}} for n in "abc"]
    knows = [{"edge": "Knows", "from": "a", "to": "b"}, {"edge": "Likes", "from": "a", "to": "b"}]
    graph.load([*people, {"type": "City", "data": {"name": "a"}}, *knows])
    return graph


def first(graph: omnigraph.Graph) -> Any:
    return graph.load([{"type": "City", "data": {"name": "first"}}])


def shown(graph: omnigraph.Graph, at: str) -> dict[str, Counter[str]]:
    """The rows of every type, without ids that were drawn."""
    state, found = graph.at(f"commit:{at}"), {}
    for name in ("Person", "City", "Knows", "Likes", "Lives"):
        rows = state.rows(name).to_arrow().to_pylist()
        found[name] = Counter(str({k: v for k, v in r.items() if k != "id"}) for r in rows)
    return found


def outcome(end: Ended) -> tuple[Any, ...]:
    if isinstance(end.error, OmnigraphError):
        return type(end.error).__name__, end.error.kind
    assert end.error is None, end.error
    done = end.result.commit
    return (done is not None, done.changes if done is not None else None)


def one_by_one(graph: omnigraph.Graph, writes: list[Write]) -> list[Ended]:
    ends = []
    for write in writes:
        try:
            ends.append(Ended(result=write(graph)))
        except OmnigraphError as e:
            ends.append(Ended(error=e))
    return ends


def lines(graph: omnigraph.Graph, commit: str) -> Counter[tuple[str, str]]:
    changes = map(json.loads, graph.changes.commit(commit).lines)
    return Counter((change["op"], str(change.get("type"))) for change in changes)


@given(st.lists(WRITES, min_size=5, max_size=10))
@settings(max_examples=examples(40), deadline=None)
def test_together_is_one_after_the_other(writes: list[Write]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        with begun(root, "a") as graph, begun(root, "b") as other:
            calls: list[Callable[[], Any]] = [lambda w=w: w(graph) for w in writes]
            ends, order = queued(lambda: first(graph), calls)
            assert sorted(order) == list(range(len(writes)))
            versions = [c.manifest_version for c in graph.commits()]
            note(f"{order} in versions {versions}")
            first(other)
            again = one_by_one(other, [writes[n] for n in order])
            pairs = [(ends[n], end) for n, end in zip(order, again, strict=True)]
            for mine, theirs in pairs:
                assert outcome(mine) == outcome(theirs)
                if mine.commit is not None and theirs.commit is not None:
                    assert shown(graph, mine.commit) == shown(other, theirs.commit)
                    assert lines(graph, mine.commit) == lines(other, theirs.commit)
            made = [mine.commit for mine, _ in pairs if mine.commit is not None]
            line = [c.id for c in graph.commits()]
            assert line[: len(made)] == made[::-1]
            report = graph.upkeep.check(full=True, history=True)
            assert report.ok, report.findings
