"""What a command says: values in, text for people or JSON for programs out.

    command -> value of the library -> [Output] -> RichOutput | JsonOutput -> stdout

Commands never format anything. Results go to stdout, everything about the run (errors, notices,
progress) to stderr.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.cli.failure import summary
from omnigraph.cli.meter import Meter, SilentMeter, Unit
from omnigraph.cli.streams import write_bytes, write_error
from omnigraph.errors import OmnigraphError

if TYPE_CHECKING:
    from omnigraph.branch.control import BranchInfo
    from omnigraph.branch.history import LoggedCommit
    from omnigraph.branch.tags import Tag
    from omnigraph.cli.explained import Explained
    from omnigraph.cli.formats import Format
    from omnigraph.cli.formatting import FmtMode, Formatted
    from omnigraph.cli.ref_change import RefChange, ResetDone
    from omnigraph.manifest.snapshot import GraphCommit
    from omnigraph.query.lint import LintReport
    from omnigraph.results import Commits, LoadResult, MutationResult, QueryResult
    from omnigraph.schema.catalog import Catalog
    from omnigraph.view import SnapshotView


INTERRUPTED = "interrupted"


def interrupted_line(hint: str | None) -> str:
    """What stderr says after Ctrl-C."""
    return f"{INTERRUPTED}; {hint}\n" if hint else f"{INTERRUPTED}\n"


class Output(ABC):
    """Everything the commands can say."""

    @abstractmethod
    def created(self, uri: str, view: SnapshotView) -> None:
        """A graph was created."""

    @abstractmethod
    def loaded(self, result: LoadResult, elapsed_s: float) -> None:
        """A load is done."""

    @abstractmethod
    def exported(self, place: str, rows: int, document: dict[str, Any]) -> None:
        """An export to a file or a folder is done; ``document`` says what it holds."""

    @abstractmethod
    def rows(
        self, result: QueryResult, form: Format, *, pinned: bool, elapsed_s: float | None
    ) -> None:
        """The rows of a query; ``pinned`` if the commit was asked for by its id."""

    @abstractmethod
    def explained(self, explained: Explained) -> None:
        """How a query is run."""

    @abstractmethod
    def mutated(self, result: MutationResult, elapsed_s: float | None) -> None:
        """A mutation is done."""

    @abstractmethod
    def linted(self, reports: Sequence[LintReport], *, describe: bool) -> None:
        """Files of queries were looked over."""

    @abstractmethod
    def formatted(self, files: Sequence[Formatted], *, mode: FmtMode) -> None:
        """Files were put into the one layout, or would be."""

    @abstractmethod
    def snapshot(self, uri: str, view: SnapshotView) -> None:
        """What a branch holds."""

    @abstractmethod
    def commits(self, commits: Commits) -> None:
        """A part of the history, newest first."""

    @abstractmethod
    def commit(self, commit: GraphCommit) -> None:
        """One commit."""

    @abstractmethod
    def log(self, log: Sequence[LoggedCommit], *, graph: bool) -> None:
        """The commit graph; ``graph`` if it is to be drawn."""

    @abstractmethod
    def was_reset(self, done: ResetDone) -> None:
        """A branch was set back."""

    @abstractmethod
    def branches(self, names: Sequence[str]) -> None:
        """Which branches there are."""

    @abstractmethod
    def branch_details(self, branches: Sequence[BranchInfo]) -> None:
        """Which branches there are, and what is known about them."""

    @abstractmethod
    def branch(self, branch: BranchInfo) -> None:
        """One branch."""

    @abstractmethod
    def branch_changed(
        self, change: RefChange, branch: BranchInfo, *, former_name: str | None = None
    ) -> None:
        """A branch was made, ended, renamed or described."""

    @abstractmethod
    def tags(self, tags: Sequence[Tag]) -> None:
        """Which tags there are."""

    @abstractmethod
    def tag(self, tag: Tag) -> None:
        """One tag."""

    @abstractmethod
    def tag_changed(self, change: RefChange, tag: Tag) -> None:
        """A tag was made or taken away."""

    @abstractmethod
    def schema(self, view: SnapshotView) -> None:
        """The accepted schema."""

    @abstractmethod
    def valid_schema(self, name: str, catalog: Catalog) -> None:
        """A schema text breaks no rule."""

    @abstractmethod
    def version(self, versions: dict[str, Any]) -> None:
        """The release and what it runs on."""

    @abstractmethod
    def failure(self, error: OmnigraphError) -> None:
        """The command failed."""

    @abstractmethod
    def interrupted(self, hint: str | None, published: str | None) -> None:
        """Somebody pressed Ctrl-C; ``published`` is the commit that was published before."""

    @abstractmethod
    def notice(self, text: str) -> None:
        """Something worth knowing while the command runs."""

    @abstractmethod
    def meter(self, label: str, total: int | None, unit: Unit) -> Meter:
        """A context manager that is told how far an operation is."""


class JsonOutput(Output):
    """One JSON document on stdout."""

    def created(self, uri: str, view: SnapshotView) -> None:
        """A graph was created."""
        self._write(
            {
                "uri": uri,
                "graph_commit_id": view.commit.id,
                "schema_hash": view.schema_hash,
                "nodes": len(view.catalog.nodes),
                "edges": len(view.catalog.edges),
                "actor_id": view.commit.actor,
            }
        )

    def loaded(self, result: LoadResult, elapsed_s: float) -> None:
        """A load is done."""
        self._write(result.to_dict())

    def exported(self, place: str, rows: int, document: dict[str, Any]) -> None:
        """What was written where."""
        self._write({"output": place} | document)

    def rows(
        self, result: QueryResult, form: Format, *, pinned: bool, elapsed_s: float | None
    ) -> None:
        """The rows of a query, written as they are made."""
        from omnigraph.cli.result_output import print_result

        print_result(result, form, pinned=pinned, elapsed_s=elapsed_s, quiet=True)

    def explained(self, explained: Explained) -> None:
        """How a query is run."""
        self._write(explained.to_dict())

    def mutated(self, result: MutationResult, elapsed_s: float | None) -> None:
        """A mutation is done."""
        self._write(result.to_dict())

    def linted(self, reports: Sequence[LintReport], *, describe: bool) -> None:
        """Files of queries were looked over; descriptors are always there."""
        worst = max((r.status for r in reports), key=("ok", "warning", "error").index)
        self._write({"status": worst, "files": [r.to_dict() for r in reports]})

    def formatted(self, files: Sequence[Formatted], *, mode: FmtMode) -> None:
        """Which files changed."""
        self._write({"files": [f.to_dict(mode) for f in files]})

    def snapshot(self, uri: str, view: SnapshotView) -> None:
        """What a branch holds."""
        self._write(view.to_dict())

    def commits(self, commits: Commits) -> None:
        """A part of the history, newest first."""
        self._write({"commits": commits.to_dicts()})

    def commit(self, commit: GraphCommit) -> None:
        """One commit."""
        self._write(commit.to_dict())

    def log(self, log: Sequence[LoggedCommit], *, graph: bool) -> None:
        """Commits with the names at them; their parents are the drawing."""
        self._write({"commits": [entry.to_dict() for entry in log]})

    def was_reset(self, done: ResetDone) -> None:
        """A branch was set back."""
        self._write(done.to_dict())

    def branches(self, names: Sequence[str]) -> None:
        """Which branches there are."""
        self._write({"branches": [{"name": name} for name in names]})

    def branch_details(self, branches: Sequence[BranchInfo]) -> None:
        """The same with all that is known about them."""
        self._write({"branches": [b.to_dict() for b in branches]})

    def branch(self, branch: BranchInfo) -> None:
        """One branch."""
        self._write(branch.to_dict())

    def branch_changed(
        self, change: RefChange, branch: BranchInfo, *, former_name: str | None = None
    ) -> None:
        """A branch, and what was done to it."""
        former = {"former_name": former_name} if former_name is not None else {}
        self._write({"outcome": str(change)} | branch.to_dict() | former)

    def tags(self, tags: Sequence[Tag]) -> None:
        """Which tags there are."""
        self._write({"tags": [t.to_dict() for t in tags]})

    def tag(self, tag: Tag) -> None:
        """One tag."""
        self._write(tag.to_dict())

    def tag_changed(self, change: RefChange, tag: Tag) -> None:
        """A tag, and what was done to it."""
        self._write({"outcome": str(change)} | tag.to_dict())

    def schema(self, view: SnapshotView) -> None:
        """The accepted schema."""
        self._write(
            {
                "graph_commit_id": view.commit.id,
                "schema_hash": view.schema_hash,
                "schema_source": view.schema,
                "nodes": list(view.catalog.nodes),
                "edges": list(view.catalog.edges),
            }
        )

    def valid_schema(self, name: str, catalog: Catalog) -> None:
        """A schema text breaks no rule."""
        self._write(
            {
                "source": name,
                "nodes": list(catalog.nodes),
                "edges": list(catalog.edges),
                "interfaces": list(catalog.interfaces),
            }
        )

    def version(self, versions: dict[str, Any]) -> None:
        """The release and what it runs on."""
        self._write(versions)

    def failure(self, error: OmnigraphError) -> None:
        """The envelope on stdout, one line for people on stderr."""
        try:
            self._write(error.to_dict())
        finally:
            write_error(f"error: {summary(error)}\n")

    def interrupted(self, hint: str | None, published: str | None) -> None:
        """The same envelope as for an error."""
        found = {"hint": hint, "published_commit_id": published}
        facts = {name: value for name, value in found.items() if value is not None}
        try:
            self._write({"error": INTERRUPTED, "code": INTERRUPTED} | facts)
        finally:
            write_error(interrupted_line(hint))

    def notice(self, text: str) -> None:
        """Programs do not read notices."""

    def meter(self, label: str, total: int | None, unit: Unit) -> Meter:
        """Programs do not watch bars."""
        return SilentMeter()

    def _write(self, document: dict[str, Any]) -> None:
        text = json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        # A file name may hold bytes that are no UTF-8; the escape that replaces them is valid JSON.
        write_bytes(text.encode("utf-8", "backslashreplace"))
