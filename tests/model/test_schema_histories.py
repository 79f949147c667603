"""Any history of schema changes, writes and branches against plain dicts; the past never changes."""

from __future__ import annotations

import copy
from itertools import count
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import omnigraph
from support.examples import examples

VALUES = {
    "I32": st.integers(-5, 5),
    "I64": st.integers(-(2**40), 2**40),
    "F64": st.sampled_from([0.5, -1.25, 3.0]),
    "String": st.sampled_from(["x", "y", ""]),
    "[I32]": st.lists(st.integers(0, 3), max_size=2),
}
WIDER = {"I32": "I64"}
Schema = dict[str, dict[str, str]]
Rows = dict[str, dict[str, dict[str, Any]]]


def text_of(schema: Schema, hints: dict[str, str] | None = None) -> str:
    """A schema text; hints by ``Type`` or ``Type.property``."""
    found, said = hints or {}, []
    for name, properties in schema.items():
        body = "  ".join(
            f"{p}: {kind}? {found.get(f'{name}.{p}', '')}" for p, kind in properties.items()
        )
        said.append(f"node {name} {found.get(name, '')} {{ k: String @key  {body} }}")
    return "\n".join(said) + "\n"


class SchemaHistory(RuleBasedStateMachine):
    """One graph, two branches, each with a schema and rows of its own."""

    folder: str
    numbers = count()

    @initialize()
    def begin(self) -> None:
        schema: Schema = {"A": {"a": "I32", "b": "String"}}
        self.graph = omnigraph.init(f"{self.folder}/{next(self.numbers)}", text_of(schema))
        self.names = count()
        self.schemas: dict[str, Schema] = {"main": schema}
        self.rows: dict[str, Rows] = {"main": {"A": {}}}
        self.past: dict[str, Rows] = {}

    def teardown(self) -> None:
        if hasattr(self, "graph"):
            self.graph.close()

    def _branch(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.schemas)))

    def _type(self, data: st.DataObject, branch: str) -> str:
        return data.draw(st.sampled_from(sorted(self.schemas[branch])))

    def _apply(self, branch: str, schema: Schema, hints: dict[str, str] | None = None) -> None:
        done = self.graph.schema_apply(text_of(schema, hints), branch=branch, confirm=True)
        assert done.applied
        self.schemas[branch] = schema
        self._remember(branch)

    def _remember(self, branch: str) -> None:
        commit = self.graph.snapshot(branch).commit.id
        self.past[commit] = copy.deepcopy(self.rows[branch])

    # -- writes ----------------------------------------------------------------------------------

    @rule(data=st.data())
    def put(self, data: st.DataObject) -> None:
        branch = self._branch(data)
        name = self._type(data, branch)
        key = data.draw(st.sampled_from(["r1", "r2", "r3"]))
        row = {
            p: data.draw(st.none() | VALUES[kind]) for p, kind in self.schemas[branch][name].items()
        }
        record = {"type": name, "data": {"k": key, **row}}
        if self.graph.load([record], mode="merge", branch=branch).commit is not None:
            self.rows[branch][name][key] = row
            self._remember(branch)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        branch = self._branch(data)
        name = self._type(data, branch)
        key = data.draw(st.sampled_from(["r1", "r2"]))
        self.graph.mutate(f'delete {name} where k = "{key}"', branch=branch)
        self.rows[branch][name].pop(key, None)
        self._remember(branch)

    # -- schema changes --------------------------------------------------------------------------

    @rule(data=st.data(), fill=st.booleans())
    def add_property(self, data: st.DataObject, fill: bool) -> None:
        branch = self._branch(data)
        name = self._type(data, branch)
        schema = copy.deepcopy(self.schemas[branch])
        kind = data.draw(st.sampled_from(sorted(VALUES)))
        # Also names that were used before: they are other properties then.
        new = data.draw(st.sampled_from(["a", "b", "c", "d"]))
        if new in schema[name]:
            return
        schema[name][new] = kind
        value = 7 if fill and kind in ("I32", "I64") else None
        for row in self.rows[branch][name].values():
            row[new] = value
        hint = {} if value is None else {f"{name}.{new}": "@backfill(7)"}
        self._apply(branch, schema, hint)

    @rule(data=st.data())
    def copy_property(self, data: st.DataObject) -> None:
        branch = self._branch(data)
        name = self._type(data, branch)
        schema = copy.deepcopy(self.schemas[branch])
        if not schema[name] or len(schema[name]) > 4:
            return
        old = data.draw(st.sampled_from(sorted(schema[name])))
        new = f"c{next(self.names)}"
        schema[name][new] = schema[name][old]
        for row in self.rows[branch][name].values():
            row[new] = row[old]
        self._apply(branch, schema, {f"{name}.{new}": f"@backfill({old})"})

    @rule(data=st.data(), widen=st.booleans())
    def rename_property(self, data: st.DataObject, widen: bool) -> None:
        branch = self._branch(data)
        name = self._type(data, branch)
        own = self.schemas[branch][name]
        if not own:
            return
        old, new = data.draw(st.sampled_from(sorted(own))), f"p{next(self.names)}"
        schema = copy.deepcopy(self.schemas[branch])
        kind = schema[name].pop(old)
        schema[name][new] = WIDER.get(kind, kind) if widen else kind
        for row in self.rows[branch][name].values():
            row[new] = row.pop(old)
        self._apply(branch, schema, {f"{name}.{new}": f'@rename_from("{old}")'})

    @rule(data=st.data())
    def drop_property(self, data: st.DataObject) -> None:
        branch = self._branch(data)
        name = self._type(data, branch)
        schema = copy.deepcopy(self.schemas[branch])
        if not schema[name]:
            return
        old = data.draw(st.sampled_from(sorted(schema[name])))
        del schema[name][old]
        for row in self.rows[branch][name].values():
            del row[old]
        self._apply(branch, schema)

    @rule(data=st.data(), name=st.sampled_from(["A", "B", "C"]))
    def add_type(self, data: st.DataObject, name: str) -> None:
        branch = self._branch(data)
        if name in self.schemas[branch]:
            return
        self.rows[branch][name] = {}
        self._apply(branch, {**copy.deepcopy(self.schemas[branch]), name: {"a": "I32"}})

    @rule(data=st.data())
    def drop_type(self, data: st.DataObject) -> None:
        branch = self._branch(data)
        if len(self.schemas[branch]) < 2:
            return
        name = self._type(data, branch)
        schema = copy.deepcopy(self.schemas[branch])
        del schema[name], self.rows[branch][name]
        self._apply(branch, schema)

    @rule(data=st.data())
    def rename_type(self, data: st.DataObject) -> None:
        branch = self._branch(data)
        old, new = self._type(data, branch), f"T{next(self.names)}"
        schema = copy.deepcopy(self.schemas[branch])
        schema[new] = schema.pop(old)
        self.rows[branch][new] = self.rows[branch].pop(old)
        self._apply(branch, schema, {new: f'@rename_from("{old}")'})

    # -- the rest --------------------------------------------------------------------------------

    @precondition(lambda self: len(self.schemas) == 1)
    @rule()
    def fork(self) -> None:
        self.graph.branches.create("dev")
        self.schemas["dev"] = copy.deepcopy(self.schemas["main"])
        self.rows["dev"] = copy.deepcopy(self.rows["main"])

    @rule()
    def reopen(self) -> None:
        uri = self.graph.uri
        self.graph.close()
        self.graph = omnigraph.open(uri)

    @invariant()
    def every_branch_shows_its_rows(self) -> None:
        for branch, rows in getattr(self, "rows", {}).items():
            assert shown(self.graph.snapshot(branch)) == rows
            for name in rows:
                asked = self.graph.query(f"match {{ $x: {name} }} return {{ $x.k }}", branch=branch)
                assert len(asked) == len(rows[name])

    @invariant()
    def the_past_is_as_it_was(self) -> None:
        for commit, rows in list(getattr(self, "past", {}).items())[-4:]:
            assert shown(self.graph.snapshot(commit=commit)) == rows


def shown(view: omnigraph.SnapshotView) -> Rows:
    found: Rows = {}
    for name in view.catalog.nodes:
        rows = view.rows(name).to_dicts()
        found[name] = {r["k"]: {p: v for p, v in r.items() if p not in ("id", "k")} for r in rows}
    return found


@pytest.mark.hypothesis
def test_schema_histories(tmp_path) -> None:
    machine = type("Machine", (SchemaHistory,), {"folder": str(tmp_path)})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(12), stateful_step_count=20, deadline=None)
    )
