"""How a graph is doing, and what was done for it, as people see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from omnigraph.cli.lines import (
    ID_STYLE,
    QUIET_STYLE,
    Line,
    Part,
    TextLook,
    columns,
    count_text,
    fact_lines,
    size_text,
    when_text,
)
from omnigraph.cli.streams import one_line
from omnigraph.manifest import format as graph_format
from omnigraph.upkeep.optimize import BUSY, DRIFTED

if TYPE_CHECKING:
    from omnigraph.cli.answers import IndexList, PendingWrites
    from omnigraph.housekeeping.mirror import MirrorAge
    from omnigraph.upkeep.check import CheckReport
    from omnigraph.upkeep.cleanup import CleanupReport
    from omnigraph.upkeep.indexes import IndexStatus
    from omnigraph.upkeep.name_check import NameRepair
    from omnigraph.upkeep.optimize import OptimizeResult, TableOptimized
    from omnigraph.upkeep.recovery import PendingIntent, RecoveryReport
    from omnigraph.upkeep.repair import RepairReport, TableRepair
    from omnigraph.upkeep.status import GraphStatus


_STATES = {
    "published": "yellow",
    "stalled": "red",
    "running": "green",
    "unreadable": "bold red",
    "unclear": "bold red",
}
_NAMES_MAX = 8


# ---------------------------------------------------------------- status


def status(found: GraphStatus, look: TextLook) -> Iterator[Line]:
    """One screen."""
    objects = count_text(found.objects, "object")
    yield [(one_line(found.uri), "bold"), f"  {size_text(found.bytes)} in {objects}"]
    rows = [
        (
            one_line(kind.type_key),
            f"{kind.rows:,}",
            f"{kind.fragments:,}",
            size_text(kind.bytes),
            "-" if kind.index_coverage is None else f"{kind.index_coverage:.0%}",
        )
        for kind in found.types
    ]
    yield from _table([("type", "rows", "files", "bytes", "indexed"), *rows])
    head = f"{found.commit.id}  {when_text(found.commit.created_at_us)}"
    depth = f"{count_text(found.history_depth, 'commit')} deep"
    cleanups = f", {count_text(found.cleanups, 'cleanup')}" if found.cleanups else ""
    first, *rest = found.advice or ["nothing to do"]
    yield from fact_lines(
        [
            ("commit", f"{head} on {one_line(found.branch)}"),
            ("history", f"{depth}, {count_text(found.versions, 'version')} kept{cleanups}"),
            ("format", _format(found.format)),
            ("branches", _names(found.branches)),
            ("tags", _names(found.tags)),
            ("pending", _pending(found.pending)),
            ("mirrors", _mirrors(found.mirror)),
            ("next", first),
        ]
    )
    for line in rest:
        yield [" " * len("branches: "), line]


def _pending(pending: Sequence[PendingIntent]) -> str:
    counts = Counter(str(item.state) for item in pending)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "nothing"


def _mirrors(age: MirrorAge) -> str:
    """What a program finds that opens the tables with Lance alone."""
    if not age.behind:
        return "up to date"
    if age.made_at is not None:
        return f"refer to {one_line(age.made_at)}: the graph was moved or copied"
    if age.as_of_us is None:
        return f"not made yet: {_names(age.behind)}"
    return f"behind main since {when_text(age.as_of_us)}: {_names(age.behind)}"


def _format(number: int) -> str:
    written = graph_format.FORMAT
    return str(number) if number == written else f"{number}, {written} with the next write"


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(one_line(name) for name in names[:_NAMES_MAX])
    more = len(names) - _NAMES_MAX
    return (f"{shown} and {more} more" if more > 0 else shown) or "none"


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[Line]:
    """Rows in columns: names to the left, numbers to the right."""
    for line in columns(rows, right=range(1, 5)):
        yield ["  ", *line]


# ---------------------------------------------------------------- check and cleanup


def checked(report: CheckReport, look: TextLook) -> Iterator[Line]:
    """Findings, each with what to do; then what was looked at."""
    if look.quiet and report.ok:
        return
    for finding in report.findings:
        what = f"  {one_line(finding.where)}: {one_line(finding.message)}"
        yield [(f"{finding.code}", "bold red"), what]
        yield [(f"    {one_line(finding.remedy)}", QUIET_STYLE)]
    counts = (
        count_text(report.branches, "branch", "branches"),
        count_text(report.tags, "tag"),
        count_text(report.commits, "commit"),
        count_text(report.tables, "table version"),
        count_text(report.files, "file"),
        count_text(report.rows, "row"),
    )
    looked = ", ".join(counts)
    if report.states:
        looked += f"; {count_text(report.states, 'state')} of the past"
    if report.ok:
        yield [("Whole", "bold green"), f": {looked}"]
    else:
        found = count_text(len(report.findings), "finding")
        yield [(found, "bold red"), f" in {looked}"]


def cleaned_up(report: CleanupReport, look: TextLook) -> Iterator[Line]:
    """What was removed, or would be."""
    if look.quiet and report.confirmed and not report.errors:
        return
    yield from _table(
        [
            (
                one_line(place.type_key),
                count_text(place.old_versions_removed, "version"),
                count_text(place.files_removed, "object"),
                size_text(place.bytes_removed),
            )
            for place in report.places
            if place.files_removed
        ]
    )
    for place in report.errors:
        yield [(f"  {one_line(place.type_key)}: {one_line(place.error or '')}", "red")]
    if report.errors:
        left = count_text(len(report.errors), "place")
        yield [(f"{left} left unchanged, all others are done: run it again", "red")]
    if report.spared:
        running = count_text(len(report.spared), "long write")
        yield [f"{running} running: files of the last days are left for the next cleanup"]
    kept = f"{count_text(report.states_kept, 'state')} kept"
    total = f"{count_text(report.files_removed, 'object')}, {size_text(report.bytes_removed)}"
    if not report.files_removed:
        yield [("Nothing to remove", "bold"), f"; {kept}"]
    elif report.confirmed:
        yield [("Removed ", "bold green"), f"{total}; {kept}"]
    else:
        yield [("Would remove ", "bold"), f"{total}; {kept}"]
        yield ["This was a preview. To remove them: add --confirm"]


# ---------------------------------------------------------------- recovery


def pending_writes(found: PendingWrites, look: TextLook) -> Iterator[Line]:
    """One line a write that is pending, and what to do about them."""
    for item in found.intents:
        yield _intent(item)
    if not found.intents:
        yield ["No writes are pending."]
    if look.quiet:
        return
    states = {str(item.state) for item in found.intents}
    if states & {"published", "stalled", "unreadable"}:
        yield [("To deal with them: omnigraph recovery run", QUIET_STYLE)]
    for name in found.put_aside:
        yield [f"Put aside, to be looked at and deleted: {one_line(name)}"]


def pending_write(item: PendingIntent, look: TextLook) -> Iterator[Line]:
    """Everything about one write that is pending."""
    yield _intent(item)
    for name, value in item.to_dict().items():
        if value not in (None, [], False) and name not in ("operation_id", "state"):
            shown = when_text(value) if name == "renewed_at" else value
            words = ", ".join(shown) if isinstance(shown, list) else str(shown)
            yield [f"  {name}: {one_line(words)}"]


def recovered(report: RecoveryReport, look: TextLook) -> Iterator[Line]:
    """What was done about each of them."""
    if look.quiet and not report.failed:
        return
    for row in report.recovered:
        what = f"  {row.recovery_kind}"
        if row.operation_kind is not None:
            what += f"  {_what(row.operation_kind, row.branch, row.recovery_for_actor)}"
        yield [(row.operation_id, ID_STYLE), f"{what}: {one_line(row.outcome)}"]
    for operation_id, error in report.failed:
        yield [(operation_id, ID_STYLE), (f"  {one_line(error)}", "red")]
    parts = [] if report.recovered or report.failed else ["Nothing to do"]
    if report.recovered:
        parts.append(f"Recovered {count_text(len(report.recovered), 'write')}")
    if report.failed:
        parts.append(f"{count_text(len(report.failed), 'write')} left as before: run it again")
    if report.running:
        parts.append(f"{count_text(len(report.running), 'write')} running")
    yield ["; ".join(parts)]


def _intent(item: PendingIntent) -> Line:
    line: Line = [(item.operation_id, ID_STYLE), (f"  {item.state}", _STATES[str(item.state)])]
    intent = item.intent
    if intent is None:
        return [*line, f"  {one_line(item.reason or '')}"]
    line.append(f"  {_what(intent.kind, item.branch or intent.branch, intent.actor)}")
    if item.reason is not None:
        line.append((f": {one_line(item.reason)}", "red"))
    return [*line, (f"  last renewed {when_text(item.renewed_us)}", QUIET_STYLE)]


def _what(kind: str, branch: str | None, actor: str | None) -> str:
    by = f" by {one_line(actor)}" if actor else ""
    return f"{one_line(kind)} on {one_line(branch or 'a branch that ended')}{by}"


# -- tables ----------------------------------------------------------------------------------------
# Tables and their indexes as people see them: optimized, indexed, repaired.
#
# Optimized main: commit 01JZ8YB1K4T9W3H6Q8Z2C5E7G0
#   node:Vessel   12 files joined into 1, indexes up to date
#
# edge:CallsAt  verified_maintenance  no row changed: --confirm puts the mirror back
#   the graph shows version 12, other programs find 14: ReserveFragments, Rewrite


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


def optimized(result: OptimizeResult, look: TextLook, verb: str) -> Iterator[Line]:
    """What was done to every table of which there is something to say."""
    branch = one_line(result.branch)
    if result.commit is None:
        yield [("Nothing to do", "bold"), f": {branch} is in order"]
    else:
        commit = (result.commit.id, ID_STYLE)
        yield [(f"{verb} {branch}", "bold green"), ": commit ", commit]
    width = max((len(t.type_key) for t in result.tables), default=0)
    for table in result.tables:
        for said in _optimized_table(table):
            yield [f"  {one_line(table.type_key):<{width}}  {said}"]


def _optimized_table(table: TableOptimized) -> Iterator[str]:
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
    if report.mirrors:
        mirrors = count_text(len(report.mirrors), "mirror")
        done = "Made anew" if report.confirmed else "--confirm makes anew"
        style = "green" if report.confirmed else "bold"
        yield [(f"{done} ", style), f"{mirrors} for other programs: {_names(report.mirrors)}"]
    elif not (report.drifted or report.indexes or report.names or report.edges):
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
