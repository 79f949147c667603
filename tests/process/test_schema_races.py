"""Schema changes and writers in many processes: no change and no row is lost, no rule is broken."""

from __future__ import annotations

import pytest

import omnigraph
from support.evolvers import GROWN, START
from support.racers import Racer, run_racers

TIMES = 8


def racer(kind: str, uri: str, name: str, count: int = TIMES, type_name: str = "Person") -> Racer:
    return Racer(kind=kind, uri=uri, name=name, count=count, type_name=type_name)


@pytest.mark.xdist_group("races")
def test_a_type_is_renamed_and_cast_under_its_writers(store_root: str) -> None:
    graph = omnigraph.init(store_root, START)
    graph.load([{"type": "Person", "data": {"name": "p0", "age": 1}}])
    crowd = [racer("append", store_root, f"w{i}") for i in range(3)]
    results = run_racers([*crowd, racer("grow", store_root, "schema", 1)])
    assert results[-1].errors == ()
    # Writers know the type by its old name: from the change on, and only then, they are refused.
    assert {e for r in results[:-1] for e in r.errors} <= {"input", "type_not_found"}
    with omnigraph.open(store_root) as fresh:
        rows = fresh.snapshot().rows("Human").to_dicts()
        assert len(rows) == 1 + sum(r.done for r in results[:-1])
        assert {r["country"] for r in rows} == {"no"}
        assert fresh.schema == GROWN
        commits = fresh.commits()
        at = [c.kind for c in commits].index("schema_apply")
        assert {c.kind for c in commits[:at]} == set(), "nobody wrote under the old schema later"


@pytest.mark.xdist_group("races")
def test_no_schema_change_is_lost(store_root: str) -> None:
    graph = omnigraph.init(store_root, START)
    graph.load([{"type": "City", "data": {"name": "oslo"}}])
    crowd = [racer("extend", store_root, f"x{i}", 3, "City") for i in range(3)]
    results = run_racers([*crowd, racer("append", store_root, "w")])
    assert [r.errors for r in results] == [()] * 4
    with omnigraph.open(store_root) as fresh:
        (row,) = fresh.snapshot().rows("City").to_dicts()
        assert {k: v for k, v in row.items() if k.startswith("x")} == {
            f"x{i}_{n}": n for i in range(3) for n in range(3)
        }
        numbers = [p.id for t in fresh.catalog.types() for p in t.properties]
        assert len(set(numbers)) == len(numbers)
        assert fresh.snapshot().count("Person") == TIMES


@pytest.mark.xdist_group("races")
def test_a_new_rule_and_a_row_that_breaks_it_never_meet(store_root: str) -> None:
    """Appended people have no age: either they come first and the rule is refused, or the rule
    comes first and they are."""
    omnigraph.init(store_root, START).close()
    results = run_racers(
        [racer("append", store_root, "w", 3), racer("insist", store_root, "schema", 1)]
    )
    (note,) = results[1].notes
    with omnigraph.open(store_root) as fresh:
        count = fresh.snapshot().count("Person")
        if note == "required":
            assert (count, results[0].errors) == (0, ("constraint",) * 3)
        else:
            assert (count, results[0].errors) == (3, ())
            assert fresh.schema == START
