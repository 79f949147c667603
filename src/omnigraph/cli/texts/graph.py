"""A graph and its data as people see them: created, loaded, changed, exported, looked at."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from omnigraph.cli.lines import (
    ID_STYLE,
    NAME_STYLE,
    QUIET_STYLE,
    Line,
    Part,
    TextLook,
    change_parts,
    columns,
    commit_line,
    commit_parts,
    count_text,
    duration,
    plain,
    took,
    when_text,
)
from omnigraph.cli.streams import one_line

if TYPE_CHECKING:
    from omnigraph.api.view import SnapshotView
    from omnigraph.cli.answers import CompletionInstalled, Created, Exported, Release
    from omnigraph.results import LoadResult, MutationResult, TypeCount

_TYPES_MAX = 5
"""A load names so many types; the rest is counted."""


def created(done: Created, look: TextLook) -> Iterator[Line]:
    """What was made and what to do next."""
    catalog, shown = done.view.catalog, one_line(done.uri)
    nodes = count_text(len(catalog.nodes), "node type")
    edges = count_text(len(catalog.edges), "edge type")
    yield [("Created ", "green"), f"a graph at {shown} with {nodes} and {edges}"]
    yield commit_parts(done.view.commit)
    command = f"omnigraph load {shlex.quote(shown)} --data FILE.jsonl --mode append"
    yield [("Next: ", "bold"), command]


def loaded(result: LoadResult, look: TextLook, elapsed_s: float) -> Iterator[Line]:
    """What was loaded, and the commit."""
    place = f"{one_line(result.uri)} in {duration(elapsed_s)}"
    if not result.total_entities and result.commit is None:
        yield [f"Nothing to load: the input holds no entities ({place})"]
        return
    total = count_text(result.total_entities, "entity", "entities")
    what = f"{total} ({_types((*result.nodes, *result.edges))})"
    if result.dry_run:
        yield [("Checked ", "green"), f"{what} for {place}"]
        would = change_parts(result.changes) or ["no change"]
        yield ["nothing was published; it would be ", *would, _unchanged(result)]
        return
    if result.base_branch is not None:
        made = f" branch {one_line(result.branch)} from {one_line(result.base_branch)}"
        yield [("Created", "green"), made]
    if result.commit is None:
        yield [f"Nothing to commit{_unchanged(result)}: {what} into {place}"]
        return
    yield [("Loaded ", "green"), f"{what} into {place}"]
    yield [*commit_line(result.commit, result.changes), _unchanged(result)]


def _unchanged(result: LoadResult) -> str:
    """What the graph held already, exactly so."""
    return f", {result.unchanged_entities:,} unchanged" if result.unchanged_entities else ""


def _types(counts: Sequence[TypeCount]) -> str:
    shown = counts[:_TYPES_MAX]
    parts = [f"{c.entities_loaded:,} {c.name}" for c in shown]
    if more := len(counts) - len(shown):
        parts.append(f"and {count_text(more, 'more type')}")
    return ", ".join(parts)


def mutated(result: MutationResult, look: TextLook, elapsed_s: float | None) -> Iterator[Line]:
    """What a mutation met, and the commit."""
    counts = ((result.affected_nodes, "node"), (result.affected_edges, "edge"))
    met = " and ".join(count_text(count, word) for count, word in counts if count)
    if result.commit is None:
        why = f"{met} matched, as asked already" if met else "nothing matched"
        yield [f"No change{took(elapsed_s)}: {why}"]
    else:
        yield [("Changed ", "green"), f"{met}{took(elapsed_s)}"]
        yield commit_line(result.commit, result.changes)


def exported(done: Exported, look: TextLook) -> Iterator[Line]:
    """How much went where."""
    much = count_text(done.rows, "entity", "entities")
    yield [("Exported ", "green"), f"{much} to {one_line(done.place)}"]


def contents(view: SnapshotView, look: TextLook, uri: str) -> Iterator[Line]:
    """The commit of a state, and a table of types with totals."""
    commit, datasets = view.commit, view.datasets
    branch = f"  {one_line(view.branch)} at version {view.version}"
    yield [(one_line(uri), "bold"), branch]
    when = (f"  {when_text(commit.created_at_us)}", QUIET_STYLE)
    by = f" by {one_line(commit.actor)}" if commit.actor else ""
    yield ["commit ", (commit.id, ID_STYLE), when, f"  {commit.kind}{by}"]
    yield []
    total = sum(d.entity_count for d in datasets)
    rows: list[list[Part]] = [
        [(word, "bold") for word in ("type", "kind", "entities", "version")],
        *(
            [
                (d.type_name, NAME_STYLE),
                (d.entity_kind, QUIET_STYLE),
                f"{d.entity_count:,}",
                (_version(d.published_dataset_version), QUIET_STYLE),
            ]
            for d in datasets
        ),
        [(word, "bold") for word in (count_text(len(datasets), "type"), "", f"{total:,}", "")],
    ]
    head, *middle, foot = columns(rows, right=(2, 3), gap="   ")
    rule: Line = [look.rule * len(plain(head))]
    yield from (head, rule, *middle, rule, foot)


def _version(number: int | None) -> str:
    return "-" if number is None else str(number)


def release(found: Release, look: TextLook) -> Iterator[Line]:
    """The release and the formats of graphs that it knows."""
    yield [f"omnigraph {found.version}"]
    read = ", ".join(map(str, found.formats_read))
    yield [f"graph formats: reads {read}; writes {found.format_written}"]


def completion_installed(done: CompletionInstalled, look: TextLook) -> Iterator[Line]:
    """Where the script is, and what comes next."""
    yield [f"Completion for {done.shell} is in {one_line(done.path)}"]
    yield [(f"Next: {done.next_step}", QUIET_STYLE)]
