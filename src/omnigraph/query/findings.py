"""Collects everything that is wrong with one query text, to be reported together."""

from __future__ import annotations

from omnigraph.errors import QueryError
from omnigraph.lang.findings import TextFindings
from omnigraph.lang.source import Source


class QueryFindings(TextFindings):
    """A growing list of diagnostics for one query text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source, QueryError)
