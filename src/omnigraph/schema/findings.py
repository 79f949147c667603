"""Collects everything that is wrong with one schema text, to be reported together."""

from __future__ import annotations

from omnigraph.errors import SchemaError
from omnigraph.lang.findings import TextFindings
from omnigraph.lang.source import Source


class SchemaFindings(TextFindings):
    """A growing list of diagnostics for one schema text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, SchemaError)
