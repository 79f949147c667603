"""Printing a plan of a schema change, and what applying it did.

SchemaPlan | SchemaApplyResult -> [schema_output] -> stdout
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from omnigraph.cli.care_output import size_text
from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line, write_bytes, write_text
from omnigraph.cli.text import count_text
from omnigraph.maintain.purge import PurgeReport
from omnigraph.maintain.schema_apply import SchemaApplyResult
from omnigraph.schema.migrate import SchemaPlan, Step
from omnigraph.schema.migrate.text import headline, mark, remarks, total

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"+": "green", "-": "red", "~": "blue", "!": "bold red"}


def print_plan(plan: SchemaPlan, settings: Settings) -> None:
    """The steps; a plan is what was asked for, so quiet does not silence it."""
    if settings.json:
        _write_json(plan.to_dict())
        return
    _write(_plan(plan))


def print_applied(result: SchemaApplyResult, settings: Settings) -> None:
    """What was done, or would be."""
    if settings.json:
        _write_json(result.to_dict())
        return
    if settings.quiet and not result.dry_run:
        return
    text = _plan(result.plan)
    if result.commit is not None:
        text.append("\nApplied: ", "bold green")
        text.append("commit ")
        text.append(result.commit.id, "yellow")
        text.append(f" on {one_line(result.branch)}")
        if result.purged is not None:
            _append_purge(text, result.purged, result.uri)
    elif result.plan:
        text.append("\nNothing was changed: this was a dry run, and it would succeed")
    _write(text)


def _plan(plan: SchemaPlan) -> Text:
    from rich.text import Text

    text = Text()
    for warning in plan.warnings:
        text.append(f"warning: line {warning.line}: {one_line(warning.message)}\n", "yellow")
    for step in plan.steps:
        _append(text, step)
    text.append(total(plan), "bold")
    return text


def _append(text: Text, step: Step) -> None:
    sign = mark(step)
    text.append(f"{sign} {one_line(headline(step))}\n", _STYLES[sign])
    loud = step.destructive or not step.supported
    for line in remarks(step):
        text.append(f"    {one_line(line)}\n", "red" if loud else "bright_black")


def _append_purge(text: Text, purged: PurgeReport, uri: str) -> None:
    """What became of data that was dropped for good, and what to run if something is left."""
    names = one_line(", ".join(purged.dropped))
    removed = f"{count_text(purged.files_removed, 'object')}, {size_text(purged.bytes_removed)}"
    text.append("\nPurged ", "bold green" if purged.complete else "bold yellow")
    text.append(f"{names}: {removed}")
    if purged.complete:
        return
    if purged.still_in:
        text.append(f"\n  still readable in {one_line(', '.join(purged.still_in))}", "yellow")
    if purged.spared:
        writes = count_text(len(purged.spared), "long write")
        text.append(f"\n  {writes} running: nothing of their time was removed", "yellow")
    if purged.too_young:
        young = count_text(purged.too_young, "object")
        text.append(f"\n  {young} written in this very moment, left for a cleanup", "yellow")
    if purged.error is not None:
        text.append(f"\n  not complete: {one_line(purged.error)}", "red")
    until = "when these are gone" if purged.still_in else "soon"
    text.append(f"\nNext, {until}: omnigraph cleanup {one_line(uri)} --keep 1 --confirm")


def _write(text: Text) -> None:
    from omnigraph.cli.rich_output import rendered

    write_text(rendered(text, sys.stdout))


def _write_json(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    write_bytes(text.encode("utf-8", "backslashreplace"))
