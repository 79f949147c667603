"""Tables and their indexes as people see them: optimized, indexed, repaired.

Optimized main: commit 01JZ8YB1K4T9W3H6Q8Z2C5E7G0
  node:Vessel   12 files joined into 1, indexes up to date

edge:CallsAt  verified_maintenance  no row changed: --confirm puts the mirror back
  the graph shows version 12, other programs find 14: ReserveFragments, Rewrite
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.lines import ID_STYLE, QUIET_STYLE, Line, Part, TextLook, columns, count_text
from omnigraph.cli.streams import one_line
from omnigraph.upkeep.optimize import BUSY, DRIFTED

if TYPE_CHECKING:
    from omnigraph.cli.answers import IndexList, Optimized
    from omnigraph.upkeep.indexes import IndexStatus
    from omnigraph.upkeep.name_check import NameRepair
    from omnigraph.upkeep.optimize import TableOptimized
    from omnigraph.upkeep.repair import RepairReport, TableRepair

_STATE_STYLES = {
    "complete": "green",
    "partial": "yellow",
    "missing": "red",
    "pending": QUIET_STYLE,
}
_REASONS = {
    BUSY: "others wrote it all the time: try again later",
    DRIFTED: "another program changed it: see 'omnigraph repair'",
}

# ---------------------------------------------------------------- optimize and index


def optimized(done: Optimized, look: TextLook) -> Iterator[Line]:
    """What was done to every table of which there is something to say."""
    if look.quiet:
        return
    result = done.result
    branch = one_line(result.branch)
    if result.commit is None:
        yield [("Nothing to do", "bold"), f": {branch} is in order"]
    else:
        commit = (result.commit.id, ID_STYLE)
        yield [(f"{done.verb} {branch}", "bold green"), ": commit ", commit]
    width = max((len(t.type_key) for t in result.tables), default=0)
    for table in result.tables:
        for said in _table(table):
            yield [f"  {one_line(table.type_key):<{width}}  {said}"]


def _table(table: TableOptimized) -> Iterator[str]:
    if table.committed:
        joined, made = table.fragments_removed, table.fragments_added
        files = f"{joined} {'file' if joined == 1 else 'files'} joined into {made}, "
        yield f"{files if joined else ''}indexes up to date"
    if table.skipped is not None:
        reason = _REASONS.get(table.skipped, table.skipped)
        yield f"skipped, {one_line(reason)}{_versions(table)}"
    for pending in table.pending_indexes:
        yield f"no index on {one_line(pending.property_name)}: {pending.reason}"


def _versions(table: TableOptimized) -> str:
    if table.lance_head_version is None:
        return ""
    shown, head = table.published_dataset_version, table.lance_head_version
    return f" (published version {shown}, HEAD {head})"


def index_list(found: IndexList, look: TextLook) -> Iterator[Line]:
    """One line an index."""
    if not found.indexes:
        yield ["No types, so no indexes."]
        return
    yield from columns([_index(status) for status in found.indexes])


def _index(status: IndexStatus) -> list[Part | Line]:
    reach: Line = [f"{status.rows_indexed:,} of {status.rows:,} rows"]
    if status.reason is not None:
        reach.append((f"  {one_line(status.reason)}", QUIET_STYLE))
    return [
        one_line(f"{status.type_key}.{status.property_name}"),
        f"{status.kind:<6}",
        (f"{status.state:<8}", _STATE_STYLES[str(status.state)]),
        reach,
    ]


# ---------------------------------------------------------------- repair

_STYLES = {
    "healed": "green",
    "rebuilt": "green",
    "deleted": "yellow",
    "forced": "yellow",
    "discarded": "yellow",
    "refused": "bold red",
}
_OUTCOMES = {
    "healed": "healed: no row had changed",
    "forced": "adopted by force",
    "discarded": "put back to what the graph shows",
    "refused": "refused",
}
_PREVIEWS = {
    "verified_maintenance": "no row changed: --confirm puts the mirror back",
    "suspicious": "rows changed: --force --confirm adopts that, --discard --confirm does not",
    "unverifiable": "cannot be verified: --discard --confirm shows the graph's rows again",
}
_INDEX_OUTCOMES = {
    "preview": "--confirm replaces it",
    "rebuilt": "built again",
    "dropped": "dropped: 'omnigraph optimize' builds it when it can",
}
_EDGE_OUTCOMES = {
    "preview": "load the nodes, or --force --confirm deletes the edges",
    "refused": "refused",
    "deleted": "deleted",
}
_NAME_PREVIEWS = {
    "unfinished": "--confirm ends the name",
    "two_lives": "--confirm gives the second one a name of its own",
    "no_ref": "--confirm gives it its name back",
    "no_tables": "--discard --confirm ends it",
}


def repaired(report: RepairReport, look: TextLook) -> Iterator[Line]:
    """Everything that was found, with what happened to it."""
    if look.quiet and not report.refused:
        return
    if not (report.drifted or report.indexes or report.names or report.edges):
        tables = count_text(len(report.tables), "table")
        yield [("Nothing to do", "bold"), f": no other program changed {tables}"]
    width = max((len(table.type_key) for table in report.drifted), default=0)
    for table in report.drifted:
        action = str(table.action)
        said = _OUTCOMES.get(action) or _PREVIEWS[str(table.classification)]
        name = f"{one_line(table.type_key):<{width}}"
        yield from _finding(name, str(table.classification), said, action, _facts(table))
        yield from _reason(table.reason)
    for index in report.indexes:
        name = f"{one_line(index.branch)} {one_line(index.type_key)}"
        said, why = _INDEX_OUTCOMES[index.action], f"not to be trusted: {one_line(index.reason)}"
        yield from _finding(name, f"index {index.index}", said, index.action, why)
    for branch in report.names:
        name, message = f"branch {one_line(branch.name)}", one_line(branch.message)
        said = _name_outcome(branch)
        yield from _finding(name, str(branch.fault), said, str(branch.action), message)
        yield from _reason(branch.reason)
    for edges in report.edges:
        name = f"{one_line(edges.branch)} {one_line(edges.type_key)}"
        fault = f"{count_text(edges.count, 'edge')} without an end"
        said, which = _EDGE_OUTCOMES[edges.action], one_line(", ".join(edges.examples))
        yield from _finding(name, fault, said, edges.action, which)
        yield from _reason(edges.reason)
    for commit in report.commits:
        yield ["Commit ", (commit.id, ID_STYLE), f" by {commit.actor}"]


def _finding(name: str, fault: str, said: str, action: str, facts: str) -> Iterator[Line]:
    yield [f"{name}  ", (f"{fault}  ", "bold"), (said, _STYLES.get(action, ""))]
    yield [f"  {facts}"]


def _reason(reason: str | None) -> Iterator[Line]:
    if reason is not None:
        yield [f"  {one_line(reason)}"]


def _name_outcome(name: NameRepair) -> str:
    match str(name.action):
        case "healed" if name.new_name is not None:
            return f"healed: it is called '{one_line(name.new_name)}'"
        case "healed":
            return "healed: the name is free"
        case "discarded":
            return "ended"
        case "refused":
            return "refused"
        case _:
            return _NAME_PREVIEWS[str(name.fault)]


def _facts(table: TableRepair) -> str:
    done = Counter(commit.operation for commit in table.operations)
    words = [f"{name} x{times}" if times > 1 else name for name, times in done.items()]
    found = f"other programs find {table.lance_head_version}"
    facts = f"the graph shows version {table.published_dataset_version}, {found}"
    if words:
        facts += f": {one_line(', '.join(words))}"
    return f"{facts}; the graph has written it since" if table.overtaken else facts
