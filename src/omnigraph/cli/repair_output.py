"""Printing what another program did to tables, which names are wrong, and what was done about it.

RepairReport -> [repair_output] -> stdout

edge:CallsAt  verified_maintenance  would be adopted
  the graph shows version 12, other programs find 14: ReserveFragments, Rewrite
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING

from omnigraph.cli.settings import Settings
from omnigraph.cli.streams import one_line, write_bytes, write_text
from omnigraph.cli.text import count_text

if TYPE_CHECKING:
    from omnigraph.maintain.name_check import NameRepair
    from omnigraph.maintain.repair import RepairReport, TableRepair

_STYLES = {
    "healed": "green",
    "rebuilt": "green",
    "deleted": "yellow",
    "forced": "yellow",
    "discarded": "yellow",
    "refused": "bold red",
}
_OUTCOMES = {
    "healed": "healed: no row had changed",
    "forced": "adopted by force",
    "discarded": "put back to what the graph shows",
    "refused": "refused",
}
_INDEX_OUTCOMES = {
    "preview": "--confirm replaces it",
    "rebuilt": "built again",
    "dropped": "dropped: 'omnigraph optimize' builds it when it can",
}
_PREVIEWS = {
    "verified_maintenance": "no row changed: --confirm takes it over",
    "suspicious": "rows changed: --force --confirm adopts that, --discard --confirm does not",
    "unverifiable": "cannot be verified: --discard --confirm shows the graph's rows again",
}


_EDGE_OUTCOMES = {
    "preview": "load the nodes, or --force --confirm deletes the edges",
    "refused": "refused",
    "deleted": "deleted",
}
_NAME_PREVIEWS = {
    "unfinished": "--confirm ends the name",
    "two_lives": "--confirm gives the second one a name of its own",
    "no_ref": "--confirm gives it its name back",
    "no_tables": "--discard --confirm ends it",
}


def print_repair(report: RepairReport, settings: Settings) -> None:
    """Every table that drifted, with what happened to it."""
    if settings.json:
        text = json.dumps(report.to_dict(), ensure_ascii=False, indent=2) + "\n"
        write_bytes(text.encode("utf-8", "backslashreplace"))
        return
    if settings.quiet and not report.refused:
        return
    from rich.text import Text

    from omnigraph.cli.rich_output import rendered

    text = Text()
    if not (report.drifted or report.indexes or report.names or report.edges):
        text.append("Nothing to do", "bold")
        text.append(f": no other program changed {count_text(len(report.tables), 'table')}")
    width = max((len(table.type_key) for table in report.drifted), default=0)
    for table in report.drifted:
        action = str(table.action)
        said = _OUTCOMES.get(action) or _PREVIEWS[str(table.classification)]
        text.append(f"{one_line(table.type_key):<{width}}  ")
        text.append(f"{table.classification}  ", "bold")
        text.append(said, _STYLES.get(action, ""))
        text.append(f"\n  {_facts(table)}\n")
        if table.reason is not None:
            text.append(f"  {one_line(table.reason)}\n")
    for index in report.indexes:
        text.append(f"{one_line(index.branch)} {one_line(index.type_key)}  ")
        text.append(f"index {index.index}  ", "bold")
        text.append(_INDEX_OUTCOMES[index.action], _STYLES.get(index.action, ""))
        text.append(f"\n  not to be trusted: {one_line(index.reason)}\n")
    for name in report.names:
        text.append(f"branch {one_line(name.name)}  ")
        text.append(f"{name.fault}  ", "bold")
        text.append(_name_outcome(name), _STYLES.get(str(name.action), ""))
        text.append(f"\n  {one_line(name.message)}\n")
        if name.reason is not None:
            text.append(f"  {one_line(name.reason)}\n")
    for edges in report.edges:
        text.append(f"{one_line(edges.branch)} {one_line(edges.type_key)}  ")
        text.append(f"{count_text(edges.count, 'edge')} without an end  ", "bold")
        text.append(_EDGE_OUTCOMES[edges.action], _STYLES.get(edges.action, ""))
        text.append(f"\n  {one_line(', '.join(edges.examples))}\n")
        if edges.reason is not None:
            text.append(f"  {one_line(edges.reason)}\n")
    for commit in report.commits:
        text.append("Commit ")
        text.append(commit.id, "yellow")
        text.append(f" by {commit.actor}\n")
    text.rstrip()
    write_text(rendered(text, sys.stdout))


def _name_outcome(name: NameRepair) -> str:
    match str(name.action):
        case "healed" if name.new_name is not None:
            return f"healed: it is called '{one_line(name.new_name)}'"
        case "healed":
            return "healed: the name is free"
        case "discarded":
            return "ended"
        case "refused":
            return "refused"
        case _:
            return _NAME_PREVIEWS[str(name.fault)]


def _facts(table: TableRepair) -> str:
    done = Counter(commit.operation for commit in table.operations)
    words = [f"{name} x{times}" if times > 1 else name for name, times in done.items()]
    found = f"other programs find {table.lance_head_version}"
    facts = f"the graph shows version {table.published_dataset_version}, {found}"
    if words:
        facts += f": {one_line(', '.join(words))}"
    return f"{facts}; the graph has written it since" if table.overtaken else facts
