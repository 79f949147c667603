"""What lint found, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from omnigraph.cli.failure import diagnostic_lines
from omnigraph.cli.streams import one_line
from omnigraph.cli.text import count_text

if TYPE_CHECKING:
    from omnigraph.query.describe import Descriptor, Touched, ValueDescriptor
    from omnigraph.query.lint import LintReport

_STYLES = {"error": "bold red", "warning": "bold yellow"}


def lint_text(reports: Sequence[LintReport], *, describe: bool, quiet: bool) -> Text:
    """Every finding at its place, what each query does if asked for, and a line a file."""
    parts: list[Text] = []
    for report in reports:
        parts += _findings(report)
        if describe:
            parts += [_query(q) for q in report.queries]
        if not quiet:
            parts.append(_summary(report))
    return Text("\n").join(parts)


def _findings(report: LintReport) -> Iterable[Text]:
    for finding in report.findings:
        first, *rest = diagnostic_lines(report.source, finding.diagnostic)
        text = Text.assemble((f"{finding.severity}: ", _STYLES[finding.severity]), first)
        for line in rest:
            text.append(f"\n{line}")
        yield text


def _summary(report: LintReport) -> Text:
    errors = sum(f.severity == "error" for f in report.findings)
    warnings = len(report.findings) - errors
    parts = [count_text(len(report.queries), "valid query", "valid queries")]
    parts += [count_text(errors, "error")] if errors else []
    parts += [count_text(warnings, "warning")] if warnings else []
    return Text(f"{one_line(report.source)}: {', '.join(parts)}")


def _query(query: Descriptor) -> Text:
    text = Text.assemble((query.name or "(no name)", "bold"), f"  {query.operation}")
    rows = [
        ("about", one_line(query.description or "")),
        ("for programs", one_line(query.instruction or "")),
        ("takes", _values(query.params)),
        ("gives", _values(query.result)),
        ("reads", _types(query.reads)),
        ("writes", _types(query.writes)),
    ]
    for label, value in rows:
        if value:
            text.append(f"\n  {label + ':':<13} ", "bright_black").append(value)
    return text


def _values(values: Iterable[ValueDescriptor]) -> str:
    return ", ".join(f"{v.name}: {_kind(v)}" for v in values)


def _kind(value: ValueDescriptor) -> str:
    kind = value.kind
    if value.item_kind is not None:
        kind = f"[{value.item_kind}]"
    elif value.vector_dim is not None:
        kind = f"vector({value.vector_dim})"
    return kind + ("?" if value.nullable else "")


def _types(types: Iterable[Touched]) -> str:
    return ", ".join(f"{t.kind} {t.type_name}" for t in types)
