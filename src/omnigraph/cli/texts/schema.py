"""Schemas and files of queries as people see them: checked, planned, applied, laid out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.failure import diagnostic_lines
from omnigraph.cli.lines import ID_STYLE, QUIET_STYLE, Line, TextLook, count_text, size_text
from omnigraph.cli.streams import one_line, printable

if TYPE_CHECKING:
    from omnigraph.cli.answers import Linted, ValidSchema
    from omnigraph.cli.commands.fmt import FormattedFiles
    from omnigraph.infer.schema import Inferred
    from omnigraph.query.describe import Descriptor, Touched, ValueDescriptor
    from omnigraph.query.lint import LintReport
    from omnigraph.schema.migrate import SchemaPlan, Step
    from omnigraph.upkeep.purge import PurgeReport
    from omnigraph.upkeep.schema_apply import SchemaApplyResult

_STEP_STYLES = {"+": "green", "-": "red", "~": "blue", "!": "bold red"}
_FINDING_STYLES = {"error": "bold red", "warning": "bold yellow"}

# ---------------------------------------------------------------- changes of a schema


def schema_plan(plan: SchemaPlan, look: TextLook) -> Iterator[Line]:
    """The steps; a plan is what was asked for, so quiet does not silence it."""
    from omnigraph.schema.migrate.steps import total

    for warning in plan.warnings:
        yield [(f"warning: line {warning.line}: {one_line(warning.message)}", "yellow")]
    for step in plan.steps:
        yield from _step(step)
    yield [(total(plan), "bold")]


def _step(step: Step) -> Iterator[Line]:
    from omnigraph.schema.migrate.steps import headline, mark, remarks

    sign = mark(step)
    yield [(f"{sign} {one_line(headline(step))}", _STEP_STYLES[sign])]
    loud = step.destructive or not step.supported
    for line in remarks(step):
        yield [(f"    {one_line(line)}", "red" if loud else QUIET_STYLE)]


def schema_applied(result: SchemaApplyResult, look: TextLook) -> Iterator[Line]:
    """What was done, or would be."""
    if look.quiet and not result.dry_run:
        return
    yield from schema_plan(result.plan, look)
    if result.commit is not None:
        commit = (result.commit.id, ID_STYLE)
        yield [("Applied: ", "bold green"), "commit ", commit, f" on {one_line(result.branch)}"]
        if result.purged is not None:
            yield from _purged(result.purged, result.uri)
    elif result.plan:
        yield ["Nothing was changed: this was a dry run, and it would succeed"]


def _purged(purged: PurgeReport, uri: str) -> Iterator[Line]:
    """What became of data that was dropped for good, and what to run if something is left."""
    names = one_line(", ".join(purged.dropped))
    removed = f"{count_text(purged.files_removed, 'object')}, {size_text(purged.bytes_removed)}"
    yield [("Purged ", "bold green" if purged.complete else "bold yellow"), f"{names}: {removed}"]
    if purged.complete:
        return
    if purged.still_in:
        yield [(f"  still readable in {one_line(', '.join(purged.still_in))}", "yellow")]
    if purged.spared:
        writes = count_text(len(purged.spared), "long write")
        yield [(f"  {writes} running: nothing of their time was removed", "yellow")]
    if purged.too_young:
        young = count_text(purged.too_young, "object")
        yield [(f"  {young} written in this very moment, left for a cleanup", "yellow")]
    if purged.error is not None:
        yield [(f"  not complete: {one_line(purged.error)}", "red")]
    until = "when these are gone" if purged.still_in else "soon"
    yield [f"Next, {until}: omnigraph cleanup {one_line(uri)} --keep 1 --confirm"]


# ---------------------------------------------------------------- files


def inferred(found: Inferred, look: TextLook) -> Iterator[Line]:
    """The text, to be put into a file."""
    for line in found.schema.splitlines():
        yield [printable(line)]


def valid_schema(found: ValidSchema, look: TextLook) -> Iterator[Line]:
    """That it is valid, and what it declares."""
    catalog = found.catalog
    counts = (
        count_text(len(catalog.nodes), "node type"),
        count_text(len(catalog.edges), "edge type"),
        count_text(len(catalog.interfaces), "interface"),
    )
    yield [("Valid: ", "green"), f"{one_line(found.name)} declares {', '.join(counts)}"]


def formatted_files(done: FormattedFiles, look: TextLook) -> Iterator[Line]:
    """Names of what changed, or would."""
    for file in done.files:
        if file.changed and not done.written:
            yield [one_line(file.name)]
        elif file.changed and not look.quiet:
            yield [("Formatted ", "green"), one_line(file.name)]


def linted(found: Linted, look: TextLook) -> Iterator[Line]:
    """Every finding at its place, what each query does if asked for, and a line a file."""
    for report in found.reports:
        yield from _findings(report)
        for query in report.queries if found.describe else ():
            yield from _query(query)
        if not look.quiet:
            yield [_summary(report)]


def _findings(report: LintReport) -> Iterator[Line]:
    for finding in report.findings:
        first, *rest = diagnostic_lines(report.source, finding.diagnostic)
        yield [(f"{finding.severity}: ", _FINDING_STYLES[finding.severity]), first]
        for line in rest:
            yield [line]


def _summary(report: LintReport) -> str:
    errors = sum(f.severity == "error" for f in report.findings)
    warnings = len(report.findings) - errors
    parts = [count_text(len(report.queries), "valid query", "valid queries")]
    parts += [count_text(errors, "error")] if errors else []
    parts += [count_text(warnings, "warning")] if warnings else []
    return f"{one_line(report.source)}: {', '.join(parts)}"


def _query(query: Descriptor) -> Iterator[Line]:
    yield [(query.name or "(no name)", "bold"), f"  {query.operation}"]
    facts = [
        ("about", one_line(query.description or "")),
        ("for programs", one_line(query.instruction or "")),
        ("takes", _values(query.params)),
        ("gives", _values(query.result)),
        ("reads", _types(query.reads)),
        ("writes", _types(query.writes)),
    ]
    for label, value in facts:
        if value:
            yield [(f"  {label + ':':<13} ", QUIET_STYLE), value]


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
