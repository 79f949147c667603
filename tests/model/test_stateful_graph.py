"""Any history of loads, maintenance, crashes, stale handles and reopens agrees with plain dicts."""

from __future__ import annotations

import io
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from graph_model import SCHEMA, GraphModel, RefusedError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import omnigraph
from omnigraph.failpoints import ArmedAction, FailPoint, FailPointError, armed
from omnigraph.storage import compact, staging
from support.examples import examples

NAMES = st.sampled_from(["a", "b", "c", "d"])
CITIES = st.sampled_from(["x", "y", "z"])
NUMBERS = st.none() | st.integers(-5, 5)
PEOPLE = st.builds(
    lambda name, age: {"type": "Person", "data": {"name": name, "age": age}}, NAMES, NUMBERS
)
OTHERS = st.builds(lambda n: {"type": "Person", "data": {"name": f"p{n}"}}, st.integers(0, 9))
TOWNS = st.builds(lambda name: {"type": "City", "data": {"name": name}}, CITIES)
KNOWS = st.builds(
    lambda i, a, b, since: {"edge": "Knows", "from": a, "to": b, "data": {"id": i, "since": since}},
    st.sampled_from(["k1", "k2", "k3", "k4", "k5"]),
    NAMES,
    NAMES,
    NUMBERS,
)
LIKES = st.builds(lambda a, b: {"edge": "Likes", "from": a, "to": b}, NAMES, CITIES)
RECORDS = st.lists(PEOPLE | TOWNS | KNOWS | LIKES, max_size=6)
MODES = st.sampled_from(["append", "merge", "overwrite"])
BEFORE = [
    FailPoint.STAGE_AFTER_COMMIT,
    FailPoint.STAGE_AFTER_PIN,
    FailPoint.WRITE_INTENT_WRITTEN,
    FailPoint.WRITE_ALL_STAGED,
    FailPoint.PUBLISH_BEFORE_COMMIT,
]


class StoreAgreesWithModel(RuleBasedStateMachine):
    """Two handles on one graph, one of them usually stale, beside a model."""

    @initialize(tail=st.sampled_from([2, 4, 48]), cache=st.sampled_from([1, 1 << 20]))
    def begin(self, tail: int, cache: int) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(compact, "TAIL_MAX", tail)
        self.patch.setattr(staging, "CACHE_BYTES_MAX", cache)
        self.folder = Path(tempfile.mkdtemp())
        self.model = GraphModel()
        self.handles = [
            omnigraph.init(self.folder / "g", SCHEMA),
            omnigraph.open(self.folder / "g"),
        ]

        # Most histories start with somebody there, else nearly every edge would dangle.
        people = [{"type": "Person", "data": {"name": n}} for n in "abc"]
        towns = [{"type": "City", "data": {"name": n}} for n in "xy"]
        self.expect(
            lambda: self.handles[0].load(people + towns, mode="merge"), people + towns, "merge"
        )

    def teardown(self) -> None:
        for handle in self.handles:
            handle.close()
        shutil.rmtree(self.folder)
        self.patch.undo()

    @rule(which=st.integers(0, 1), records=RECORDS, mode=MODES)
    def load(self, which: int, records: list[dict], mode: str) -> None:
        self.expect(lambda: self.handles[which].load(records, mode=mode), records, mode)

    @rule(which=st.integers(0, 1), people=st.lists(PEOPLE | OTHERS, min_size=1, max_size=6))
    def add_people_one_by_one(self, which: int, people: list[dict]) -> None:
        """Small writes in a row on one handle: it must know what it wrote itself."""
        for one in people:
            self.expect(lambda one=one: self.handles[which].load([one]), [one], "append")

    @rule(which=st.integers(0, 1), edges=st.lists(KNOWS | LIKES, min_size=1, max_size=4))
    def add_edges_one_by_one(self, which: int, edges: list[dict]) -> None:
        for one in edges:
            self.expect(lambda one=one: self.handles[which].load([one]), [one], "append")

    def expect(self, load, records: list[dict], mode: str) -> None:
        try:
            self.model.load(records, mode)
        except RefusedError:
            with pytest.raises(omnigraph.ConstraintError):
                load()
        else:
            load()

    @rule(which=st.integers(0, 1), records=RECORDS, mode=MODES, point=st.sampled_from(BEFORE))
    def die_before_the_commit(self, which, records, mode, point) -> None:
        with armed(point, ArmedAction.RAISE):
            try:
                result = self.handles[which].load(records, mode=mode)
            except (FailPointError, omnigraph.ConstraintError):
                return
        # An empty or fully identical load passes no failpoint; then it published nothing either.
        assert result.commit is None

    @rule(which=st.integers(0, 1), records=RECORDS, mode=MODES)
    def die_after_the_commit(self, which: int, records: list[dict], mode: str) -> None:
        with armed(FailPoint.PUBLISH_AFTER_COMMIT, ArmedAction.RAISE) as arm:
            try:
                self.expect(lambda: self.handles[which].load(records, mode=mode), records, mode)
            except FailPointError:
                assert arm.fired

    @rule(which=st.integers(0, 1), whole=st.booleans())
    def maintain(self, which: int, whole: bool) -> None:
        """Indexes and other files: nobody can tell."""
        handle = self.handles[which]
        done = handle.build_indexes() if whole else handle.optimize()
        assert not any(
            change.total for change in (done.commit.changes if done.commit else {}).values()
        )
        assert (handle.build_indexes() if whole else handle.optimize()).commit is None

    @rule(which=st.integers(0, 1), point=st.sampled_from(BEFORE))
    def die_in_maintenance(self, which: int, point: FailPoint) -> None:
        with armed(point, ArmedAction.RAISE), suppress(FailPointError):
            self.handles[which].optimize()

    @rule(which=st.integers(0, 1))
    def reopen(self, which: int) -> None:
        self.handles[which].close()
        self.handles[which] = omnigraph.open(self.folder / "g")

    @rule()
    def export_and_load_back(self) -> None:
        out, again = io.BytesIO(), io.BytesIO()
        self.handles[0].export(out)
        place = self.folder / "copy"
        with omnigraph.init(place, SCHEMA) as copy:
            if out.getvalue():
                copy.load(io.BytesIO(out.getvalue()), mode="overwrite")
            copy.export(again)
        shutil.rmtree(place)
        assert sorted(again.getvalue().splitlines()) == sorted(out.getvalue().splitlines())

    @invariant()
    def both_handles_show_the_model(self) -> None:
        if not hasattr(self, "model"):
            return
        for handle in self.handles:
            snapshot = handle.snapshot()
            for type_name, expected in self.model.content.items():
                rows = {r["id"]: r for r in snapshot.rows(type_name)}
                assert rows == expected
                assert snapshot.count(type_name) == len(expected)
        commits = self.handles[0].commits()
        assert [c.parent_id for c in commits] == [*(c.id for c in commits[1:]), None]


TestStoreAgreesWithModel = StoreAgreesWithModel.TestCase
TestStoreAgreesWithModel.settings = settings(
    settings.get_profile(settings.get_current_profile_name()),
    max_examples=examples(15),
    stateful_step_count=20,
)
