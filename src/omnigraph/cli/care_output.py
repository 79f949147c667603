"""Printing how a graph is doing, and what was done for it.

GraphStatus | CheckReport | CleanupReport | PendingIntent -> [care_output] -> stdout
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line, write_bytes, write_text
from omnigraph.cli.text import count_text, when_text
from omnigraph.manifest import format as graph_format

if TYPE_CHECKING:
    from rich.text import Text

    from omnigraph.maintain.check import CheckReport
    from omnigraph.maintain.cleanup import CleanupReport
    from omnigraph.maintain.recovery import PendingIntent, RecoveryReport
    from omnigraph.maintain.status import GraphStatus

_STATES = {
    "published": "yellow",
    "stalled": "red",
    "running": "green",
    "unreadable": "bold red",
    "unclear": "bold red",
}


def print_status(status: GraphStatus, settings: Settings) -> None:
    """One screen."""
    if settings.json:
        _write_json(status.to_dict())
        return
    from rich.text import Text

    text = Text()
    text.append(one_line(status.uri), "bold")
    text.append(f"  {size_text(status.bytes)} in {count_text(status.objects, 'object')}\n")
    rows: list[tuple[str, ...]] = [("type", "rows", "files", "bytes", "indexed")]
    for kind in status.types:
        covered = "-" if kind.index_coverage is None else f"{kind.index_coverage:.0%}"
        rows.append(
            (
                one_line(kind.type_key),
                f"{kind.rows:,}",
                f"{kind.fragments:,}",
                size_text(kind.bytes),
                covered,
            )
        )
    text.append(_table(rows))
    head = f"{status.commit.id}  {when_text(status.commit.created_at_us)}"
    cleanups = f", {count_text(status.cleanups, 'cleanup')}" if status.cleanups else ""
    for name, value in (
        ("commit", f"{head} on {one_line(status.branch)}"),
        (
            "history",
            f"{count_text(status.history_depth, 'commit')} deep, "
            f"{count_text(status.versions, 'version')} kept{cleanups}",
        ),
        ("format", _format(status.format)),
        ("branches", _names(status.branches)),
        ("tags", _names(status.tags)),
        ("pending", _pending(status.pending)),
    ):
        text.append(f"{name + ':':<10}", "bright_black")
        text.append(f"{value}\n")
    text.append("next:     ", "bright_black")
    text.append("\n          ".join(status.advice) if status.advice else "nothing to do")
    _write(text)


def print_check(report: CheckReport, settings: Settings) -> None:
    """Findings, each with what to do; then what was looked at."""
    if settings.json:
        _write_json(report.to_dict())
        return
    if settings.quiet and report.ok:
        return
    from rich.text import Text

    text = Text()
    for finding in report.findings:
        text.append(f"{finding.code}", "bold red")
        text.append(f"  {one_line(finding.where)}: {one_line(finding.message)}\n")
        text.append(f"    {one_line(finding.remedy)}\n", "bright_black")
    looked = (
        f"{count_text(report.branches, 'branch', 'branches')}, {count_text(report.tags, 'tag')}, "
        f"{count_text(report.commits, 'commit')}, {count_text(report.tables, 'table version')}, "
        f"{count_text(report.files, 'file')}, {count_text(report.rows, 'row')}"
    )
    if report.states:
        looked += f"; {count_text(report.states, 'state')} of the past"
    if report.ok:
        text.append("Whole", "bold green")
        text.append(f": {looked}")
    else:
        text.append(f"{count_text(len(report.findings), 'finding')}", "bold red")
        text.append(f" in {looked}")
    _write(text)


def print_cleanup(report: CleanupReport, settings: Settings, *, command: str) -> None:
    """What was removed, or would be."""
    if settings.json:
        _write_json(report.to_dict())
        return
    if settings.quiet and report.confirmed and not report.errors:
        return
    from rich.text import Text

    text = Text()
    rows = [
        (
            one_line(place.type_key),
            count_text(place.old_versions_removed, "version"),
            count_text(place.files_removed, "object"),
            size_text(place.bytes_removed),
        )
        for place in report.places
        if place.files_removed
    ]
    if rows:
        text.append(_table(rows))
    for place in report.errors:
        text.append(f"  {one_line(place.type_key)}: {one_line(place.error or '')}\n", "red")
    if report.errors:
        left = count_text(len(report.errors), "place")
        text.append(f"{left} left as before, the others are not concerned: run it again\n", "red")
    if report.spared:
        running = count_text(len(report.spared), "long write")
        text.append(f"{running} running: files of the last days are left for the next cleanup\n")
    kept = f"{count_text(report.states_kept, 'state')} kept"
    total = f"{count_text(report.files_removed, 'object')}, {size_text(report.bytes_removed)}"
    if not report.files_removed:
        text.append("Nothing to remove", "bold")
        text.append(f"; {kept}")
    elif report.confirmed:
        text.append("Removed ", "bold green")
        text.append(f"{total}; {kept}")
    else:
        text.append("Would remove ", "bold")
        text.append(f"{total}; {kept}\nThis was a preview. To remove them: {command}")
    _write(text)


def print_intents(
    pending: Sequence[PendingIntent], put_aside: Sequence[str], settings: Settings
) -> None:
    """One line a write that is pending, and what to do about them."""
    if settings.json:
        found = [item.to_dict() for item in pending]
        _write_json({"intents": found, "put_aside": list(put_aside)})
        return
    from rich.text import Text

    lines = [_intent(item) for item in pending] or [Text("No writes are pending.")]
    if not settings.quiet:
        if any(str(item.state) in ("published", "stalled", "unreadable") for item in pending):
            lines.append(Text("To deal with them: omnigraph recovery run", "bright_black"))
        lines.extend(
            Text(f"Put aside, to be looked at and deleted: {one_line(name)}") for name in put_aside
        )
    _write(Text("\n").join(lines))


def print_intent(item: PendingIntent, settings: Settings) -> None:
    """Everything about one write that is pending."""
    if settings.json:
        _write_json(item.to_dict())
        return
    text = _intent(item)
    for name, value in item.to_dict().items():
        if value not in (None, [], False) and name not in ("operation_id", "state"):
            shown = when_text(value) if name == "renewed_at" else value
            words = ", ".join(shown) if isinstance(shown, list) else str(shown)
            text.append(f"\n  {name}: {one_line(words)}")
    _write(text)


def print_recovered(report: RecoveryReport, settings: Settings) -> None:
    """What was done about each of them."""
    if settings.json:
        _write_json(report.to_dict())
        return
    if settings.quiet and not report.failed:
        return
    from rich.text import Text

    text = Text()
    for row in report.recovered:
        text.append(row.operation_id, "yellow")
        text.append(f"  {row.recovery_kind}")
        if row.operation_kind is not None:
            text.append(f"  {_what(row.operation_kind, row.branch, row.recovery_for_actor)}")
        text.append(f": {one_line(row.outcome)}\n")
    for operation_id, error in report.failed:
        text.append(operation_id, "yellow")
        text.append(f"  {one_line(error)}\n", "red")
    told: list[str] = []
    if report.recovered:
        told.append(f"Recovered {count_text(len(report.recovered), 'write')}")
    if report.failed:
        told.append(f"{count_text(len(report.failed), 'write')} left as before: run it again")
    if report.running:
        told.append(f"{count_text(len(report.running), 'write')} running")
    text.append("; ".join(told if report.recovered or report.failed else ["Nothing to do", *told]))
    _write(text)


def size_text(size: int) -> str:
    """``312 B``, ``4.1 KB``, ``2.0 GB``."""
    units = ("B", "KB", "MB", "GB", "TB")
    power = min((len(str(size)) - 1) // 3, len(units) - 1)
    return f"{size / 1000**power:.1f} {units[power]}" if power else f"{size} B"


def _intent(item: PendingIntent) -> Text:
    from rich.text import Text

    text = Text(item.operation_id, "yellow")
    text.append(f"  {item.state}", _STATES[str(item.state)])
    intent = item.intent
    if intent is None:
        text.append(f"  {one_line(item.reason or '')}")
        return text
    text.append(f"  {_what(intent.kind, item.branch or intent.branch, intent.actor)}")
    if item.reason is not None:
        text.append(f": {one_line(item.reason)}", "red")
    text.append(f"  last heard of {when_text(item.renewed_us)}", "bright_black")
    return text


def _what(kind: str, branch: str | None, actor: str | None) -> str:
    by = f" by {one_line(actor)}" if actor else ""
    return f"{one_line(kind)} on {one_line(branch or 'a branch that ended')}{by}"


def _pending(pending: Sequence[PendingIntent]) -> str:
    counts: dict[str, int] = {}
    for item in pending:
        counts[str(item.state)] = counts.get(str(item.state), 0) + 1
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or "nothing"


def _format(number: int) -> str:
    written = graph_format.FORMAT
    return str(number) if number == written else f"{number}, {written} with the next write"


def _names(names: Sequence[str], shown_max: int = 8) -> str:
    shown = ", ".join(one_line(name) for name in names[:shown_max])
    more = len(names) - shown_max
    return (f"{shown} and {more} more" if more > 0 else shown) or "none"


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows in columns: names to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "".join(f"  {line.rstrip()}\n" for line in lines)


def _write(text: Text) -> None:
    from omnigraph.cli.rich_output import rendered

    text.rstrip()
    write_text(rendered(text, sys.stdout))


def _write_json(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    write_bytes(text.encode("utf-8", "backslashreplace"))
