"""Everything that is wrong with one text, collected to be reported together.

    lexer, parser, checks -> [findings] -> SchemaError or QueryError

Each language has its own codes and its own error; how findings are kept, ordered and raised is the
same for both and stands here.
"""

from __future__ import annotations

from enum import StrEnum

from omnigraph.errors import Diagnostic, TextError
from omnigraph.lang.source import Source, Span

FINDINGS_MAX = 100
"""More is not read at once, and each finding carries its line: a long one must not fill memory."""


class TextFindings:
    """A growing list of diagnostics for one source."""

    def __init__(self, source: Source, error: type[TextError]) -> None:
        self.source = source
        self._error = error
        self._diagnostics: dict[Diagnostic, None] = {}

    def add(
        self,
        code: StrEnum,
        span: Span,
        message: str,
        *,
        expected: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Record a finding; the same finding twice counts once, and ``FINDINGS_MAX`` are kept."""
        if len(self._diagnostics) >= FINDINGS_MAX:
            return
        found = self.source.diagnostic(
            code=str(code), message=message, span=span, expected=expected, hint=hint
        )
        self._diagnostics[found] = None

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All findings in the order of the text."""
        return tuple(sorted(self._diagnostics, key=lambda d: (d.line, d.column, d.code)))

    def raise_if_any(self) -> None:
        """Raise the language's error with all findings in the order of the text."""
        if self._diagnostics:
            raise self._error(self.source.name, self.diagnostics)
