"""Any schema into any other: identity, the plan's completeness, and that nothing is left to do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from schema_texts import schema_texts

from omnigraph.errors import SchemaError
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType, InterfaceType
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.ir import from_ir, to_ir
from omnigraph.schema.migrate import (
    Desired,
    DropMode,
    Effect,
    SchemaPlan,
    Step,
    StepKind,
    make_plan,
    resolve,
)
from omnigraph.schema.migrate.column_changes import column_changes
from omnigraph.schema.migrate.facts import key_text, rules_of
from omnigraph.schema.migrate.type_changes import TypeChange, type_change


def planned(before: str, after: str, **options: Any) -> tuple[Catalog, SchemaPlan]:
    accepted = compile_schema(before)
    return accepted, make_plan(accepted, before, resolve(accepted, after), **options)


# -- a model of what steps mean ------------------------------------------------------------------


def shape(catalog: Catalog) -> dict[int, dict[str, Any]]:
    """A catalog as plain data by stable number; what every step changes is one entry."""
    nodes = {n.name: n.id for n in catalog.nodes.values()}
    found: dict[int, dict[str, Any]] = {}
    owners: list[GraphType | InterfaceType] = [*catalog.interfaces.values(), *catalog.types()]
    for owner in owners:
        kind = owner.kind if isinstance(owner, GraphType) else "interface"
        entry: dict[str, Any] = {"kind": kind, "name": owner.name, "properties": {}}
        for p in owner.properties:
            entry["properties"][p.id] = {
                "name": p.name,
                "type": str(replace(p.type, nullable=False)),
                "nullable": p.type.nullable,
                "embed": p.embed is not None,
                "texts": (p.description, p.annotations),
            }
        if isinstance(owner, GraphType):
            entry["rules"] = {
                (r.word, r.members, r.low, r.high, r.pattern) for r in rules_of(owner)
            }
            entry["key"] = key_text(owner)
            entry["texts"] = (owner.description, owner.instruction, owner.annotations)
            entry["implements"] = frozenset(getattr(owner, "implements", ()))
        if isinstance(owner, EdgeType):
            entry["ends"] = (nodes[owner.source], nodes[owner.target])
            entry["card"] = owner.cardinality
        found[owner.id] = entry
    return found


def carried_out(accepted: Catalog, desired: Catalog, steps: tuple[Step, ...]) -> dict[int, Any]:
    """The accepted catalog after the steps: each may only touch what it is about."""
    state, wanted = shape(accepted), shape(desired)
    fields = {
        StepKind.RENAME_TYPE: "name",
        StepKind.ADD_CONSTRAINT: "rules",
        StepKind.DROP_CONSTRAINT: "rules",
        StepKind.CHANGE_CARDINALITY: "card",
        StepKind.CHANGE_ENDPOINTS: "ends",
        StepKind.CHANGE_INTERFACES: "implements",
        StepKind.UPDATE_TYPE_METADATA: "texts",
    }
    own_fields = {
        StepKind.RENAME_PROPERTY: "name",
        StepKind.CHANGE_PROPERTY_TYPE: "type",
        StepKind.EXTEND_ENUM: "type",
        StepKind.NARROW_ENUM: "type",
        StepKind.CHANGE_NULLABILITY: "nullable",
        StepKind.CHANGE_EMBED: "embed",
        StepKind.UPDATE_PROPERTY_METADATA: "texts",
    }
    for step in steps:
        kind = step.change or step.kind
        if kind is StepKind.UPDATE_SOURCE:
            continue
        if kind is StepKind.ADD_TYPE:
            state[step.type_id] = wanted[step.type_id]
        elif kind is StepKind.DROP_TYPE:
            del state[step.type_id]
        elif kind is StepKind.ADD_PROPERTY:
            properties = state[step.type_id]["properties"]
            properties[step.property_id] = wanted[step.type_id]["properties"][step.property_id]
        elif kind is StepKind.DROP_PROPERTY:
            del state[step.type_id]["properties"][step.property_id]
        elif kind in own_fields:
            name, own = own_fields[kind], state[step.type_id]["properties"][step.property_id]
            own[name] = wanted[step.type_id]["properties"][step.property_id][name]
        else:
            name = fields[kind]
            if step.before is not None and "@key" in step.before + str(step.after):
                name = "key"
            if step.after is not None and "@key" in step.after:
                name = "key"
            state[step.type_id][name] = wanted[step.type_id][name]
    return state


# -- laws ----------------------------------------------------------------------------------------


@given(schema_texts(), schema_texts())
def test_the_steps_are_the_whole_difference(before: str, after: str) -> None:
    accepted, plan = planned(before, after)
    desired = plan.desired.catalog
    assert carried_out(accepted, desired, plan.steps) == shape(desired)
    # What was reached needs no further step, and can be stored.
    assert not make_plan(desired, after, resolve(desired, after))
    assert from_ir(to_ir(desired, after)) == (desired, after)


@given(schema_texts(), schema_texts(), st.integers(0, 1000))
def test_identity_is_by_name_and_numbers_are_never_given_twice(
    before: str, after: str, skipped: int
) -> None:
    accepted = compile_schema(before)
    desired = resolve(accepted, after, numbers_from=accepted.next_id + skipped)
    assert desired.catalog.next_id >= accepted.next_id
    old = {t.table_key: t for t in accepted.types()}
    for graph_type in desired.catalog.types():
        was = old.get(graph_type.table_key)
        if was is None:
            assert graph_type.id >= accepted.next_id + skipped
        else:
            assert (graph_type.id, graph_type.incarnation) == (was.id, was.incarnation)
            for p in graph_type.properties:
                own = was.by_name.get(p.name)
                assert p.id == own.id if own else p.id >= accepted.next_id + skipped
    if desired.numbers_used:
        assert desired.catalog.next_id == desired.numbers_from + desired.numbers_used


@given(schema_texts())
def test_a_schema_into_itself_is_nothing(text: str) -> None:
    accepted, plan = planned(text, text)
    assert plan.steps == ()
    assert plan.desired.catalog == accepted
    assert str(plan) == "nothing to change"


@given(schema_texts(), schema_texts())
def test_empty_types_may_change_in_any_way_and_lose_nothing(before: str, after: str) -> None:
    _, plan = planned(before, after, rows={})
    assert plan.supported
    assert not plan.destructive


@given(schema_texts(), schema_texts())
def test_columns_follow_the_types(before: str, after: str) -> None:
    accepted = compile_schema(before)
    desired: Desired = resolve(accepted, after)
    old = {t.id: t for t in accepted.types()}
    for now in desired.catalog.types():
        was = old.get(now.id)
        if was is None:
            continue
        changes = column_changes(was, now, desired.backfills)
        stored = [p.name for p in was.properties if p.name not in was.system_columns]
        left = [changes.renamed.get(n, n) for n in stored if n not in changes.dropped]
        new = [f.name for f in changes.empty] + [c.field.name for c in changes.made]
        wanted = [p.name for p in now.properties if p.name not in now.system_columns]
        assert sorted(left + new) == sorted(wanted)


# -- cases ---------------------------------------------------------------------------------------


def test_a_hint_keeps_identity_and_a_drop_ends_it() -> None:
    before = "node A { k: String @key  x: I32? }"
    accepted = compile_schema(before)
    renamed = resolve(
        accepted, 'node B @rename_from("A") { k: String @key  y: I32? @rename_from("x") }'
    ).catalog
    assert renamed.nodes["B"].table_path == accepted.nodes["A"].table_path
    assert renamed.nodes["B"].by_name["y"].id == accepted.nodes["A"].by_name["x"].id
    gone = resolve(renamed, "node C { k: String @key }").catalog
    back = resolve(gone, "node B { k: String @key }").catalog
    assert back.nodes["B"].id not in (renamed.nodes["B"].id, gone.nodes["C"].id)
    assert back.nodes["B"].incarnation > gone.next_id - 1
    assert back.next_id > gone.next_id > renamed.next_id


def test_composite_keys_keep_the_order_of_their_members_over_renames() -> None:
    accepted = compile_schema("node A { a: String  b: String  @key(a, b) }")
    after = 'node A { z: String @rename_from("a")  b: String  @key(b, z) }'
    assert resolve(accepted, after).catalog.nodes["A"].key == ("z", "b")


def test_without_counting_rows_a_required_property_is_refused_and_with_none_it_is_not() -> None:
    before, after = "node A { k: String @key }", "node A { k: String @key  n: I32 }"
    assert not planned(before, after)[1].supported
    assert planned(before, after, rows={})[1].supported
    _, plan = planned(before, after, rows={1: 1})
    assert plan.unsupported[0].reason is not None
    assert plan.unsupported[0].reason.startswith("1 row has no value")
    assert plan.steps[0].to_dict()["reason"].startswith("[OG-MF-103] ")


def test_a_hard_drop_says_so() -> None:
    _, plan = planned(
        "node A { k: String @key }\nnode B { k: String @key }",
        "node A { k: String @key }",
        drop_mode=DropMode.HARD,
        rows={1: 5, 4: 12},
    )
    (step,) = plan.steps
    assert (step.kind, step.type_name, step.rows) == ("drop_type", "B", 12)
    assert (step.effect, step.mode) == (Effect.HIDE, DropMode.HARD)
    assert "12 rows; deleted at once" in str(plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@backfill", "needs a value"),
        ('@backfill("x")', "holds no value of `I32`"),
        ("@backfill(1.5)", "holds no value of `I32`"),
        ("@backfill(1, why = 2)", "has no argument `why`"),
        ("@backfill(1) @backfill(2)", "stands here twice"),
    ],
)
def test_a_backfill_is_checked_with_the_text(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        compile_schema(f"node A {{ k: String @key  n: I32 {text} }}")


def test_a_backfill_is_no_part_of_the_catalog() -> None:
    with_hint = compile_schema("node A { k: String @key  n: I32 @backfill(-1) }")
    assert with_hint == compile_schema("node A { k: String @key  n: I32 }")


def test_widening_is_exact() -> None:
    kinds = compile_schema(
        "node A { a: I32  b: I64  c: U32  d: U64  e: F32  f: F64  g: [I32]  h: Date }"
    ).nodes["A"]
    types = {p.name: p.type for p in kinds.properties}
    wider = {
        (x, y)
        for x in types
        for y in types
        if type_change(types[x], types[y]) is TypeChange.WIDENED
    }
    assert wider == {("a", "b"), ("a", "f"), ("c", "d"), ("c", "b"), ("c", "f"), ("e", "f")}
