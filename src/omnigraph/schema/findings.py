"""Collects everything that is wrong with one schema text, to be reported together."""

from __future__ import annotations

from omnigraph.errors import Diagnostic, SchemaError
from omnigraph.lang.source import Source, Span
from omnigraph.schema.codes import Code


class Findings:
    """A growing list of diagnostics for one source."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._diagnostics: dict[Diagnostic, None] = {}

    def add(
        self,
        code: Code,
        span: Span,
        message: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Record a finding; the same finding twice counts once."""
        found = self.source.diagnostic(
            code=str(code), message=message, span=span, expected=expected, hint=hint
        )
        self._diagnostics[found] = None

    def raise_if_any(self) -> None:
        """Raise ``SchemaError`` with all findings in the order of the text."""
        if self._diagnostics:
            ordered = sorted(self._diagnostics, key=lambda d: (d.line, d.column, d.code))
            raise SchemaError(self.source.name, ordered)
