"""Random mutations against a dict: same rows, same counts, a commit exactly when something changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.mutate import MutationOutcome, run_mutation
from support.examples import examples

SCHEMA = """
node P { code: String @key  n: I32?  x: F64?  tags: [String]? }
node Q { code: I64 @key  n: I32? }
edge E: P -> P { n: I32? }
edge F: P -> Q { n: I32?  @key(@src, @dst) }
edge G: Q -> Q { n: I32? }
"""
VALUES = Values(params={}, now=datetime(2026, 1, 1, tzinfo=UTC))
P_COLUMNS = {"n": [None, 1, 2, 3], "x": [None, 0.5, 2.0], "tags": [None, [], ["a"], ["a", "b"]]}
N_COLUMN = {"n": [None, 1, 2, 3]}
COLUMNS = {"P": P_COLUMNS, "Q": N_COLUMN, "E": N_COLUMN, "F": N_COLUMN, "G": N_COLUMN}
KEYS = {"P": ["a", "b", "c", "d"], "Q": [1, 2, 3]}
ENDS = {"E": ("P", "P"), "F": ("P", "Q"), "G": ("Q", "Q")}

Row = dict[str, Any]
Condition = tuple[str, Callable[[Row], bool]]
"""As text, and whether it is true for a row (false when unknown)."""


@dataclass
class Model:
    """Rows by type; keyed ones by id, others in a list."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: {t: [] for t in COLUMNS})

    def dangling(self) -> bool:
        ids = {t: {r["id"] for r in self.rows[t]} for t in KEYS}
        return any(
            r["src"] not in ids[source] or r["dst"] not in ids[target]
            for t, (source, target) in ENDS.items()
            for r in self.rows[t]
        )


def literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Write:
    """An insert, upsert or update: its text, and what it does to a model. Returns rows met."""

    kind: str
    type_name: str
    cells: tuple[tuple[str, Any], ...]
    where: Condition | None = None

    @property
    def text(self) -> str:
        names = {"src": "from", "dst": "to"}
        cells = ", ".join(f"{names.get(n, n)}: {literal(v)}" for n, v in self.cells)
        if self.where is None:
            return f"{self.kind} {self.type_name} {{ {cells} }}"
        return f"update {self.type_name} set {{ {cells} }} where {self.where[0]}"

    def apply(self, model: Model) -> int:
        rows, cells = model.rows[self.type_name], dict(self.cells)
        if self.where is not None:
            matched = [r for r in rows if self.where[1](r)]
            for row in matched:
                row.update(cells)
            return len(matched)
        empty = dict.fromkeys(COLUMNS[self.type_name])
        key = identity(self.type_name, cells)
        old = next((r for r in rows if key is not None and r["id"] == key), None)
        if old is None:
            rows.append({"id": key, **empty, **cells})
        elif self.kind == "upsert":
            old.update(cells)
        else:
            old.update({**empty, **cells})
        return 1


@dataclass(frozen=True)
class Drop:
    """A delete."""

    type_name: str
    where: Condition

    @property
    def text(self) -> str:
        return f"delete {self.type_name} where {self.where[0]}"

    def apply(self, model: Model) -> None:
        rows = model.rows[self.type_name]
        gone = {r["id"] for r in rows if self.where[1](r)}
        model.rows[self.type_name] = [r for r in rows if not self.where[1](r)]
        if self.type_name not in KEYS:
            return
        for name, (source, target) in ENDS.items():
            model.rows[name] = [
                r
                for r in model.rows[name]
                if not (source == self.type_name and r["src"] in gone)
                and not (target == self.type_name and r["dst"] in gone)
            ]


def identity(type_name: str, cells: Row) -> str | None:
    if type_name in KEYS:
        return str(cells["code"])
    return f'["{cells["src"]}","{cells["dst"]}"]' if type_name == "F" else None


def simple(type_name: str) -> st.SearchStrategy[Condition]:
    def is_value(name: str, value: Any) -> Condition:
        text = {"src": "from", "dst": "to"}.get(name, name)
        if value is None:
            return f"{text} is null", lambda r: r[name] is None
        return f"{text} = {literal(value)}", lambda r: r[name] == value

    def more(value: float) -> Condition:
        return f"n > {value}", lambda r: r["n"] is not None and r["n"] > value

    def unequal(value: int) -> Condition:
        return f"not (n = {value})", lambda r: r["n"] is not None and r["n"] != value

    found = [
        st.sampled_from(N_COLUMN["n"]).map(lambda v: is_value("n", v)),
        st.sampled_from([0, 1, 1.5, 2]).map(more),
        st.sampled_from([1, 2]).map(unequal),
    ]
    if type_name in KEYS:
        keys = st.sampled_from(KEYS[type_name])
        found.append(keys.map(lambda v: is_value("code", v)))
        found.append(keys.map(lambda v: is_value("id", str(v))))
        found.append(
            st.lists(keys, max_size=3).map(
                lambda vs: (f"code in {literal(vs)}", lambda r: r["code"] in vs)
            )
        )
    else:
        source, target = ENDS[type_name]
        found.append(st.sampled_from(KEYS[source]).map(lambda v: is_value("src", str(v))))
        found.append(st.sampled_from(KEYS[target]).map(lambda v: is_value("dst", str(v))))
    if type_name == "P":
        found.append(st.just(("x < 1", lambda r: r["x"] is not None and r["x"] < 1)))
        found.append(st.just(('tags contains "a"', lambda r: "a" in (r["tags"] or []))))
    return st.one_of(found)


def conditions(type_name: str) -> st.SearchStrategy[Condition]:
    def join(word: str, parts: tuple[Condition, Condition]) -> Condition:
        (a, f), (b, g) = parts
        if word == "and":
            return f"({a}) and ({b})", lambda r: f(r) and g(r)
        return f"({a}) or ({b})", lambda r: f(r) or g(r)

    one = simple(type_name)
    both = st.builds(join, st.sampled_from(["and", "or"]), st.tuples(one, one))
    return one | both


@st.composite
def writes(draw: st.DrawFn) -> Write:
    name = draw(st.sampled_from(["P", "P", "P", "Q", "E", "F", "G"]))
    columns = COLUMNS[name]
    kinds = ["insert", "update"] + (["upsert"] if name in (*KEYS, "F") else [])
    kind = draw(st.sampled_from(kinds))
    chosen = draw(
        st.lists(st.sampled_from(sorted(columns)), unique=True, min_size=kind == "update")
    )
    cells: list[tuple[str, Any]] = [(c, draw(st.sampled_from(columns[c]))) for c in chosen]
    if kind == "update":
        return Write("update", name, tuple(cells), draw(conditions(name)))
    if name in KEYS:
        cells.insert(0, ("code", draw(st.sampled_from(KEYS[name]))))
    else:
        source, target = ENDS[name]
        cells.insert(0, ("src", str(draw(st.sampled_from(KEYS[source])))))
        cells.insert(1, ("dst", str(draw(st.sampled_from(KEYS[target])))))
    return Write(kind, name, tuple(cells))


@st.composite
def drops(draw: st.DrawFn) -> Drop:
    name = draw(st.sampled_from(["P", "Q", "E", "F", "G"]))
    return Drop(name, draw(conditions(name)))


SEED = [
    *(Write("insert", "P", (("code", c), ("n", n))) for n, c in enumerate("abc", 1)),
    *(Write("insert", "Q", (("code", c), ("n", c))) for c in (1, 2, 3)),
    *(Write("insert", "E", (("src", s), ("dst", d))) for s, d in ("ab", "bc", "ca", "aa", "ab")),
    *(Write("insert", "F", (("src", s), ("dst", d))) for s, d in ("a1", "a2", "b3")),
    *(Write("insert", "G", (("src", s), ("dst", d), ("n", 1))) for s, d in ("12", "23", "31")),
]
"""A graph in which most statements meet something."""

mutations = st.lists(writes(), min_size=1, max_size=5) | st.lists(drops(), min_size=1, max_size=3)


def run(graph: omnigraph.Graph, text: str) -> MutationOutcome:
    (query,) = compile_queries(text, graph.catalog)
    assert isinstance(query.body, typed.Mutation)
    return run_mutation(graph._repository, lambda _: (query, VALUES), branch="main")


def canonical(rows: dict[str, list[Row]]) -> dict[str, list[str]]:
    """Rows to compare: edges without a key have an id of their own that no model can foretell."""
    return {
        name: sorted(
            str(sorted((k, v) for k, v in r.items() if k != "id" or name not in ("E", "G")))
            for r in found
        )
        for name, found in rows.items()
    }


def removed_from(before: Model, after: Model) -> tuple[int, int]:
    gone = {t: len(before.rows[t]) - len(after.rows[t]) for t in COLUMNS}
    return sum(gone[t] for t in KEYS), sum(gone[t] for t in ENDS)


@settings(max_examples=examples(30), suppress_health_check=list(HealthCheck))
@given(st.booleans(), st.lists(mutations, min_size=1, max_size=10))
def test_mutations_do_what_a_dict_does(seeded: bool, steps: list[list[Write] | list[Drop]]) -> None:
    with TemporaryDirectory() as folder, omnigraph.init(f"{folder}/g", SCHEMA) as graph:
        model = Model()
        for step in [SEED, *steps] if seeded else steps:
            model = check_step(graph, model, step)
        with omnigraph.open(graph.uri) as fresh:
            assert canonical(stored(fresh)) == canonical(model.rows)


def check_step(graph: omnigraph.Graph, model: Model, step: list[Write] | list[Drop]) -> Model:
    text = "\n".join(s.text for s in step)
    after = copy.deepcopy(model)
    met = {"node": 0, "edge": 0}
    for statement in step:
        count = statement.apply(after)
        met["node" if statement.type_name in KEYS else "edge"] += count or 0
    commits = len(graph.commits())
    if after.dangling():
        try:
            run(graph, text)
        except omnigraph.ConstraintError as error:
            assert "not found in" in str(error), text
        else:
            raise AssertionError(f"a dangling edge was taken: {text}")
        assert canonical(stored(graph)) == canonical(model.rows)
        return model
    outcome = run(graph, text)
    if isinstance(step[0], Drop):
        expected = removed_from(model, after)
    else:
        expected = met["node"], met["edge"]
    assert (outcome.affected_nodes, outcome.affected_edges) == expected, text
    assert canonical(stored(graph)) == canonical(after.rows), text
    changed = canonical(after.rows) != canonical(model.rows)
    assert (outcome.receipt.commit is not None) == changed, text
    assert len(graph.commits()) == commits + changed, text
    return after


def stored(graph: omnigraph.Graph) -> dict[str, list[Row]]:
    snapshot = graph.snapshot()
    return {name: snapshot.rows(name).to_dicts() for name in COLUMNS}
