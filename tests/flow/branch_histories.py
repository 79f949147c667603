"""Random histories on two branches, each state kept with the lines that an export writes of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from io import BytesIO
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import strategies as st

import omnigraph
from omnigraph.manifest.refs import BranchRef, create_branch_ref
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import ManifestStore
from omnigraph.storage.location import locate

SCHEMA = """
node P { code: String @key  n: I32?  x: F64?  tags: [String]?  at: Vector(2)?  raw: Blob? }
node Q { code: String @key  day: Date?  ns: [U32]? }
edge E: P -> P { n: I32? }
edge F: P -> Q { w: F32?  @key(@src, @dst) }
"""
CODES = ["a", "b", "c", "é", "\U0001f600", "\uffee"]
"""UTF-8 and UTF-16 order the last two differently."""
BRANCHES = ("main", "other")

Entity = tuple[str, str]
"""Type and id."""
State = dict[Entity, dict[str, Any]]
"""Lines of an export by entity."""


def fork(root: object, name: str) -> None:
    """A branch from the head of main: its manifest first, invisible; its ref last."""
    repository = Repository(locate(str(root)))
    head = repository.branch("main").head.snapshot
    ref = BranchRef(
        name=name,
        life=1,
        incarnation=repository.ids.ulid(),
        parent="main",
        fork_commit=head.head.id,
        created_at_us=head.head.created_at_us,
    )
    store = ManifestStore(repository.objects, ref.manifest_path)
    staged = store.stage_first(replace(head, branch=name, version=1, path=ref.manifest_path))
    assert staged is not None
    assert store.create(staged) is not None
    assert create_branch_ref(repository.objects, ref)
    repository.close()


@dataclass
class History:
    """A graph and everything it has been."""

    graph: omnigraph.Graph
    root: str
    seen: list[tuple[Snapshot, State]] = field(default_factory=list)

    def keep(self, branch: str) -> None:
        snapshot = self.graph._repository.branch(branch).refresh().snapshot
        self.seen.append((snapshot, exported(self.graph, branch)))

    def apply(self, step: tuple) -> None:
        """One write; one that the schema refuses changes nothing."""
        verb, branch, payload = step
        try:
            if verb in ("append", "merge", "overwrite"):
                self.graph.load(payload, mode=verb, branch=branch)
            else:
                self.graph.mutate(payload, branch=branch)
        except omnigraph.ConstraintError:
            return
        self.keep(branch)


def exported(graph: omnigraph.Graph, branch: str = "main") -> State:
    out = BytesIO()
    graph.snapshot(branch).export(out)
    lines = [json.loads(line, parse_int=_number) for line in out.getvalue().splitlines()]
    return {(line.get("type") or line.get("edge"), line["data"]["id"]): line for line in lines}


def _number(digits: str) -> int | float:
    return -0.0 if digits == "-0" else int(digits)


@contextmanager
def history(steps: list[tuple]) -> Iterator[History]:
    """Run the steps; the branch ``other`` leaves main after the first of them."""
    with TemporaryDirectory() as root, omnigraph.init(root, SCHEMA) as graph:
        made = History(graph, root)
        made.keep("main")
        made.apply(("append", "main", [p("a", n=1), p("b", tags=["x"]), q("a")]))
        fork(root, "other")
        made.keep("other")
        for step in steps:
            made.apply(step)
        yield made


def p(code: str, **data: Any) -> dict[str, Any]:
    return {"type": "P", "data": {"code": code, **data}}


def q(code: str, **data: Any) -> dict[str, Any]:
    return {"type": "Q", "data": {"code": code, **data}}


def naive_diff(before: State, after: State) -> dict[Entity, tuple]:
    """The entities that differ, each with its line before and after."""
    return {
        key: (before.get(key), after.get(key))
        for key in {*before, *after}
        if _spelled(before.get(key)) != _spelled(after.get(key))
    }


def _spelled(line: dict[str, Any] | None) -> str:
    return json.dumps(line, sort_keys=True)


_codes = st.sampled_from(CODES)
_data = st.fixed_dictionaries(
    {},
    optional={
        "n": st.sampled_from([None, 0, 1, 2]),
        "x": st.sampled_from([None, 0.0, -0.0, 0.1]),
        "tags": st.sampled_from([None, [], ["x"], ["x", "y"]]),
        "at": st.sampled_from([None, [0.0, 1.0], [-0.0, 1.0]]),
        "raw": st.sampled_from([None, "base64:", "base64:AAAA"]),
    },
)
_nodes = st.one_of(
    st.builds(lambda c, d: p(c, **d), _codes, _data),
    st.builds(
        lambda c, d, n: q(c, day=d, ns=n),
        _codes,
        st.sampled_from([None, "2026-01-31"]),
        st.sampled_from([None, [], [1, 2]]),
    ),
)
_edges = st.one_of(
    st.builds(
        lambda i, a, b, n: {"edge": "E", "from": a, "to": b, "data": {"id": i, "n": n}},
        st.sampled_from(["e1", "e2", "e3"]),
        st.sampled_from(CODES[:2]),
        st.sampled_from(CODES[:2]),
        st.sampled_from([None, 1, 2]),
    ),
    st.builds(
        lambda a, w: {"edge": "F", "from": a, "to": "a", "data": {"w": w}},
        st.sampled_from(CODES[:2]),
        st.sampled_from([None, 0.5, 0.1]),
    ),
)


def _unique(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    def key(e: dict[str, Any]) -> tuple:
        return (
            e.get("type"),
            e.get("edge"),
            e["data"].get("code"),
            e["data"].get("id"),
            e.get("from"),
        )

    return list({key(e): e for e in entities}.values())


_loads = st.tuples(
    st.sampled_from(["append", "merge", "merge", "merge", "overwrite"]),
    st.sampled_from(BRANCHES),
    st.lists(_nodes | _edges, min_size=1, max_size=5).map(_unique),
)
_mutations = st.tuples(
    st.just("mutate"),
    st.sampled_from(BRANCHES),
    st.one_of(
        st.builds(lambda c: f'query m() {{ delete P where code = "{c}" }}', _codes),
        st.builds(lambda c: f'query m() {{ delete Q where code = "{c}" }}', _codes),
        st.builds(
            lambda c, n: f'query m() {{ update P set {{ n: {n} }} where code = "{c}" }}',
            _codes,
            st.sampled_from(["null", "0", "1"]),
        ),
        st.just("query m() { delete E where n = 1 }"),
    ),
)
steps = st.lists(_loads | _mutations, min_size=1, max_size=7)
