"""Checks a file of queries without running them: errors, warnings, and what each query does.

    .gq text, catalog -> parse -> check, per query -> [lint] -> report

An error in one query does not hide the others, be it in its meaning or in its grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from omnigraph.errors import Diagnostic, render_diagnostic
from omnigraph.lang.source import Source, Span
from omnigraph.query import ast
from omnigraph.query.check import check_query
from omnigraph.query.codes import QueryCode, QueryFindings
from omnigraph.query.compile import check_names
from omnigraph.query.describe import Descriptor, describe
from omnigraph.query.parse import read_queries
from omnigraph.schema.catalog import Catalog, GraphType

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """Something about a file, at a place."""

    severity: Severity
    diagnostic: Diagnostic
    query: str | None = None
    """The query it stands in, if that has a name."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data, without absent fields."""
        where = {} if self.query is None else {"query": self.query}
        return {"severity": self.severity, **where, **self.diagnostic.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """Everything about one file."""

    source: str
    findings: tuple[LintFinding, ...]
    """In the order of the text."""
    queries: tuple[Descriptor, ...]
    """Of the queries without errors, in the order of the text."""

    @property
    def status(self) -> Literal["ok", "warning", "error"]:
        """The worst that was found."""
        severities = {f.severity for f in self.findings}
        return "error" if "error" in severities else "warning" if severities else "ok"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "source": self.source,
            "status": self.status,
            "findings": [f.to_dict() for f in self.findings],
            "queries": [q.to_dict() for q in self.queries],
        }

    def __str__(self) -> str:
        return "\n".join(
            f"{f.severity}: {render_diagnostic(self.source, f.diagnostic)}" for f in self.findings
        )


def lint(text: str, catalog: Catalog, *, name: str = "query") -> LintReport:
    """Look at every query of a text. Never raises for what the text says."""
    source = Source(name=name, text=text)
    read = read_queries(source)
    findings: list[LintFinding] = list(_errors(read.diagnostics))
    queries: list[Descriptor] = []
    names = QueryFindings(source)
    check_names(read.file, names)
    findings += _errors(names.diagnostics)
    for query in read.intact:
        own = QueryFindings(source)
        checked = check_query(query, catalog, own)
        label = query.name.text if query.name else None
        findings += _errors(own.diagnostics, label)
        if checked is not None:
            queries.append(describe(checked, catalog))
            findings += _warnings(checked.warnings, label)
        findings += _warnings(_without_params(query, source), label)
    if not read.diagnostics:  # What could not be read may be the update.
        findings += _warnings(_never_updated(read.file, catalog, source))
    findings.sort(key=lambda f: (f.diagnostic.line, f.diagnostic.column, f.diagnostic.code))
    return LintReport(source=name, findings=tuple(findings), queries=tuple(queries))


def _errors(diagnostics: Iterable[Diagnostic], query: str | None = None) -> Iterator[LintFinding]:
    return (LintFinding(severity="error", diagnostic=d, query=query) for d in diagnostics)


def _warnings(diagnostics: Iterable[Diagnostic], query: str | None = None) -> Iterator[LintFinding]:
    return (LintFinding(severity="warning", diagnostic=d, query=query) for d in diagnostics)


def _without_params(query: ast.QueryDecl, source: Source) -> Iterator[Diagnostic]:
    """A named change that always does the same is rarely meant."""
    if isinstance(query.body, ast.MutationBody) and query.name is not None and not query.params:
        message = f"mutation `{query.name.text}` declares no parameters"
        yield source.diagnostic(
            code=str(QueryCode.NO_PARAMETERS), message=message, span=query.name.span
        )


def _never_updated(file: ast.QueryFile, catalog: Catalog, source: Source) -> Iterator[Diagnostic]:
    """Nullable properties of updated types that nothing ever fills in later."""
    updated: dict[str, tuple[GraphType, Span]] = {}
    assigned: set[tuple[str, str]] = set()
    for query in file.queries:
        statements = query.body.statements if isinstance(query.body, ast.MutationBody) else ()
        for statement in statements:
            if isinstance(statement, ast.DeleteStatement):
                continue
            name = statement.type_name
            target = catalog.nodes.get(name.text) or catalog.edge(name.text)
            if target is None or (
                isinstance(statement, ast.InsertStatement) and not statement.upsert
            ):
                continue
            if isinstance(statement, ast.UpdateStatement):
                updated.setdefault(target.table_key, (target, name.span))
            assigned.update((target.table_key, a.property.text) for a in statement.assignments)
    for table, (target, span) in updated.items():
        for prop in target.properties:
            exempt = prop.name in target.key or prop.embed is not None
            if prop.type.nullable and not exempt and (table, prop.name) not in assigned:
                yield source.diagnostic(
                    code=str(QueryCode.NEVER_UPDATED),
                    message=f"no update sets the nullable property {target.name}.{prop.name}",
                    span=span,
                )
