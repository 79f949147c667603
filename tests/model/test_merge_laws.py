"""Laws of merging, on random histories: against dicts, and by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from merge_model import Commit, Content, Entity, merge_bases
from merge_model import merge as model_merge

import omnigraph
from omnigraph.branch.merge.three_way import merge
from omnigraph.errors import MergeConflictError
from support.examples import examples

SCHEMA = """
node P { code: String @key  n: I32?  m: String? }
node Q { code: String @key }
edge E: Q -> Q { n: I32? }
edge K: Q -> Q { n: I32?  @key(@src, @dst) }
"""
FIXED = ("x", "y", "z")
BRANCHES = ("main", "a", "b")
LAWS = settings(
    max_examples=examples(30),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

NUMBERS = st.sampled_from([None, 1, 2])
ENDS = st.sampled_from([("x", "y"), ("y", "z"), ("z", "z")])
PUTS = st.one_of(
    st.tuples(
        st.tuples(st.just("P"), st.sampled_from("abc")),
        st.fixed_dictionaries({"n": NUMBERS, "m": st.sampled_from([None, "", "t"])}),
    ),
    st.tuples(
        st.tuples(st.just("E"), st.sampled_from(["e1", "e2"])),
        st.fixed_dictionaries({"n": NUMBERS, "endpoints": ENDS}),
    ),
    ENDS.flatmap(
        lambda ends: st.tuples(
            st.just(("K", f'["{ends[0]}","{ends[1]}"]')),
            st.fixed_dictionaries({"n": NUMBERS, "endpoints": st.just(ends)}),
        )
    ),
)
ENTITIES = PUTS.map(lambda put: put[0])
WRITES = st.tuples(
    st.just("write"),
    st.sampled_from(BRANCHES),
    st.lists(PUTS, min_size=1, max_size=3, unique_by=lambda put: put[0]),
)
DELETES = st.tuples(st.just("delete"), st.sampled_from(BRANCHES), ENTITIES)
MERGES = st.tuples(
    st.just("merge"),
    st.permutations(BRANCHES).map(lambda names: tuple(names[:2])),
    st.tuples(
        st.sampled_from(["property", "row"]), st.sampled_from([None, None, "ours", "theirs"])
    ),
)
CROSSES = MERGES.map(lambda step: ("cross", *step[1:]))
"""Two branches merge what the other was before: then they have two best common ancestors."""
STEPS = st.lists(
    st.one_of(WRITES, WRITES, WRITES, DELETES, MERGES, MERGES, CROSSES), min_size=4, max_size=16
)


def record(entity: Entity, row: dict[str, Any]) -> dict[str, Any]:
    kind, name = entity
    data = {n: v for n, v in row.items() if n != "endpoints"}
    if kind == "P":
        return {"type": "P", "data": {"code": name, **data}}
    source, target = row["endpoints"]
    own = {"id": name} if kind == "E" else {}
    return {"edge": kind, "from": source, "to": target, "data": {**own, **data}}


def content_of(graph: omnigraph.Graph, branch: str) -> Content:
    """What a branch shows, in the model's words."""
    view = graph.snapshot(branch)
    found: Content = {("P", row["id"]): {"n": row["n"], "m": row["m"]} for row in view.rows("P")}
    for kind in ("E", "K"):
        for row in view.rows(kind):
            ends = (row["src"], row["dst"])
            found[(kind, row["id"])] = {"n": row["n"], "endpoints": ends}
    return found


class Twins:
    """A graph and its model, changed together."""

    def __init__(self, graph: omnigraph.Graph) -> None:
        self.graph = graph
        graph.load([{"type": "Q", "data": {"code": code}} for code in FIXED])
        for name in BRANCHES[1:]:
            graph.branches.create(name)
        root = Commit({})
        self.heads = dict.fromkeys(BRANCHES, root)

    def write(self, branch: str, puts: list[tuple[Entity, dict[str, Any]]]) -> None:
        records = [record(*put) for put in puts]
        result = self.graph.load(records, mode="merge", branch=branch)
        before = self.heads[branch].content
        content = {**before, **dict(puts)}
        assert (result.commit is not None) == (content != before)
        if result.commit is not None:
            self._commit(branch, content)

    def delete(self, branch: str, entity: Entity) -> None:
        kind, name = entity
        column = "code" if kind == "P" else "id"
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        result = self.graph.mutate(f'delete {kind} where {column} = "{quoted}"', branch=branch)
        content = self.heads[branch].content
        assert (result.commit is not None) == (entity in content)
        if result.commit is not None:
            self._commit(branch, {e: row for e, row in content.items() if e != entity})

    def cross(self, one: str, other: str, granularity: str, prefer: str | None) -> None:
        before = self.heads[one]
        commit_id = self.graph._repository.head(one).snapshot.head.id
        self.merge(other, one, granularity, prefer)
        self.merge(f"commit:{commit_id}", other, granularity, prefer, before)

    def merge(
        self,
        source: str,
        into: str,
        granularity: str,
        prefer: str | None,
        theirs: Commit | None = None,
    ) -> None:
        ours, theirs = self.heads[into], theirs or self.heads[source]
        expected = model_merge(ours, theirs, granularity, prefer)
        repository = self.graph._repository
        try:
            found = merge(repository, source, into=into, granularity=granularity, prefer=prefer)
        except MergeConflictError as error:
            told = {
                ((c.type_name, c.entity_id), str(c.kind), frozenset(p.name for p in c.properties))
                for c in error.conflicts
            }
            assert (expected.outcome, expected.conflicts) == ("conflicts", told)
            return
        assert found.outcome == expected.outcome
        assert len(found.base_commits) == len(merge_bases(ours, theirs))
        if found.commit is not None:
            self.heads[into] = Commit(expected.content, (ours, theirs))
        self.agree(into)
        again = merge(repository, source, into=into, granularity=granularity)
        assert again.outcome == "already_up_to_date"

    def agree(self, branch: str) -> None:
        assert content_of(self.graph, branch) == self.heads[branch].content

    def _commit(self, branch: str, content: Content) -> None:
        self.heads[branch] = Commit(content, (self.heads[branch],))


@contextmanager
def twins() -> Iterator[Twins]:
    with TemporaryDirectory() as root, omnigraph.init(root, SCHEMA) as graph:
        yield Twins(graph)


def run(world: Twins, steps: list[tuple]) -> None:
    for verb, where, what in steps:
        if verb in ("merge", "cross"):
            getattr(world, verb)(*where, *what)
        else:
            getattr(world, verb)(where, what)


def put(code: str, n: int | None, m: str | None = None) -> tuple[Entity, dict[str, Any]]:
    return ("P", code), {"n": n, "m": m}


PROPERTY = ("property", None)
CROSS = [
    ("write", "main", [put("a", 1)]),
    ("write", "a", [put("a", 2)]),
    ("cross", ("main", "a"), ("property", "ours")),
]


@LAWS
@example([*CROSS, ("merge", ("a", "main"), PROPERTY)])
@example([*CROSS, ("delete", "a", ("P", "a")), ("merge", ("a", "main"), PROPERTY)])
@example([*CROSS, *CROSS, ("merge", ("a", "main"), PROPERTY)])
@example([*2 * [("write", "main", [put("a", 1)])], *2 * [("merge", ("main", "b"), PROPERTY)]])
@given(STEPS)
def test_any_history_of_merges_agrees_with_the_model(steps: list[tuple]) -> None:
    with twins() as world:
        run(world, steps)
        for branch in BRANCHES:
            world.agree(branch)


PARTS = {"a": "abc", "b": "def"}
"""Which codes a branch may touch."""


def changes(codes: str) -> st.SearchStrategy[list[tuple]]:
    values = st.fixed_dictionaries({"n": NUMBERS, "m": st.sampled_from([None, "t"])})
    own = st.sampled_from([("P", code) for code in codes])
    return st.lists(
        st.one_of(
            st.tuples(st.just("write"), st.tuples(own, values).map(lambda put: [put])),
            st.tuples(st.just("delete"), own),
        ),
        max_size=4,
    )


@settings(LAWS, max_examples=examples(12))
@given(changes("abcdef"), changes("abc"), changes("def"))
def test_merging_disjoint_changes_commutes(
    before: list[tuple], one: list[tuple], other: list[tuple]
) -> None:
    with TemporaryDirectory() as root, omnigraph.init(root, SCHEMA) as graph:
        world = Twins(graph)
        for verb, what in before:
            getattr(world, verb)("main", what)
        for name in ("left", "right", "p", "q"):
            graph.branches.create(name)
            world.heads[name] = world.heads["main"]
        for branch, steps in (("p", one), ("q", other)):
            for verb, what in steps:
                getattr(world, verb)(branch, what)
        repository = graph._repository
        for target, order in (("left", "pq"), ("right", "qp")):
            for source in order:
                merge(repository, source, into=target)
        assert content_of(graph, "left") == content_of(graph, "right")
        # Both have the same commits in them, so neither has anything for the other.
        assert merge(repository, "left", into="right").changes == {}


@settings(LAWS, max_examples=examples(20))
@given(st.lists(st.one_of(WRITES, WRITES, DELETES), min_size=2, max_size=10))
def test_no_update_of_either_side_is_lost(steps: list[tuple]) -> None:
    with twins() as world:
        run(world, [s for s in steps if s[1] == "main"])
        merge(world.graph._repository, "main", into="a")
        base = content_of(world.graph, "main")
        world.heads["a"] = Commit(base, (world.heads["a"], world.heads["main"]))
        run(world, [("main" if w == "b" else w) and (v, "main" if w == "b" else w, x)
                    for v, w, x in steps if w != "main"])  # fmt: skip
        ours, theirs = (content_of(world.graph, b) for b in ("main", "a"))
        try:
            merge(world.graph._repository, "a")
        except MergeConflictError as error:
            assert error.conflicts
            assert content_of(world.graph, "main") == ours
            return
        merged = content_of(world.graph, "main")
        for side in (ours, theirs):
            for entity in {*base, *side}:
                was, now = base.get(entity), side.get(entity)
                if was is None or now is None:
                    assert was is now or merged.get(entity) == now
                    continue
                for name, value in now.items():
                    if was[name] != value:
                        assert merged[entity][name] == value
