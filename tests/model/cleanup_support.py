"""Parts of the model of cleanup: schemas that change, what a state shows, a write of many hours."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.manifest.snapshot import TableChange
from omnigraph.schema.arrow import table_schema
from omnigraph.storage.changes import Append
from omnigraph.write.plan import Action
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.stage import BulkChange, BulkWork
from omnigraph.write.txn import WriteTxn

SCHEMA = """
node Person { name: String @key  age: I32? @index  text: Blob? }
node Pet { name: String @key }
edge Knows: Person -> Person
"""
EVOLUTIONS = ("property", "rename", "widen", "index", "type", "edge")

State = dict[str, list[dict[str, Any]]]


def content(view: Any) -> State:
    """All rows of all types, in an order of their own."""
    return {
        name: sorted((dict(row) for row in view.rows(name)), key=lambda row: row["id"])
        for name in (*view.catalog.nodes, *view.catalog.edges)
    }


def living(graph: Any) -> list[str]:
    """Branches that can be opened: who dies before a name is given up leaves the name."""
    found: list[str] = []
    for name in graph.branches.list():
        with suppress(omnigraph.NotFoundError):
            graph.snapshot(name)
            found.append(name)
    return found


def incarnations(graph: Any) -> dict[str, str]:
    """The same, each with the manifest that it is; without main."""
    names = [name for name in living(graph) if name != "main"]
    return {name: graph.branches.show(name).incarnation for name in names}


def refused(command: Callable[[], object]) -> ErrorKind | None:
    """Why a command is refused; None if it is not."""
    try:
        command()
    except omnigraph.OmnigraphError as e:
        return e.kind
    return None


def can_merge(graph: Any, name: str, into: str) -> bool:
    """Whether nothing that a merge looks at is gone, whatever comes of it."""
    try:
        graph.merge(name, into=into, dry_run=True)
    except omnigraph.NotFoundError:
        return False
    except (omnigraph.MergeConflictError, omnigraph.ConstraintError, omnigraph.UsageError):
        pass
    return True


class Held:
    """Who looks at the newest state of a branch and stays, with a feed that goes on from there."""

    def __init__(self, place: Path, branch: str, *, reads: bool) -> None:
        self.graph = omnigraph.open(place)
        self._branch = branch
        self._view = self.graph.snapshot(branch)
        with omnigraph.open(place) as other:
            self._expected = content(other.at(f"commit:{self._view.commit.id}"))
        if reads:  # Then much of it is in memory.
            assert content(self._view) == self._expected
        self._cursor = self.graph.changes.poll(branch=branch, start="now").cursor

    def look_again(self) -> None:
        """It is what it was, or gone; never damaged, and never another one."""
        try:
            assert content(self._view) == self._expected
        except omnigraph.NotFoundError as e:
            assert e.kind is ErrorKind.HISTORY_RECLAIMED
        try:
            self.graph.changes.poll(branch=self._branch, cursor=self._cursor)
        except omnigraph.OmnigraphError as e:
            assert e.kind in (
                ErrorKind.FEED_GAP,
                ErrorKind.CURSOR_REJECTED,
                ErrorKind.BRANCH_NOT_FOUND,
            )


def line(graph: Any, branch: str, limit: int) -> Any:
    """The newest commits of a branch."""
    return graph.commits(branch=branch, first_parent=True, limit=limit)


def fitting(view: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without what the schema of a state does not have; a text is told by its size."""
    known = view.catalog.nodes["Person"].by_name
    found = [{k: v for k, v in row.items() if k in known} for row in rows]
    for row in found:
        if "text" in row:
            row["text"] = "base64:" + b64encode(b"t" * row["text"]).decode()
    return [{"type": "Person", "data": row} for row in found]


def evolved(view: Any, step: str) -> str:
    """The schema of a state, one step on; what can be added can be dropped by the next step."""
    person = view.catalog.nodes["Person"]
    types = {p.name: str(p.type) for p in person.properties if p.name != "name"}
    hints: dict[str, str] = {}
    indexed = ("age",) in person.indexes
    pet, knows = "Pet" in view.catalog.nodes, "Knows" in view.catalog.edges
    match step:
        case "property" if "note" in types:
            del types["note"]
        case "property":
            types["note"], hints["note"] = "I64?", "@backfill(age)" if "age" in types else ""
        case "rename" if "age" in types:
            types["years"], hints["years"] = types.pop("age"), '@rename_from("age")'
        case "rename" if "years" in types:
            types["age"], hints["age"] = types.pop("years"), '@rename_from("years")'
        case "rename":
            types["age"] = "I32?"
        case "widen":
            types = {name: "I64?" if kind == "I32?" else kind for name, kind in types.items()}
        case "index":
            indexed = not indexed
        case "type":
            pet = not pet
        case _:
            knows = not knows
    body = "  ".join(
        f"{name}: {kind} {hints.get(name, '')} {'@index' if name == 'age' and indexed else ''}"
        for name, kind in types.items()
    )
    said = [f"node Person {{ name: String @key  {body} }}"]
    said += ["node Pet { name: String @key }"] if pet else []
    said += ["edge Knows: Person -> Person"] if knows else []
    return "\n".join(said) + "\n"


def bulk_load(graph: Any, branch: str, name: str, while_it_runs: Callable[[], None]) -> None:
    """A long write whose files are made while it is prepared, as tasks of Spark make them."""
    made: list[BulkChange] = []

    def prepare(txn: WriteTxn) -> BulkChange:
        if not made:
            kind = txn.schema.catalog.table("node:Person")
            schema = table_schema(kind)
            row = {n: name if n in ("id", "name") else None for n in schema.names}
            rows = pa.Table.from_pylist([row], schema)
            files = graph._repository.tables.write_files(
                kind.table_path, rows, txn.table("node:Person")
            )
            work = BulkWork(
                type=kind,
                actions=(Action.APPEND,),
                change=TableChange(inserted=1),
                staged=Append(files=files),
            )
            made.append(BulkChange(tables={"node:Person": work}))
            while_it_runs()
        return made[0]

    publish(
        graph._repository,
        WriteRequest(
            kind="load",
            branch=branch,
            prepare=prepare,
            requires=Requires.LEASE,
        ),
    )
