"""Runs query texts on snapshots and keeps what helps the next one.

    text, parameters, snapshot -> compile -> plan -> [engine] -> rows

A text is compiled once per schema and planned once per order of magnitude of its tables; derived
state (columns, numbers, adjacency) belongs to table versions and outlives snapshots.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import RLock
from typing import Any

import pyarrow as pa

from omnigraph.errors import OmnigraphError, UsageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.schemas import AcceptedSchema
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.query import typed
from omnigraph.query.compile import compile_queries, pick
from omnigraph.query.describe import describe
from omnigraph.query.exec.ahead import ask, open_tables
from omnigraph.query.exec.caches import Caches, TraversalMode
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.exec.limits import Guard, Limits, topology_files
from omnigraph.query.exec.rank import SearchedText, Searcher, index_notices, searched
from omnigraph.query.exec.run import Run
from omnigraph.query.exec.world import World
from omnigraph.query.params import bind
from omnigraph.query.plan.explain import Profile, StepNotes, explain, indented
from omnigraph.query.plan.nodes import Plan
from omnigraph.query.plan.planner import QueryPlan, plan_read
from omnigraph.query.search.embedding import Embedder
from omnigraph.results import IndexNotice
from omnigraph.show.shown import ShownAsText
from omnigraph.work_time import WorkClock

QUERIES_MAX = 512
TEXT_MAX = 100_000
"""Longer texts are compiled anew each time."""
WORLDS_MAX = 4
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class PreparedQuery:
    """A checked query on one schema, with the plans made for it so far."""

    query: typed.Query
    types: tuple[str, ...]
    """Table keys of the node types whose counts its plan depends on."""
    plans: dict[tuple[int, ...], QueryPlan]
    searched: tuple[SearchedText, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedStep:
    """One step of a plan; what it did, if it was run."""

    depth: int
    """How far below the last step."""
    text: str
    notes: StepNotes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(ShownAsText):
    """How a query is run."""

    text: str
    """For people: one line a step."""
    steps: tuple[ExplainedStep, ...]
    """The last step first; what it takes its rows from below it."""
    plan: QueryPlan
    rows: int | None = None
    seconds: float | None = None
    notices: tuple[IndexNotice, ...] = ()
    """Searches over rows that no built index covers, however few."""

    def __str__(self) -> str:
        return self.text


class QueryEngine:
    """The reading side of one open graph."""

    def __init__(
        self,
        repository: Repository,
        embedder: Embedder | None = None,
        limits: Limits | None = None,
        cache_bytes: int | None = None,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._prepared: OrderedDict[tuple[str, str | None, str], PreparedQuery] = OrderedDict()
        self._worlds: OrderedDict[tuple[Any, ...], World] = OrderedDict()
        self._last_world: World | None = None
        self._caches = Caches(cache_bytes, topology_files(repository.location.uri))
        self._limits = limits or Limits.of(None, None)
        self._lock = RLock()

    def limits(self, timeout_s: float | None, memory_bytes: int | None) -> Limits:
        """What was asked for, else what the environment said when the graph was opened."""
        if timeout_s is None and memory_bytes is None:
            return self._limits
        return Limits.of(
            self._limits.timeout_s if timeout_s is None else timeout_s,
            self._limits.memory_bytes if memory_bytes is None else memory_bytes,
        )

    def prepare(self, text: str, name: str | None, schema: AcceptedSchema) -> PreparedQuery:
        """The query of a text that is meant, checked against a schema."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"not a query text: {text!r}")
        key = (text, name, schema.hash)
        with self._lock:
            found = self._prepared.get(key)
            if found is not None:
                self._prepared.move_to_end(key)
                return found
        query = pick(compile_queries(text, schema.catalog), name)
        touched = describe(query, schema.catalog).reads
        types = tuple(f"node:{t.type_name}" for t in touched if t.kind == "node")
        body = query.body
        made = PreparedQuery(
            query=query,
            types=types,
            plans={},
            searched=searched(body) if isinstance(body, typed.Read) else (),
        )
        if len(text) <= TEXT_MAX:
            with self._lock:
                self._prepared[key] = made
                while len(self._prepared) > QUERIES_MAX:
                    self._prepared.popitem(last=False)
        return made

    def begin(self, text: str, name: str | None, branch: str) -> None:
        """Open what a query will read of the newest state that is known, beside the look for a
        newer one; on a remote store, where both take their time."""
        known = (
            None if self._repository.location.is_local else self._repository.branches.known(branch)
        )
        if known is None:
            return
        snapshot = known.head.snapshot

        def ahead() -> None:
            with suppress(OmnigraphError):  # Is said when the query is run.
                prepared = self.prepare(text, name, self._repository.schema(snapshot.schema_hash))
                world = self._world(snapshot)
                open_tables(self._plan(prepared, read_of(prepared.query), world).root, world)

        self._repository.background.pool.submit(ahead)

    def read(
        self,
        prepared: PreparedQuery,
        snapshot: Snapshot,
        params: Mapping[str, Any] | None,
        limits: Limits,
    ) -> pa.Table:
        """The rows of a read."""
        body = read_of(prepared.query)
        values = self.values(prepared.query, params)
        world = self._world(snapshot)
        plan = self._plan(prepared, body, world)
        run = self._run(world, values, limits, plan, None)
        if not self._repository.location.is_local:
            open_tables(plan.root, world)
            ask(plan.root, run)
        return run.result(plan.root)

    def notices(self, prepared: PreparedQuery, snapshot: Snapshot) -> tuple[IndexNotice, ...]:
        """Large searches of a read that no built index covers; no request on a warm handle."""
        if not prepared.searched:
            return ()
        # The answer is there: it is not lost because of a remark about it.
        with suppress(OmnigraphError):
            return index_notices(prepared.searched, self._world(snapshot), even_small=False)
        return ()

    def explain(
        self,
        prepared: PreparedQuery,
        snapshot: Snapshot,
        params: Mapping[str, Any] | None,
        limits: Limits,
        *,
        analyze: bool,
    ) -> Explanation:
        """The plan of a read; with ``analyze`` it is run and every step says what it did."""
        body = read_of(prepared.query)
        world = self._world(snapshot)
        plan = self._plan(prepared, body, world)
        lines = explain(plan)
        if not analyze:
            steps = tuple(ExplainedStep(depth=line.depth, text=line.text) for line in lines)
            notices = index_notices(prepared.searched, world, even_small=True)
            text = indented(lines) + _remarks(notices)
            return Explanation(text=text, steps=steps, plan=plan, notices=notices)
        with WorkClock(self._repository.clock) as clock:
            profile = Profile(clock)
            started = clock.monotonic_s()
            values = self.values(prepared.query, params)
            table = self._run(world, values, limits, plan, profile).result(plan.root)
            seconds = clock.monotonic_s() - started
        total = f"{table.num_rows} rows in {seconds * 1e3:.2f} ms\n"
        notices = index_notices(prepared.searched, world, even_small=True)
        return Explanation(
            text=indented(lines, lambda step: _shown(profile.of(step))) + total + _remarks(notices),
            steps=tuple(
                ExplainedStep(depth=line.depth, text=line.text, notes=profile.of(line.step))
                for line in lines
            ),
            plan=plan,
            rows=table.num_rows,
            seconds=seconds,
            notices=notices,
        )

    def step_rows(
        self,
        step: Plan,
        blocks: Mapping[typed.Pattern, Plan],
        *,
        snapshot: Snapshot,
        values: Values,
        limits: Limits,
    ) -> pa.Table:
        """The rows of a part of a plan, for an executor that lacks some of its steps."""
        plan = QueryPlan(root=step, blocks=blocks)
        return self._run(self._world(snapshot), values, limits, plan, None).result(step)

    def now(self) -> datetime:
        """What ``now()`` is for a query that begins."""
        return EPOCH + timedelta(milliseconds=self._repository.clock.now_us() // 1000)

    def values(
        self,
        query: typed.Query,
        params: Mapping[str, Any] | None,
        *,
        now: datetime | None = None,
    ) -> Values:
        """What a query is run with, checked before anything runs."""
        return Values(params=bind(query.params, params), now=now or self.now())

    def _run(
        self,
        world: World,
        values: Values,
        limits: Limits,
        plan: QueryPlan,
        profile: Profile | None,
    ) -> Run:
        guard = Guard(limits, self._repository.clock)
        embedder = self._embedder
        return Run(
            world,
            values,
            guard,
            plan.blocks,
            lambda: Searcher(world, values, embedder),
            profile,
        )

    def _world(self, snapshot: Snapshot) -> World:
        mode = TraversalMode.chosen()
        last = self._last_world
        if last is not None and last.snapshot is snapshot and last.mode is mode:
            return last
        key = (snapshot.branch, snapshot.version, snapshot.head.id, mode)
        with self._lock:
            found = self._worlds.get(key)
            if found is None:
                found = World(self._repository, snapshot, self._caches, mode)
                self._worlds[key] = found
                while len(self._worlds) > WORLDS_MAX:
                    self._worlds.popitem(last=False)
                    self._caches.kept.forget_views()
            else:
                self._worlds.move_to_end(key)
            self._last_world = found
            return found

    def _plan(self, prepared: PreparedQuery, body: typed.Read, world: World) -> QueryPlan:
        found = world.plans.get(id(prepared))
        if found is not None and found[0] is prepared:
            return found[1]
        counts = tuple(world.snapshot.row_count(t).bit_length() // 2 for t in prepared.types)
        plan = prepared.plans.get(counts)
        if plan is None:
            plan = plan_read(
                body, world.catalog, lambda name: world.snapshot.row_count(f"node:{name}")
            )
            prepared.plans[counts] = plan
        if len(world.plans) >= QUERIES_MAX:
            world.plans.clear()
        world.plans[id(prepared)] = prepared, plan
        return plan


def _remarks(notices: tuple[IndexNotice, ...]) -> str:
    return "".join(f"note: {notice}\n" for notice in notices)


def _shown(notes: StepNotes | None) -> str:
    if notes is None:
        return "[not run]"
    again = f", {notes.calls} times" if notes.calls > 1 else ""
    return f"[{notes.rows} rows, {notes.seconds * 1e3:.2f} ms, {notes.requests} requests{again}]"


def read_of(query: typed.Query) -> typed.Read:
    """The read that a query is; a mutation is an error."""
    if not isinstance(query.body, typed.Read):
        raise UsageError(
            "this is a mutation, and a query only reads",
            hint="run it with mutate: 'omnigraph mutate', graph.mutate(…)",
        )
    return query.body
