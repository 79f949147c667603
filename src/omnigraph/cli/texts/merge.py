"""A merge as people see it: what it did, or what stands in its way.

Merged june into main
commit 01JZ8YB1K4T9W3H6Q8Z2C5E7G0 on main  +1 ~1
  Vessel   ~1
  CallsAt  +1
base 01JZ8Y6N2D3V5K7M9P1R3T5V7X

Vessel: 1 conflict
  100  changed on both sides
    flag    base "dk"    main "no"    june "pa"
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.branch.merge.conflicts import ConflictKind, MergeConflict, MergeOutcome, MergeResult
from omnigraph.cli.lines import (
    ID_STYLE,
    QUIET_STYLE,
    Line,
    TextLook,
    commit_line,
    count_text,
    type_lines,
)
from omnigraph.cli.streams import one_line

SHOWN_MAX = 20
"""So many conflicts of one type are shown; all of them with --json."""
VALUE_LENGTH_MAX = 60
_KINDS = {
    ConflictKind.DIVERGENT_INSERT: "inserted on both sides",
    ConflictKind.DIVERGENT_UPDATE: "changed on both sides",
    ConflictKind.DELETE_VS_UPDATE: "deleted on one side, changed on the other",
    ConflictKind.ORPHAN_EDGE: "an edge without its node",
    ConflictKind.UNIQUE_VIOLATION: "a unique value twice",
    ConflictKind.CARDINALITY_VIOLATION: "a wrong number of edges",
    ConflictKind.VALUE_CONSTRAINT_VIOLATION: "a value that the schema forbids",
    ConflictKind.SCHEMA_CONFLICT: "schemas that do not fit together",
}


def merged(result: MergeResult, look: TextLook, verb: str) -> Iterator[Line]:
    """The outcome, the commit, the changes, where it came from."""
    if look.quiet and not result.conflicts:
        return
    yield _headline(result, verb)
    if result.outcome is MergeOutcome.CONFLICTS:
        yield []
        yield from conflict_lines(result.conflicts, result.target, result.source)
        return
    if result.commit is not None:
        yield commit_line(result.commit, result.changes)
    yield from type_lines(result.changes)
    if result.outcome is not MergeOutcome.UP_TO_DATE:
        if not result.changes:
            yield [("  no entity changes", QUIET_STYLE)]
        if verb == "merge":
            label = "base" if len(result.base_commits) == 1 else "bases"
            yield [(f"{label} {', '.join(result.base_commits)}", QUIET_STYLE)]
    if result.branch_deleted:
        yield [("Deleted", "green"), f" branch {one_line(result.source)}"]
    elif result.branch_delete_error is not None:
        why = one_line(result.branch_delete_error)
        yield [("Not deleted: ", "red"), f"branch {one_line(result.source)}: {why}"]


def _headline(result: MergeResult, verb: str) -> Line:
    source, target = one_line(result.source), one_line(result.target)
    what = f"{source} into {target}" if verb == "merge" else f"commit on {target}"
    match result.outcome:
        case MergeOutcome.UP_TO_DATE if verb == "revert":
            return [f"Nothing to revert: {target} has none of it any more"]
        case MergeOutcome.UP_TO_DATE:
            return [f"Already up to date: {target} has everything of {source}"]
        case MergeOutcome.CONFLICTS:
            return [(f"Would not {verb}", "red"), f" {what}; nothing was published"]
        case _ if result.dry_run:
            how = " (fast forward)" if result.outcome is MergeOutcome.FAST_FORWARD else ""
            return [(f"Would {verb}", "green"), f" {what}{how}; nothing was published"]
        case MergeOutcome.FAST_FORWARD:
            return [("Fast-forwarded", "green"), f" {target} to {source}"]
        case _:
            return [("Merged" if verb == "merge" else "Reverted", "green"), f" {what}"]


def conflict_lines(conflicts: Sequence[MergeConflict], ours: str, theirs: str) -> Iterator[Line]:
    """Conflicts by type, each with the values of all sides, and what to do next."""
    by_type: dict[tuple[str, str], list[MergeConflict]] = {}
    for conflict in conflicts:
        by_type.setdefault((conflict.entity_kind, conflict.type_name), []).append(conflict)
    for (_, type_name), own in by_type.items():
        count = count_text(len(own), "conflict")
        yield [(one_line(type_name), "bold cyan"), (f": {count}", "bold")]
        for conflict in own[:SHOWN_MAX]:
            yield from _conflict(conflict, ours, theirs)
        if len(own) > SHOWN_MAX:
            yield [(f"  … and {len(own) - SHOWN_MAX:,} more (--json shows all)", QUIET_STYLE)]
        yield []
    yield from _next_step(conflicts, ours, theirs)


def _conflict(conflict: MergeConflict, ours: str, theirs: str) -> Iterator[Line]:
    yield ["  ", (one_line(conflict.entity_id or "-"), ID_STYLE), f"  {_KINDS[conflict.kind]}"]
    sides = [("base", QUIET_STYLE), (one_line(ours), "green"), (one_line(theirs), "blue")]
    width = max((len(p.name) for p in conflict.properties), default=0)
    for found in conflict.properties:
        line: Line = [f"    {one_line(found.name):<{width}}"]
        base = _shown(found.base) if found.base_known else "?"
        values = (base, _shown(found.ours), _shown(found.theirs))
        for (label, style), value in zip(sides, values, strict=True):
            if label == "base" and conflict.kind is ConflictKind.DIVERGENT_INSERT:
                continue
            line += [(f"    {label} ", QUIET_STYLE), (value, style)]
        yield line
    if not conflict.properties:
        yield [f"    {one_line(conflict.message)}"]


def _next_step(conflicts: Sequence[MergeConflict], ours: str, theirs: str) -> Iterator[Line]:
    entity = next((e for c in conflicts for e in c.entities), None)
    if entity is None:
        return
    line = {entity.kind: entity.type_name, "id": entity.id, "take": "theirs"}
    sides = f"--ours keeps {one_line(ours)}, --theirs takes {one_line(theirs)}"
    yield [("Next: ", "bold"), f"{sides}; or decide one by one:"]
    yield [f"  {one_line(json.dumps(line, ensure_ascii=False))}"]
    yield ["  in a file, one line for each entity, and --resolutions FILE"]


def _shown(value: Any) -> str:
    if isinstance(value, dict) and set(value) == {"from", "to"}:  # pyright: ignore[reportUnknownArgumentType]
        return f"{_shown(value['from'])} to {_shown(value['to'])}"
    text = one_line(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= VALUE_LENGTH_MAX else text[: VALUE_LENGTH_MAX - 1] + "…"
