"""The three-way decision: the whole truth table, and many entities against one at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.branch.merge.images import MergeImages, MergeProperty
from omnigraph.branch.merge.threeway import (
    BASE,
    OURS,
    THEIRS,
    Contested,
    Granularity,
    assemble,
    three_way,
    virtual,
)

PROPERTIES = (
    MergeProperty(name="endpoints", columns=("src", "dst")),
    MergeProperty(name="age", columns=("age",)),
    MergeProperty(name="tags", columns=("tags",)),
)
SCHEMA = pa.schema(
    [
        ("src", pa.string()),
        ("dst", pa.string()),
        ("age", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
UNKNOWN = object()
Entity = dict[str, Any] | None
"""Values by property, None when the entity is absent."""


def images(entities: list[Entity]) -> MergeImages:
    """The states, with ``UNKNOWN`` where a virtual base does not know."""
    rows, unknown = [], {p.name: np.zeros(len(entities), bool) for p in PROPERTIES}
    for i, entity in enumerate(entities):
        row: dict[str, Any] = {}
        for name, value in (entity or {}).items():
            if value is UNKNOWN:
                unknown[name][i] = True
            elif name == "endpoints":
                row["src"], row["dst"] = value
            else:
                row[name] = value
        rows.append(row)
    present = np.array([e is not None for e in entities], bool)
    return MergeImages(
        present=present, rows=pa.Table.from_pylist(rows, schema=SCHEMA), unknown=unknown
    )


def entities(found: MergeImages) -> list[Entity]:
    result: list[Entity] = []
    for i, row in enumerate(found.rows.to_pylist()):
        if not found.present[i]:
            result.append(None)
            continue
        entity = {"endpoints": (row["src"], row["dst"]), "age": row["age"], "tags": row["tags"]}
        for name, mask in found.unknown.items():
            if mask[i]:
                entity[name] = UNKNOWN
        result.append(entity)
    return result


def spelled(value: Any) -> Any:
    """A value such that ``==`` means the same value: floats by their bits, null only null."""
    return np.float64(value).tobytes() if isinstance(value, float) else value


def text(entity: Entity) -> str:
    """Signs of zeros included."""
    return repr(sorted(entity.items()) if entity is not None else None)


def equal(a: Entity, b: Entity, name: str) -> bool:
    if a is None or b is None or a[name] is UNKNOWN or b[name] is UNKNOWN:
        return False
    return spelled(a[name]) == spelled(b[name])


def naive(
    base: Entity, ours: Entity, theirs: Entity, granularity: str
) -> tuple[Entity, Contested, set[str]]:
    """One entity, as the table of the documentation says it."""
    names = [p.name for p in PROPERTIES]

    def changed(side: Entity) -> bool:
        if (side is None) or (base is None):
            return (side is None) != (base is None)
        return not all(equal(base, side, n) for n in names)

    def agree() -> bool:
        if ours is None or theirs is None:
            return ours is theirs
        return all(equal(ours, theirs, n) for n in names)

    if agree() or not changed(theirs):
        return ours, Contested.NO, set()
    if not changed(ours):
        return theirs, Contested.NO, set()
    if ours is None or theirs is None:
        return ours, Contested.DELETE_VS_UPDATE, set()
    differing = {n for n in names if not equal(ours, theirs, n)}
    if base is None:
        return ours, Contested.DIVERGENT_INSERT, differing
    if granularity == "row":
        return ours, Contested.DIVERGENT_UPDATE, differing
    result, disputed = dict(ours), set()
    for name in differing:
        if equal(base, ours, name):
            result[name] = theirs[name]
        elif not equal(base, theirs, name):
            disputed.add(name)
    return result, Contested.DIVERGENT_UPDATE if disputed else Contested.NO, disputed


def check(states: list[tuple[Entity, Entity, Entity]], granularity: Granularity) -> None:
    base, ours, theirs = (images([s[i] for s in states]) for i in range(3))
    decided = three_way(PROPERTIES, base, ours, theirs, granularity)
    found = entities(assemble(PROPERTIES, decided, (ours, theirs, base)))
    for i, state in enumerate(states):
        expected, kind, disputed = naive(*state, granularity)
        assert decided.contested[i] == kind, state
        assert {n for n, mask in decided.disputed.items() if mask[i]} == disputed, state
        if kind is Contested.NO:
            assert text(found[i]) == text(expected), state
    assert decided.conflicts.tolist() == np.flatnonzero(decided.contested).tolist()


A: Entity = {"endpoints": ("a", "b"), "age": 1.0, "tags": ["x"]}
AGE: Entity = {**A, "age": 2.0}
AGE_OTHER: Entity = {**A, "age": 3.0}
TAGS: Entity = {**A, "tags": []}
BOTH: Entity = {**A, "age": 2.0, "tags": []}
MOVED: Entity = {**A, "endpoints": ("a", "c")}
MOVED_BACK: Entity = {**A, "endpoints": ("b", "b")}
NULL: Entity = {**A, "age": None, "tags": None}
STATES: list[Entity] = [None, A, AGE, AGE_OTHER, TAGS, BOTH, MOVED, MOVED_BACK, NULL]


@pytest.mark.parametrize("granularity", list(Granularity))
def test_every_combination_of_states(granularity: Granularity) -> None:
    check(list(product(STATES, STATES, STATES)), granularity)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "result", "kind", "disputed"),
    [
        (A, A, A, A, Contested.NO, []),
        (A, AGE, A, AGE, Contested.NO, []),
        (A, A, AGE, AGE, Contested.NO, []),
        (A, AGE, AGE, AGE, Contested.NO, []),
        (A, AGE, TAGS, BOTH, Contested.NO, []),
        (A, AGE, AGE_OTHER, None, Contested.DIVERGENT_UPDATE, ["age"]),
        (A, BOTH, AGE_OTHER, None, Contested.DIVERGENT_UPDATE, ["age"]),
        (A, MOVED, AGE, {**MOVED, "age": 2.0}, Contested.NO, []),
        (A, MOVED, MOVED_BACK, None, Contested.DIVERGENT_UPDATE, ["endpoints"]),
        (A, None, A, None, Contested.NO, []),
        (A, A, None, None, Contested.NO, []),
        (A, None, None, None, Contested.NO, []),
        (A, None, AGE, None, Contested.DELETE_VS_UPDATE, []),
        (A, AGE, None, None, Contested.DELETE_VS_UPDATE, []),
        (None, A, None, A, Contested.NO, []),
        (None, None, A, A, Contested.NO, []),
        (None, A, A, A, Contested.NO, []),
        (None, A, AGE, None, Contested.DIVERGENT_INSERT, ["age"]),
        (None, BOTH, A, None, Contested.DIVERGENT_INSERT, ["age", "tags"]),
        (None, None, None, None, Contested.NO, []),
        ({**A, "age": UNKNOWN}, AGE, AGE, AGE, Contested.NO, []),
        ({**A, "age": UNKNOWN}, AGE, A, None, Contested.DIVERGENT_UPDATE, ["age"]),
        ({**A, "age": UNKNOWN}, A, None, None, Contested.DELETE_VS_UPDATE, []),
        ({**A, "age": UNKNOWN}, AGE, BOTH, BOTH, Contested.NO, []),
    ],
)
def test_the_truth_table_by_property(
    base: Entity, ours: Entity, theirs: Entity, result: Entity, kind: int, disputed: list[str]
) -> None:
    states = [images([e]) for e in (base, ours, theirs)]
    decided = three_way(PROPERTIES, *states, Granularity.PROPERTY)
    assert decided.contested.tolist() == [kind]
    assert [n for n, mask in decided.disputed.items() if mask[0]] == disputed
    if kind is Contested.NO:
        found = assemble(PROPERTIES, decided, (states[1], states[2], states[0]))
        assert entities(found) == [result]


def test_two_properties_of_one_row_conflict_only_by_row() -> None:
    states = [images([e]) for e in (A, AGE, TAGS)]
    decided = three_way(PROPERTIES, *states, Granularity.ROW)
    assert decided.contested.tolist() == [Contested.DIVERGENT_UPDATE]
    assert [n for n, mask in decided.disputed.items() if mask[0]] == ["age", "tags"]


VALUES = {
    "endpoints": st.tuples(st.sampled_from("ab"), st.sampled_from("ab")),
    "age": st.sampled_from([None, 0.0, -0.0, 1.0]),
    "tags": st.sampled_from([None, [], [""], ["x"], ["x", "x"]]),
}
ENTITIES = st.none() | st.fixed_dictionaries(VALUES)
MAYBE = st.none() | st.fixed_dictionaries({n: v | st.just(UNKNOWN) for n, v in VALUES.items()})
TRIPLES = st.lists(st.tuples(MAYBE, ENTITIES, ENTITIES), max_size=12)


@given(TRIPLES, st.sampled_from(list(Granularity)))
def test_many_entities_at_once_are_decided_as_each_alone(
    states: list[tuple[Entity, Entity, Entity]], granularity: Granularity
) -> None:
    check(states, granularity)


@given(TRIPLES)
def test_the_sides_are_alike(states: list[tuple[Entity, Entity, Entity]]) -> None:
    base, ours, theirs = (images([s[i] for s in states]) for i in range(3))
    one = three_way(PROPERTIES, base, ours, theirs, Granularity.PROPERTY)
    other = three_way(PROPERTIES, base, theirs, ours, Granularity.PROPERTY)
    assert one.contested.tolist() == other.contested.tolist()
    settled = one.contested == Contested.NO
    left = entities(assemble(PROPERTIES, one, (ours, theirs, base)))
    right = entities(assemble(PROPERTIES, other, (theirs, ours, base)))
    assert [text(e) for e, ok in zip(left, settled, strict=True) if ok] == [
        text(e) for e, ok in zip(right, settled, strict=True) if ok
    ]


def test_two_ancestors_that_disagree_make_an_unknown() -> None:
    base, one, other = images([A, A, A, A]), images([AGE, AGE, AGE, A]), None
    other = images([AGE_OTHER, A, TAGS, A])
    made = virtual(PROPERTIES, base, one, other)
    assert entities(made) == [{**A, "age": UNKNOWN}, AGE, BOTH, A]


def test_an_ancestor_that_deleted_what_the_other_changed_makes_all_of_it_unknown() -> None:
    made = virtual(PROPERTIES, images([A, A]), images([AGE, A]), images([None, None]))
    assert made.doubtful.tolist() == [True, False]
    assert made.present.tolist()[1] is False
    for ours, theirs, kind in (
        (A, A, Contested.NO),
        (None, None, Contested.NO),
        (A, AGE, Contested.DIVERGENT_UPDATE),
        (A, None, Contested.DELETE_VS_UPDATE),
        (None, AGE, Contested.DELETE_VS_UPDATE),
    ):
        doubtful = made.take(np.array([0]))
        decided = three_way(
            PROPERTIES, doubtful, images([ours]), images([theirs]), Granularity.PROPERTY
        )
        assert decided.contested.tolist() == [kind]


@given(TRIPLES)
def test_an_ancestor_merged_with_itself_stays_what_it_is(
    states: list[tuple[Entity, Entity, Entity]],
) -> None:
    one = images([s[1] for s in states])
    made = virtual(PROPERTIES, images([s[0] for s in states]), one, one)
    assert [text(e) for e in entities(made)] == [text(e) for e in entities(one)]
    assert not made.doubtful.any()


def test_numbers_of_states() -> None:
    assert (OURS, THEIRS, BASE) == (0, 1, 2)
