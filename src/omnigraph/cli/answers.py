"""What commands answer with, where the library has no value of its own for it.

    command -> [answers], or a value of the library -> Output.show

Every answer has ``to_dict``, which is what programs get. How people see it stands in ``texts``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.cli.lines import Line, TextLook
from omnigraph.cli.streams import printable

if TYPE_CHECKING:
    from omnigraph.api.view import SnapshotView
    from omnigraph.branch.control import BranchInfo
    from omnigraph.branch.history import LoggedCommit
    from omnigraph.branch.tags import Tag
    from omnigraph.manifest.snapshot import GraphCommit
    from omnigraph.query.engine import ExplainedStep, Explanation
    from omnigraph.query.lint import LintReport
    from omnigraph.results import Commits
    from omnigraph.schema.catalog import Catalog
    from omnigraph.upkeep.indexes import IndexStatus
    from omnigraph.upkeep.recovery import PendingIntent


class Answer(Protocol):
    """A value that can be shown."""

    def to_dict(self) -> dict[str, Any]:
        """One JSON document."""
        ...


class Stream(ABC):
    """An answer of any length, which is written as it is made."""

    instead: str
    """What to do if stdout is closed."""

    @property
    def for_programs(self) -> bool:
        """Whether people asked for what programs get."""
        return False

    @abstractmethod
    def chunks(self) -> Iterator[bytes | memoryview]:
        """For programs."""

    @abstractmethod
    def lines(self, look: TextLook) -> Iterator[Line]:
        """For people."""

    def notes(self, look: TextLook) -> Iterator[str]:
        """What there is to say about it on stderr."""
        return iter(())


class Verbatim(ABC):
    """An answer that is a text itself: people get it as it is, so that it can go into a file."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> str:
        """All of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Verbatim):
    """What ``--help`` and ``--version`` say."""

    words: str
    facts: dict[str, str]
    """For programs, which get one document from every command."""

    @property
    def text(self) -> str:
        """As people read it."""
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """The facts and the text."""
        return {**self.facts, "text": self.words}


@dataclass(frozen=True, slots=True)
class Remark(Verbatim):
    """A line or a few for the person at the shell."""

    words: str

    @property
    def text(self) -> str:
        """With the end of the last line."""
        return f"{self.words}\n"

    def to_dict(self) -> dict[str, Any]:
        """The same for programs, which the shell does not serve."""
        return {"text": self.words}


# ---------------------------------------------------------------- a graph and its data


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A graph was created."""

    uri: str
    view: SnapshotView

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``init --json``."""
        return {
            "uri": self.uri,
            "graph_commit_id": self.view.commit.id,
            "schema_hash": self.view.schema_hash,
            "nodes": len(self.view.catalog.nodes),
            "edges": len(self.view.catalog.edges),
            "actor_id": self.view.commit.actor,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """Entities were written to a file or a folder."""

    place: str
    rows: int
    document: dict[str, Any]
    """What it holds."""

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``export --json``."""
        return {"output": self.place} | self.document


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionInstalled:
    """Where a completion script was put, and what is left to do."""

    shell: str
    path: str
    next_step: str

    def to_dict(self) -> dict[str, Any]:
        """As --json shows it."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The release and what it runs on."""

    version: str
    format_written: int
    formats_read: Sequence[int]
    runs_on: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``version --json``."""
        return {
            "version": self.version,
            "format_written": self.format_written,
            "formats_read": list(self.formats_read),
            **self.runs_on,
        }


# ---------------------------------------------------------------- branches, tags, history


class RefChange(StrEnum):
    """What was done to a branch or a tag."""

    CREATED = "created"
    DELETED = "deleted"
    RENAMED = "renamed"
    DESCRIBED = "described"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchNames:
    """Which branches there are."""

    names: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``branch list --json``."""
        return {"branches": [{"name": name} for name in self.names]}


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchDetails:
    """Which branches there are, and what is known about them."""

    branches: Sequence[BranchInfo]

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``branch list --verbose --json``."""
        return {"branches": [b.to_dict() for b in self.branches]}


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchChanged:
    """A branch was made, ended, renamed or described."""

    change: RefChange
    branch: BranchInfo
    former_name: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The branch, and what was done to it."""
        former = {"former_name": self.former_name} if self.former_name is not None else {}
        return {"outcome": str(self.change)} | self.branch.to_dict() | former


@dataclass(frozen=True, slots=True, kw_only=True)
class TagList:
    """Which tags there are."""

    tags: Sequence[Tag]

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``tag list --json``."""
        return {"tags": [t.to_dict() for t in self.tags]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TagChanged:
    """A tag was made or taken away."""

    change: RefChange
    tag: Tag

    def to_dict(self) -> dict[str, Any]:
        """The tag, and what was done to it."""
        return {"outcome": str(self.change)} | self.tag.to_dict()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitList:
    """A part of the history, newest first."""

    commits: Commits

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``commit list --json``."""
        return {"commits": self.commits.to_dicts()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLog:
    """Commits with the names at them; their parents are the drawing."""

    log: Sequence[LoggedCommit]
    drawn: bool

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``commit log --json``."""
        return {"commits": [entry.to_dict() for entry in self.log]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetDone:
    """A branch was set back."""

    branch: str
    target_commit: str
    previous_commit: str
    left_behind: int
    """Commits that the branch had and has no longer."""
    commit: GraphCommit | None
    """None: the branch was there already."""

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``commit reset --json``."""
        return {
            "branch": self.branch,
            "target_commit_id": self.target_commit,
            "previous_commit_id": self.previous_commit,
            "commits_left_behind": self.left_behind,
            "commit": self.commit.to_dict() if self.commit else None,
        }


# ---------------------------------------------------------------- schemas and queries


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaShown(Verbatim):
    """The accepted schema, exactly as it was given."""

    view: SnapshotView

    @property
    def text(self) -> str:
        """It ends with a line end."""
        source = self.view.schema
        return source if source.endswith("\n") else source + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``schema show --json``."""
        return {
            "graph_commit_id": self.view.commit.id,
            "schema_hash": self.view.schema_hash,
            "schema_source": self.view.schema,
            "nodes": list(self.view.catalog.nodes),
            "edges": list(self.view.catalog.edges),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidSchema:
    """A schema text breaks no rule."""

    name: str
    catalog: Catalog

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``schema check --json``."""
        return {
            "source": self.name,
            "nodes": list(self.catalog.nodes),
            "edges": list(self.catalog.edges),
            "interfaces": list(self.catalog.interfaces),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """Files of queries were checked."""

    reports: Sequence[LintReport]
    describe: bool
    """For people; programs always get the descriptors."""

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``lint --json``."""
        worst = max((r.status for r in self.reports), key=("ok", "warning", "error").index)
        return {"status": worst, "files": [r.to_dict() for r in self.reports]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained(Verbatim):
    """How a query is run, and which state that is about."""

    explanation: Explanation
    branch: str
    commit: str | None
    """As it was asked for."""

    @property
    def text(self) -> str:
        """The steps, the last one first."""
        text = self.explanation.text
        return printable(text if text.endswith("\n") else f"{text}\n")

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``explain --json``."""
        found = self.explanation
        facts: dict[str, Any] = {
            "target": {"branch": self.branch, "commit": self.commit},
            "text": found.text,
            "steps": [_step(step) for step in found.steps],
            "notices": [notice.to_dict() for notice in found.notices],
        }
        if found.rows is not None and found.seconds is not None:
            facts |= {"row_count": found.rows, "elapsed_ms": round(found.seconds * 1e3, 3)}
        return facts


def _step(step: ExplainedStep) -> dict[str, Any]:
    facts: dict[str, Any] = {"depth": step.depth, "step": step.text}
    if step.notes is not None:
        facts |= {
            "rows": step.notes.rows,
            "elapsed_ms": round(step.notes.seconds * 1e3, 3),
            "requests": step.notes.requests,
            "calls": step.notes.calls,
        }
    return facts


# ---------------------------------------------------------------- upkeep


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexList:
    """Every index and how far it reaches."""

    indexes: Sequence[IndexStatus]

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``index status --json``."""
        return {"indexes": [status.to_dict() for status in self.indexes]}


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingWrites:
    """Writes that are pending, and what was put aside of them."""

    intents: Sequence[PendingIntent]
    put_aside: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """The shape of ``recovery list --json``."""
        return {
            "intents": [item.to_dict() for item in self.intents],
            "put_aside": list(self.put_aside),
        }
