"""A graph and its model, changed together and compared after everything.

Whatever differs is raised as ``Differs``, with what was expected and what was found.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from io import BytesIO
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from schema_merge import Clash, canonical, renumbered_state
from schema_model import KEY, Schema, Thing, contradictions, text_of, told, told_by
from schema_states import (
    ENDS,
    Counts,
    Row,
    State,
    added,
    broken,
    changed,
    difference,
    exported,
    hidden,
)
from schema_steps import Put
from state_merge import Commit, Outcome, merge, revert, strangers

import omnigraph
from omnigraph.errors import MergeConflictError, OmnigraphError


class Differs(AssertionError):
    """The graph is not what the model says."""


def check(good: bool, what: str, expected: Any = None, found: Any = None) -> None:
    if not good:
        raise Differs(f"{what}\n  expected {expected}\n  found    {found}")


COUNTS = os.environ.get("MODEL_COUNTS") != "0"
"""Whether counts of commits are compared; without them one sees what else is wrong."""

Content = dict[str, dict[str, Any]]


def content_of(view: Any) -> Content:
    """What a state shows, by table and id, from its export."""
    out = BytesIO()
    view.export(out)
    found: Content = {}
    for line in map(json.loads, out.getvalue().splitlines()):
        data = line["data"]
        entity_id = data.pop("id")
        if "edge" in line:
            data[ENDS] = (line["from"], line["to"])
        key = f"node:{line['type']}" if "type" in line else f"edge:{line['edge']}"
        own = found.setdefault(key, {})
        check(entity_id not in own, f"{key} {entity_id} is there twice")
        own[entity_id] = data
    return found


def state_of(schema: Schema, content: Content) -> State:
    """The model's state that an export describes."""
    rows: dict[int, dict[str, Row]] = {}
    for thing in schema.types():
        names = {p.name: p.id for p in schema.properties(thing.id)}
        own: dict[str, Row] = {}
        for entity_id, data in content.get(f"{thing.kind}:{thing.name}", {}).items():
            row: Row = {number: data.get(name) for name, number in names.items()}
            if ENDS in data:
                row[ENDS] = data[ENDS]
            own[entity_id] = row
        rows[thing.id] = own
    return State(schema, rows)


def record(schema: Schema, thing: Thing, entity_id: str, row: Row) -> dict[str, Any]:
    """A row as a load takes it."""
    names = {p.id: p.name for p in schema.properties(thing.id)}
    data = {names[n]: v for n, v in row.items() if n in names and v is not None}
    if not thing.facts.get(KEY):
        data["id"] = entity_id
    if thing.kind == "node":
        return {"type": thing.name, "data": data}
    return {"edge": thing.name, "from": row[ENDS][0], "to": row[ENDS][1], "data": data}


def counts_of(changes: Mapping[str, Any]) -> Counts:
    return {key: (c.inserted, c.updated, c.deleted) for key, c in changes.items() if c.total}


def between(before: State, after: State) -> Counts:
    """The difference of two states that may name one thing by two numbers."""
    numbers = canonical(after.schema, before.schema)
    return difference(renumbered_state(before, numbers), renumbered_state(after, numbers))


def with_hidden(before: State, after: State) -> Counts:
    """The same with rows of types that are gone."""
    numbers = canonical(after.schema, before.schema)
    before, after = renumbered_state(before, numbers), renumbered_state(after, numbers)
    return added(difference(before, after), hidden(before, after))


class World:
    """One graph with its branches, each with the model's commit that it should show."""

    def __init__(self, graph: omnigraph.Graph, heads: dict[str, Commit]) -> None:
        self.graph = graph
        self.heads = heads
        self.commits: dict[str, Commit] = {
            graph.snapshot(name).commit.id: head for name, head in heads.items()
        }

    # -- writes ----------------------------------------------------------------------------------

    def apply(self, branch: str, schema: Schema) -> bool:
        """Give a branch another schema; whether that was possible."""
        head = self.heads[branch]
        if schema is head.state.schema:
            return False
        wanted = None if contradictions(schema) else changed(head.state, schema)
        text = text_of(schema, head.state.schema)
        try:
            done = self.graph.schema_apply(text, branch=branch, confirm=True)
        except OmnigraphError as e:
            check(wanted is None, f"schema_apply on {branch} was refused: {e}\n{text}")
            return False
        check(wanted is not None, f"schema_apply on {branch} should be refused", None, text)
        assert wanted is not None
        if done.commit is None:
            check(told(schema) == told(head.state.schema), "nothing was applied", text)
        else:
            self.published(branch, wanted, (head,), done.commit, "schema_apply")
        return True

    def put(self, branch: str, puts: Sequence[Put]) -> None:
        """Rows that come and go, in order; loads take neighbours together."""
        for verb, group in groupby(puts, key=lambda put: put[0]):
            if verb == "put":
                self.load(branch, [what for _, what in group])
            else:
                for _, (type_id, entity_id) in group:
                    self.delete(branch, type_id, entity_id)

    def load(self, branch: str, rows: Iterable[tuple[int, str, Row]], mode: str = "merge") -> bool:
        head = self.heads[branch]
        rows, wanted, schema = list(rows), head.state, head.state.schema
        refused = False
        if mode == "overwrite":
            for type_id in {t for t, _, _ in rows}:
                wanted = State(schema, {**wanted.rows, type_id: {}})
        for type_id, entity_id, row in rows:
            refused |= mode != "merge" and entity_id in wanted.of(type_id)
            wanted = wanted.putting(type_id, entity_id, row)
        records = [record(schema, schema.things[t], i, row) for t, i, row in rows]
        if not records:
            return False
        refused |= bool(broken(wanted))
        try:
            done = self.graph.load(records, mode=mode, branch=branch)
        except (omnigraph.ConstraintError, omnigraph.ConflictError, omnigraph.InputError) as e:
            check(refused, f"load ({mode}) on {branch} was refused: {e}", broken(wanted), records)
            return False
        check(not refused, f"load ({mode}) on {branch} should be refused", broken(wanted), records)
        if done.commit is not None:
            self.published(branch, wanted, (head,), done.commit, "load", exact=False)
        else:
            check(between(head.state, wanted) == {}, "the load published nothing", records)
        return True

    def delete(self, branch: str, type_id: int, entity_id: str) -> bool:
        """An entity, and with a node its edges."""
        head = self.heads[branch]
        schema = head.state.schema
        thing = schema.things[type_id]
        wanted = head.state.putting(type_id, entity_id, None)
        for edge in schema.types():
            if edge.kind == "edge":
                for other, row in head.state.of(edge.id).items():
                    ends = zip((("source",), ("target",)), row[ENDS], strict=True)
                    if any(edge.facts[e] == type_id and p == entity_id for e, p in ends):
                        wanted = wanted.putting(edge.id, other, None)
        column, value = "id", json.dumps(entity_id)
        if key := thing.facts.get(KEY):
            column, held = schema.things[key[0]].name, head.state.of(type_id).get(entity_id)
            value = json.dumps(held[key[0]] if held else entity_id)
        refused = bool(broken(wanted))
        try:
            done = self.graph.mutate(f"delete {thing.name} where {column} = {value}", branch=branch)
        except omnigraph.ConstraintError as e:
            check(refused, f"delete {thing.name} {entity_id} on {branch} was refused: {e}")
            return False
        check(not refused, f"delete {thing.name} {entity_id} on {branch} should be refused")
        found = entity_id in head.state.of(type_id)
        check((done.commit is not None) == found, f"delete {thing.name} {entity_id}", found)
        if done.commit is not None:
            self.published(branch, wanted, (head,), done.commit, "delete")
        return True

    def update(self, branch: str, type_id: int, entity_id: str, prop: Thing, value: Any) -> bool:
        """One property of one entity, by a mutation."""
        head = self.heads[branch]
        schema = head.state.schema
        thing, row = schema.things[type_id], head.state.of(type_id)[entity_id]
        wanted = head.state.putting(type_id, entity_id, {**row, prop.id: value})
        column, key = "id", thing.facts.get(KEY)
        held: Any = entity_id
        if key:
            column, held = schema.things[key[0]].name, row[key[0]]
        text = (
            f"update {thing.name} set {{ {prop.name}: {json.dumps(value)} }} "
            f"where {column} = {json.dumps(held)}"
        )
        refused = bool(broken(wanted))
        try:
            done = self.graph.mutate(text, branch=branch)
        except OmnigraphError as e:
            check(refused, f"{text} on {branch} was refused: {e}")
            return False
        check(not refused, f"{text} on {branch} should be refused", broken(wanted))
        if done.commit is not None:
            self.published(branch, wanted, (head,), done.commit, text, exact=False)
        else:
            check(between(head.state, wanted) == {}, f"{text} published nothing")
        return True

    # -- merges ----------------------------------------------------------------------------------

    def merge(
        self, source: str, into: str, prefer: str | None = None, theirs: Commit | None = None
    ) -> Outcome:
        ours, other = self.heads[into], theirs or self.heads[source]
        expected = merge(ours, other, prefer)
        what = f"merge {source} into {into}" + (f" for {prefer}" if prefer else "")
        seen = self._tried(
            what,
            expected,
            lambda dry: self.graph.merge(source, into=into, prefer=prefer, dry_run=dry),
        )
        if seen is not None and seen.commit is not None:
            self._merged(into, what, expected, seen, (ours, other))
        return expected

    def revert(self, branch: str, commit_id: str, prefer: str | None = None) -> Outcome:
        ours, commit = self.heads[branch], self.commits[commit_id]
        expected = revert(ours, commit, prefer)
        what = f"revert {commit_id[-4:]} on {branch}" + (f" for {prefer}" if prefer else "")
        seen = self._tried(
            what,
            expected,
            lambda dry: self.graph.revert(commit_id, branch=branch, prefer=prefer, dry_run=dry),
            revert=True,
        )
        if seen is not None and seen.commit is not None:
            self._merged(branch, what, expected, seen, (ours,))
        elif seen is not None:
            check(between(ours.state, expected.state) == {}, f"{what} published nothing")
        return expected

    def _tried(
        self, what: str, expected: Outcome, run: Callable[[bool], Any], *, revert: bool = False
    ) -> Any:
        """Run it dry and then really; both must say what the model says."""
        try:
            dry = run(True)
            found = str(dry.outcome)
            if found == "conflicts":
                self._same_clashes(what, expected, dry.conflicts)
            try:
                done = run(False)
            except MergeConflictError as e:
                check(found == "conflicts", f"{what}: the dry run said", found, e)
                check(list(dry.conflicts) == list(e.conflicts), f"{what}: other conflicts", dry, e)
                return None
        except Differs:
            raise
        except MergeConflictError as e:
            raise Differs(f"{what}: a dry run raised {e}") from e
        except Exception as e:
            raise Differs(f"{what}: {type(e).__name__}: {e}") from e
        if revert and found == "already_up_to_date":
            found = "merged"
        check(found == expected.outcome, what, _worded(expected), found)
        if done.commit is not None and COUNTS:
            same = counts_of(dry.changes) == counts_of(done.changes)
            check(same, f"{what}: the dry run counted", dry.changes, done.changes)
        return done

    def _same_clashes(self, what: str, expected: Outcome, conflicts: Iterable[Any]) -> None:
        said = [(str(c.kind), c.type_name, c.entity_id, c.message) for c in conflicts]
        check(expected.outcome == "conflicts", what, _worded(expected), said)
        left: list[Clash] = list(expected.clashes)
        for kind, type_name, entity_id, message in said:
            known = [c for c in left if c.matches(kind, type_name, entity_id)]
            more = [
                c
                for c in (*expected.clashes, *expected.more)
                if c.matches(kind, type_name, entity_id)
            ]
            check(
                bool(known or more) or not expected.complete,
                f"{what}: a conflict too many",
                _worded(expected),
                (kind, type_name, entity_id, message),
            )
            left = [c for c in left if c not in known]
        check(not left, f"{what}: not told {left}", _worded(expected), said)

    def _merged(
        self, branch: str, what: str, expected: Outcome, done: Any, parents: tuple[Commit, ...]
    ) -> None:
        wanted = expected.state
        view = self.graph.snapshot(branch)
        if expected.loose_schema:
            raise Unclear(what)
        if expected.loose:
            check(told_by(view.catalog) == told(wanted.schema), f"{what}: schema",
                  told(wanted.schema), told_by(view.catalog))  # fmt: skip
            found = state_of(wanted.schema, content_of(view))
            odd = strangers(expected, found)
            check(not odd, f"{what}: values that were never written", None, odd)
            for type_id, entity_id in expected.loose:
                wanted = wanted.putting(type_id, entity_id, found.of(type_id).get(entity_id))
        self.published(branch, wanted, parents, done.commit, what)

    def reset(self, branch: str, commit_id: str) -> None:
        """Show an earlier state again."""
        target = self.commits[commit_id]
        before = self.heads[branch]
        done = self.graph.reset(f"commit:{commit_id}", branch=branch)
        if done is not None:
            self.published(branch, target.state, (target,), done, "reset", since=before.state)

    # -- comparing -------------------------------------------------------------------------------

    def published(
        self,
        branch: str,
        state: State,
        parents: tuple[Commit, ...],
        commit: Any,
        what: str,
        *,
        exact: bool = True,
        since: State | None = None,
    ) -> None:
        made = Commit(state, *parents)
        self.heads[branch] = made
        self.commits[commit.id] = made
        self.agree(branch, what)
        if not COUNTS:
            return
        told_counts = counts_of(commit.changes)
        real = between(since or parents[0].state, state)
        if exact:
            known = (real, with_hidden(since or parents[0].state, state))
            check(told_counts in known, f"{what}: counts of the commit", real, told_counts)
            return
        for key in {*told_counts, *real}:
            mine, other = told_counts.get(key, (0, 0, 0)), real.get(key, (0, 0, 0))
            good = (mine[0], mine[2]) == (other[0], other[2]) and mine[1] >= other[1]
            check(good, f"{what}: counts of {key}", other, mine)

    def agree(self, branch: str, what: str = "", graph: omnigraph.Graph | None = None) -> None:
        """What a branch shows is what the model says, and a load would take it."""
        state = self.heads[branch].state
        view = (graph or self.graph).snapshot(branch)
        self.same(view, state, f"{what}: {branch}")
        wrong = broken(state)
        check(not wrong, f"{what}: {branch} breaks rules", [], wrong)

    def same(self, view: Any, state: State, what: str) -> None:
        schema = told_by(view.catalog)
        check(schema == told(state.schema), f"{what}: schema", *_apart(told(state.schema), schema))
        try:
            found = content_of(view)
        except OmnigraphError as e:
            raise Differs(f"{what}: the export failed: {type(e).__name__}: {e}") from e
        check(found == exported(state), f"{what}: rows", *_apart(exported(state), found))

    def sound(self, what: str) -> None:
        """A check of the whole graph finds nothing."""
        report = self.graph.upkeep.check(full=True)
        check(report.ok, f"{what}: check", [], report.findings)

    def reload(self, branch: str, what: str) -> None:
        """The published rows are accepted by a new graph of the published schema."""
        reload_view(self.graph.snapshot(branch), what)


class Unclear(Exception):
    """What happened is not said to the last detail anywhere; the history ends here."""


def reload_view(view: Any, what: str) -> None:
    """Load what a state shows into a new graph of its schema: it must be taken, and be the same."""
    out = BytesIO()
    view.export(out)
    with TemporaryDirectory() as folder, omnigraph.init(folder, view.schema) as again:
        check(told_by(again.catalog) == told_by(view.catalog), f"{what}: the text says otherwise")
        if out.getvalue():
            path = Path(folder) / "rows.jsonl"
            path.write_bytes(out.getvalue())
            try:
                again.load(path)
            except OmnigraphError as e:
                raise Differs(f"{what}: a load of the published rows is refused: {e}") from e
        check(content_of(again.snapshot()) == content_of(view), f"{what}: loaded otherwise")


def _worded(expected: Outcome) -> str:
    if expected.outcome != "conflicts":
        return expected.outcome
    said = [(sorted(c.kinds), sorted(c.types or ()), c.why) for c in expected.clashes]
    return f"conflicts {said}"


def _apart(one: Any, other: Any) -> tuple[Any, Any]:
    """Two dicts without what they agree about."""
    if not (isinstance(one, dict) and isinstance(other, dict)):
        return one, other
    keys = {k for k in {*one, *other} if one.get(k) != other.get(k)}
    parts = {k: _apart(one.get(k), other.get(k)) for k in sorted(keys)}
    return {k: v[0] for k, v in parts.items()}, {k: v[1] for k, v in parts.items()}
