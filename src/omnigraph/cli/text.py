"""Results as text for people, as rich renderables; nothing is printed here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from omnigraph.cli.streams import one_line, printable
from omnigraph.manifest.snapshot import GraphCommit, TableChange
from omnigraph.results import Commits, LoadResult, MutationResult, TypeCount, instant

if TYPE_CHECKING:
    from omnigraph.schema.catalog import Catalog
    from omnigraph.view import SnapshotView

ID_STYLE = "yellow"
QUIET_STYLE = "bright_black"
_TYPES_MAX = 5
"""A load names so many types; the rest is counted."""


def created_text(uri: str, view: SnapshotView) -> Text:
    """What was made and what to do next."""
    nodes, edges = len(view.catalog.nodes), len(view.catalog.edges)
    shown = one_line(uri)
    types = f"{count_text(nodes, 'node type')} and {count_text(edges, 'edge type')}"
    return Text.assemble(
        ("Created ", "green"),
        f"a graph at {shown} with {types}\n",
        *commit_line(view.commit),
        ("\nNext: ", "bold"),
        f"omnigraph load {shlex.quote(shown)} --data FILE.jsonl --mode append",
    )


def loaded_text(result: LoadResult, elapsed_s: float) -> Text:
    """What was loaded, and the commit."""
    place = f"{one_line(result.uri)} in {duration(elapsed_s)}"
    if not result.total_entities and result.commit is None:
        return Text(f"Nothing to load: the input holds no entities ({place})")
    counts = (*result.nodes, *result.edges)
    total = count_text(result.total_entities, "entity", "entities")
    if result.dry_run:
        checked = Text.assemble(("Checked ", "green"), f"{total} ({_types(counts)}) for {place}\n")
        would = change_parts(result.changes) or ["no change"]
        return checked + Text.assemble("nothing was published; it would be ", *would)
    first = Text.assemble(("Loaded ", "green"), f"{total} ({_types(counts)}) into {place}\n")
    if result.base_branch is not None:
        made = f" branch {one_line(result.branch)} from {one_line(result.base_branch)}\n"
        first = Text.assemble(("Created", "green"), made) + first
    if result.commit is None:
        return first + Text("no commit: the graph held all of it already")
    return first + Text.assemble(*commit_line(result.commit), "  ", *change_parts(result.changes))


def mutated_text(result: MutationResult, elapsed_s: float | None) -> Text:
    """What a mutation met, and the commit."""
    met = [
        count_text(count, word)
        for count, word in ((result.affected_nodes, "node"), (result.affected_edges, "edge"))
        if count
    ]
    if result.commit is None:
        why = f"{' and '.join(met)} matched, as asked already" if met else "nothing matched"
        return Text(f"No change{took(elapsed_s)}: {why}")
    return Text.assemble(
        ("Changed ", "green"),
        f"{' and '.join(met)}{took(elapsed_s)}\n",
        *commit_line(result.commit),
        "  ",
        *change_parts(result.changes),
    )


def exported_text(lines: int, name: str) -> Text:
    """How much went where."""
    return Text.assemble(
        ("Exported ", "green"), f"{count_text(lines, 'entity', 'entities')} to {one_line(name)}"
    )


def valid_schema_text(name: str, catalog: Catalog) -> Text:
    """That it is valid, and what it declares."""
    counts = (
        count_text(len(catalog.nodes), "node type"),
        count_text(len(catalog.edges), "edge type"),
        count_text(len(catalog.interfaces), "interface"),
    )
    return Text.assemble(("Valid: ", "green"), f"{one_line(name)} declares {', '.join(counts)}")


def snapshot_parts(uri: str, view: SnapshotView) -> tuple[Text, Table]:
    """The head commit, and a table of types with totals."""
    head = Text.assemble(
        (one_line(uri), "bold"), f"  {one_line(view.branch)} at version {view.version}\n",
        *commit_line(view.commit, with_branch=False),
        (f"  {when_text(view.commit.created_at_us)}", QUIET_STYLE),
        *_by(view.commit),
        "\n",
    )  # fmt: skip
    datasets = view.datasets
    total = sum(d.entity_count for d in datasets)
    table = Table(
        box=box.SIMPLE, show_edge=False, show_footer=True, pad_edge=False, header_style="bold"
    )
    table.add_column("type", count_text(len(datasets), "type"), overflow="fold")
    table.add_column("kind")
    table.add_column("entities", f"{total:,}", justify="right")
    table.add_column("version", justify="right")
    for d in datasets:
        version = "-" if d.published_dataset_version is None else str(d.published_dataset_version)
        table.add_row(
            Text(d.type_name, "cyan"),
            Text(d.entity_kind, QUIET_STYLE),
            f"{d.entity_count:,}",
            Text(version, QUIET_STYLE),
        )
    return head, table


def commits_text(commits: Commits) -> Text:
    """One line a commit, like `git log --oneline`."""
    if not commits:
        return Text("No commits match.")
    changes = [Text.assemble(*change_parts(c.changes)) for c in commits]
    actors = [one_line(c.actor) if c.actor else "-" for c in commits]
    width = max(t.cell_len for t in changes)
    actor_width = max(len(a) for a in actors)
    kind_width = max(len(c.kind) for c in commits)
    lines: list[Text] = []
    for commit, change, actor in zip(commits, changes, actors, strict=True):
        line = Text.assemble(
            (commit.id, ID_STYLE),
            (f"  {when_text(commit.created_at_us)}  ", QUIET_STYLE),
            (f"{actor:<{actor_width}}  ", "cyan"),
            f"{commit.kind:<{kind_width}}  ",
            change,
        )
        if commit.message:
            line.append(" " * (width - change.cell_len) + "  " + first_line(commit.message))
        line.rstrip()
        lines.append(line)
    return Text("\n").join(lines)


def commit_text(commit: GraphCommit) -> Text:
    """Everything about one commit."""
    rows = [
        ("branch", one_line(commit.branch)),
        ("version", str(commit.manifest_version)),
        ("parent", commit.parent_id or "- (the first commit)"),
        ("merged", commit.merged_parent_id),
        ("actor", one_line(commit.actor) if commit.actor else "-"),
        ("date", when_text(commit.created_at_us)),
        ("kind", commit.kind),
    ]
    text = Text.assemble("commit ", (commit.id, ID_STYLE)) + fact_lines(rows)
    if commit.message:
        text.append(indented(commit.message))
    if commit.changes:
        text.append("\n")
        names = [key.partition(":")[2] for key in commit.changes]
        width = max(len(name) for name in names)
        for name, change in zip(names, commit.changes.values(), strict=True):
            text.append("\n  ").append(f"{name:<{width}}", "cyan").append("  ")
            text.append_text(Text.assemble(*change_parts({name: change})))
    return text


def fact_lines(facts: Sequence[tuple[str, str | None]]) -> Text:
    """A line for every fact that is known, the values below each other."""
    known = [(f"{label}:", value) for label, value in facts if value is not None]
    width = max((len(label) for label, _ in known), default=0)
    text = Text()
    for label, value in known:
        text.append(f"\n{label:<{width}} ", QUIET_STYLE).append(value)
    return text


def indented(words: str) -> str:
    """A message or a description below the facts."""
    return "\n\n" + "\n".join(f"    {line}" for line in printable(words).split("\n"))


def first_line(text: str) -> str:
    """The beginning of a text of several lines."""
    first, *rest = text.strip().split("\n")
    return one_line(first.rstrip()) + (" …" if rest else "")


def took(elapsed_s: float | None) -> str:
    """`` in 0.21 s``; nothing if nobody wants to know."""
    return "" if elapsed_s is None else f" in {duration(elapsed_s)}"


def duration(seconds: float) -> str:
    """``0.21 s``, ``12.3 s``, ``3 min 05 s``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def commit_line(commit: GraphCommit, *, with_branch: bool = True) -> list[str | tuple[str, str]]:
    """``commit 01JZ… on main``."""
    return [
        "commit ",
        (commit.id, ID_STYLE),
        f" on {one_line(commit.branch)}" if with_branch else "",
    ]


def _by(commit: GraphCommit) -> list[str | tuple[str, str]]:
    by = [f"  {commit.kind}"]
    if commit.actor:
        by.append(f" by {one_line(commit.actor)}")
    return [*by]


def change_parts(changes: Mapping[str, TableChange]) -> list[str | tuple[str, str]]:
    """``+2 ~1 -3``: inserted, updated, deleted; what is zero is left out."""
    totals = [
        ("+", "green", sum(c.inserted for c in changes.values())),
        ("~", "blue", sum(c.updated for c in changes.values())),
        ("-", "red", sum(c.deleted for c in changes.values())),
    ]
    parts: list[str | tuple[str, str]] = []
    for sign, style, count in totals:
        if count:
            parts += [" " if parts else "", (f"{sign}{count:,}", style)]
    return parts


def _types(counts: Sequence[TypeCount]) -> str:
    shown = counts[:_TYPES_MAX]
    parts = [f"{c.entities_loaded:,} {c.name}" for c in shown]
    if more := len(counts) - len(shown):
        parts.append(f"and {count_text(more, 'more type')}")
    return ", ".join(parts)


def when_text(micros: int) -> str:
    """``2026-11-15 10:30:00Z``."""
    return f"{instant(micros):%Y-%m-%d %H:%M:%S}Z"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """``1 row``, ``2 rows``, ``1,000 entities``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
