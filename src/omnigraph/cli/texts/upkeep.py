"""How a graph is doing, and what was done for it, as people see it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from omnigraph.cli.lines import (
    ID_STYLE,
    QUIET_STYLE,
    Line,
    TextLook,
    columns,
    count_text,
    size_text,
    when_text,
)
from omnigraph.cli.streams import one_line
from omnigraph.manifest import format as graph_format

if TYPE_CHECKING:
    from omnigraph.cli.answers import PendingWrites
    from omnigraph.upkeep.check import CheckReport
    from omnigraph.upkeep.cleanup import CleanupReport
    from omnigraph.upkeep.recovery import PendingIntent, RecoveryReport
    from omnigraph.upkeep.status import GraphStatus

_STATES = {
    "published": "yellow",
    "stalled": "red",
    "running": "green",
    "unreadable": "bold red",
    "unclear": "bold red",
}
_NAMES_MAX = 8
_LABEL_WIDTH = 10


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
    facts = {
        "commit": f"{head} on {one_line(found.branch)}",
        "history": f"{depth}, {count_text(found.versions, 'version')} kept{cleanups}",
        "format": _format(found.format),
        "branches": _names(found.branches),
        "tags": _names(found.tags),
        "pending": _pending(found.pending),
    }
    for name, value in facts.items():
        yield [(f"{name + ':':<{_LABEL_WIDTH}}", QUIET_STYLE), value]
    first, *rest = found.advice or ["nothing to do"]
    yield [(f"{'next:':<{_LABEL_WIDTH}}", QUIET_STYLE), first]
    for line in rest:
        yield [" " * _LABEL_WIDTH, line]


def _pending(pending: Sequence[PendingIntent]) -> str:
    counts = Counter(str(item.state) for item in pending)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "nothing"


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
        yield [(f"{left} left as before, the others are not concerned: run it again", "red")]
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
    told = [] if report.recovered or report.failed else ["Nothing to do"]
    if report.recovered:
        told.append(f"Recovered {count_text(len(report.recovered), 'write')}")
    if report.failed:
        told.append(f"{count_text(len(report.failed), 'write')} left as before: run it again")
    if report.running:
        told.append(f"{count_text(len(report.running), 'write')} running")
    yield ["; ".join(told)]


def _intent(item: PendingIntent) -> Line:
    line: Line = [(item.operation_id, ID_STYLE), (f"  {item.state}", _STATES[str(item.state)])]
    intent = item.intent
    if intent is None:
        return [*line, f"  {one_line(item.reason or '')}"]
    line.append(f"  {_what(intent.kind, item.branch or intent.branch, intent.actor)}")
    if item.reason is not None:
        line.append((f": {one_line(item.reason)}", "red"))
    return [*line, (f"  last heard of {when_text(item.renewed_us)}", QUIET_STYLE)]


def _what(kind: str, branch: str | None, actor: str | None) -> str:
    by = f" by {one_line(actor)}" if actor else ""
    return f"{one_line(kind)} on {one_line(branch or 'a branch that ended')}{by}"
