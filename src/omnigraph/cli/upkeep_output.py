"""Printing what maintenance did, and how far indexes reach.

    OptimizeResult | IndexStatus -> [upkeep_output] -> stdout

    Optimized main: commit 01JZ8YB1K4T9W3H6Q8Z2C5E7G0
      node:Vessel   12 files joined into 1, indexes built
      edge:CallsAt  nothing to do

A type that needed nothing is not named unless something is to be said about it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line, write_bytes, write_text
from omnigraph.maintain.indexes import IndexState, IndexStatus
from omnigraph.maintain.optimize import BUSY, DRIFTED, OptimizeResult, TableOptimized

if TYPE_CHECKING:
    from rich.text import Text

_STATE_STYLES = {
    IndexState.COMPLETE: "green",
    IndexState.PARTIAL: "yellow",
    IndexState.MISSING: "red",
    IndexState.PENDING: "bright_black",
}
_REASONS = {
    BUSY: "others wrote it all the time: try again later",
    DRIFTED: "another program changed it: see 'omnigraph repair'",
}


def print_optimized(result: OptimizeResult, settings: Settings, *, verb: str) -> None:
    """What was done to every table that has rows."""
    if settings.json:
        _write_json(result.to_dict())
        return
    if settings.quiet:
        return
    from rich.text import Text

    text = Text()
    if result.commit is None:
        text.append("Nothing to do", "bold")
        text.append(f": {one_line(result.branch)} is in order")
    else:
        text.append(f"{verb} {one_line(result.branch)}", "bold green")
        text.append(": commit ")
        text.append(result.commit.id, "yellow")
    width = max((len(t.type_key) for t in result.tables), default=0)
    for table in result.tables:
        for line in _lines(table):
            text.append(f"\n  {one_line(table.type_key):<{width}}  {line}")
    _write(text)


def _lines(table: TableOptimized) -> list[str]:
    lines: list[str] = []
    if table.committed:
        joined, made = table.fragments_removed, table.fragments_added
        files = f"{joined} {_files(joined)} joined into {made}, " if joined else ""
        lines.append(f"{files}indexes up to date")
    if table.skipped is not None:
        reason = _REASONS.get(table.skipped, table.skipped)
        lines.append(f"skipped, {one_line(reason)}{_versions(table)}")
    lines += [f"no index on {one_line(p.property_name)}: {p.reason}" for p in table.pending_indexes]
    return lines


def _versions(table: TableOptimized) -> str:
    if table.lance_head_version is None:
        return ""
    shown, head = table.published_dataset_version, table.lance_head_version
    return f" (published version {shown}, HEAD {head})"


def _files(count: int) -> str:
    return "file" if count == 1 else "files"


def print_indexes(indexes: Sequence[IndexStatus], settings: Settings) -> None:
    """One line an index."""
    if settings.json:
        _write_json({"indexes": [status.to_dict() for status in indexes]})
        return
    from rich.text import Text

    text = Text("\n").join(_status(indexes)) if indexes else Text("No types, so no indexes.")
    _write(text)


def _status(indexes: Sequence[IndexStatus]) -> list[Text]:
    from rich.text import Text

    names = [one_line(f"{s.type_key}.{s.property_name}") for s in indexes]
    width = max(map(len, names))
    lines: list[Text] = []
    for name, status in zip(names, indexes, strict=True):
        line = Text(f"{name:<{width}}  {status.kind:<6}  ")
        line.append(f"{status.state:<8}", _STATE_STYLES[status.state])
        line.append(f"  {status.rows_indexed:,} of {status.rows:,} rows")
        if status.reason is not None:
            line.append(f"  {one_line(status.reason)}", "bright_black")
        lines.append(line)
    return lines


def _write(text: Text) -> None:
    from omnigraph.cli.rich_output import rendered

    write_text(rendered(text, sys.stdout))


def _write_json(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    write_bytes(text.encode("utf-8", "backslashreplace"))
