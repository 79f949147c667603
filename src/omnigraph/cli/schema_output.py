"""Printing a plan of a schema change, and what applying it did.

SchemaPlan | SchemaApplyResult -> [schema_output] -> stdout
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line, write_bytes, write_text
from omnigraph.maintain.schema_apply import SchemaApplyResult
from omnigraph.schema.migrate import DropMode, SchemaPlan, Step
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
        if any(step.mode is DropMode.HARD for step in result.plan.destructive):
            text.append(f"\nNext: omnigraph cleanup {one_line(result.uri)} --keep 1 --confirm")
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


def _write(text: Text) -> None:
    from omnigraph.cli.rich_output import rendered

    write_text(rendered(text, sys.stdout))


def _write_json(document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
    write_bytes(text.encode("utf-8", "backslashreplace"))
