"""Lengths of time on the command line: ``30d``, ``12h``, ``90m``, ``45s``."""

from __future__ import annotations

import re
from typing import Any

import click

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


class Span(click.ParamType[float]):
    """A length of time, in seconds."""

    name = "span"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read a number with a unit."""
        if isinstance(value, (int, float)):
            return float(value)
        found = _SPAN.fullmatch(str(value).strip())
        if found is None:
            self.fail(f"'{value}' is no length of time; write 30d, 12h or 90m.", param, ctx)
        return float(found[1]) * _SECONDS[found[2].lower()]


SPAN = Span()
