"""Schema and query files in their one layout.

    text -> [formatting] -> format_schema | format_queries -> text

A text that cannot be read has no layout: it stays as it is, with its findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from omnigraph.errors import TextError


class Language(StrEnum):
    """The value is the suffix of its files, without the dot."""

    SCHEMA = "pg"
    QUERY = "gq"


class FmtMode(StrEnum):
    """What is done with a text whose layout is not the one."""

    WRITE = "write"
    CHECK = "check"
    DIFF = "diff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """One text, before and after."""

    name: str
    before: str
    after: str
    """Equal to ``before`` when there are findings."""
    error: TextError | None = None

    @property
    def changed(self) -> bool:
        """Whether its layout was not the one."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """As a patch; nothing if nothing changed."""
        lines = unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            self.name,
            self.name,
        )
        return "".join(
            x if x.endswith("\n") else f"{x}\n\\ No newline at end of file\n" for x in lines
        )

    def to_dict(self, mode: FmtMode) -> dict[str, Any]:
        """Plain data: what ``fmt --json`` says about a file."""
        facts: dict[str, Any] = {"name": self.name, "changed": self.changed}
        if mode is FmtMode.DIFF and self.changed:
            facts["diff"] = self.diff
        if self.error is not None:
            facts |= self.error.to_dict()
        return facts


def formatted(text: str, name: str, language: Language) -> Formatted:
    """The text in its one layout, or its findings."""
    try:
        if language is Language.SCHEMA:
            from omnigraph.schema.format import format_schema

            after = format_schema(text, name)
        else:
            from omnigraph.query.format import format_queries

            after = format_queries(text, name)
    except TextError as error:
        return Formatted(name=name, before=text, after=text, error=error)
    return Formatted(name=name, before=text, after=after)
