"""Indexes of another lineage: found by where they were built and by what they answer, and replaced.

    states -> claims of every index -> [whose files, which answers] -> findings -> repair (PUBLISH)

Older releases let two lineages of a table share what Lance keeps of versions by their numbers, and
so indexes of one were listed by the other (docs/adr/0020). Such an index answers for files that it
has never seen. Rows are not touched by it: it is dropped and built again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph.branch.history import branch_heads
from omnigraph.errors import CorruptionError, OmnigraphError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot, TableChange, TablePin
from omnigraph.storage.compact import TableUpkeep
from omnigraph.storage.index_answers import Claim, Files, claims, wrong_answer
from omnigraph.storage.indexing import table_indexes
from omnigraph.storage.names import TableVersion
from omnigraph.upkeep.ancestry import States
from omnigraph.upkeep.indexes import buildable, known_types, wanted_indexes
from omnigraph.upkeep.retention import whole_states
from omnigraph.write.plan import Action
from omnigraph.write.publish import publish
from omnigraph.write.request import Requires, WriteRequest
from omnigraph.write.stage import BulkChange, BulkWork
from omnigraph.write.txn import WriteTxn

REPAIRER = "omnigraph:repair:indexes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignIndex:
    """An index that a version lists and that was built for another lineage."""

    where: str
    """The branch or tag."""
    type_key: str
    name: str
    column: str
    reason: str
    segments: frozenset[str]

    @property
    def message(self) -> str:
        """As ``check`` reports it."""
        return f"its index {self.name} of {self.column} is not to be trusted: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRepair:
    """What was found and done about one index."""

    branch: str
    type_key: str
    index: str
    column: str
    reason: str
    action: str
    """``preview``, ``rebuilt`` or ``dropped``: then ``optimize`` builds it when it can."""

    def to_dict(self) -> dict[str, Any]:
        """As ``repair --json`` shows it."""
        return asdict(self)


def foreign_indexes(
    repository: Repository, states: Sequence[tuple[str, Snapshot]]
) -> list[ForeignIndex]:
    """Every index of these states that was built for another lineage."""
    look = _Look(repository)
    pins = [(where, pin) for where, state in states for pin in state.pins.values()]
    look.at_all({pin.name: None for _, pin in pins})
    # Only beside an index that is wrong it matters where the others of its version came from.
    wrong = {pin.name.path for _, pin in pins if look.wrong_answers(pin.name)}
    look.at_all(_kept_versions(repository, wrong))
    return [found for where, pin in pins for found in look.foreign(where, pin)]


def _kept_versions(repository: Repository, paths: set[str]) -> list[TableVersion]:
    """All versions of some tables that any state shows which is kept."""
    if not paths:
        return []
    states = States(repository)
    places = list(whole_states(repository))
    states.look_at(places)
    found = dict[TableVersion, None]()
    for state in filter(None, map(states.at, places)):
        found |= {name: None for name, _, _ in state.tables if name.path in paths}
    return list(found)


class _Look:
    """What the indexes of many versions claim, each read once."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._claims: dict[TableVersion, tuple[Claim, ...]] = {}
        self._by_segment: dict[str, list[tuple[TableVersion, Claim]]] = {}
        self._wrong: dict[TableVersion, dict[str, str]] = {}

    def claims(self, name: TableVersion) -> tuple[Claim, ...]:
        return self._claims[name]

    def at_all(self, names: Iterable[TableVersion]) -> None:
        """Read what the indexes of these versions claim, several at a time."""
        fresh = [name for name in names if name not in self._claims]
        for name, found in zip(
            fresh, self._repository.background.pool.map(self._read, fresh), strict=True
        ):
            self._claims[name] = found
            for claim in found:
                self._by_segment.setdefault(claim.uuid, []).append((name, claim))

    def _read(self, name: TableVersion) -> tuple[Claim, ...]:
        try:
            return claims(self._repository.tables.open(name))
        except OmnigraphError:
            return ()  # The check of tables and files reports what is wrong with it.

    def foreign(self, where: str, pin: TablePin) -> Iterable[ForeignIndex]:
        """The indexes of a version that are not its own, each with the reason."""
        reasons: dict[str, str] = {}
        for claim in self.claims(pin.name):
            reason = self._reason(pin.name, claim)
            if reason is not None:
                reasons.setdefault(claim.index, reason)
        for name, reason in reasons.items():
            parts = [claim for claim in self.claims(pin.name) if claim.index == name]
            yield ForeignIndex(
                where=where,
                type_key=pin.table_key,
                name=name,
                column=parts[0].column,
                reason=reason,
                segments=frozenset(part.uuid for part in parts),
            )

    def _reason(self, name: TableVersion, claim: Claim) -> str | None:
        wrong = self.wrong_answers(name)
        if claim.index in wrong:
            return wrong[claim.index]
        if claim.beyond:
            return "it covers files that this lineage never had"
        if not wrong:
            # Two lineages that compact the files of one index have files of one number, too: what
            # it knows are rows, and they stay the same. So files alone prove nothing.
            return None
        for version, theirs in self._by_segment.get(claim.uuid, ()):
            if _apart(claim.files, theirs.files):  # What came from elsewhere came together.
                return f"version {version.version} has it over other files of the same number"
        return None

    def wrong_answers(self, name: TableVersion) -> Mapping[str, str]:
        """The indexes of a version that answer wrongly, each with an example."""
        if not self._claims[name]:
            return {}
        if name not in self._wrong:
            table = self._repository.tables.open(name)
            found = self._wrong[name] = dict[str, str]()
            for index in table_indexes(table):
                # Columns that cannot be read are reported by the check of rows.
                with suppress(CorruptionError):
                    answer = wrong_answer(table, index)
                    if answer is not None:
                        found[index.name] = answer
        return self._wrong[name]


def _apart(ours: Mapping[int, Files], theirs: Mapping[int, Files]) -> bool:
    """A column that is added gives a fragment one more file; another one shares none with it."""
    return any(not ours[number] & theirs[number] for number in ours.keys() & theirs.keys())


# -- repair ----------------------------------------------------------------------------------------


def repair_indexes(
    repository: Repository, *, types: Sequence[str] = (), confirm: bool, message: str | None
) -> tuple[list[IndexRepair], list[GraphCommit]]:
    """Find the indexes of another lineage on every branch; with ``confirm`` replace them.

    One commit of each branch that has any. What they should have been is built in the same commit.
    """
    done: list[IndexRepair] = []
    commits: list[GraphCommit] = []
    heads = branch_heads(repository)
    found = foreign_indexes(repository, list(heads.items()))
    for branch, head in heads.items():
        catalog = repository.schema(head.schema_hash).catalog
        asked = [graph_type.table_key for graph_type in known_types(catalog, types)]
        bad = [index for index in found if index.where == branch and index.type_key in asked]
        if not bad:
            continue
        work = _Replacing(bad)
        if confirm:
            commits += work.publish(repository, branch, message)
        done += [
            IndexRepair(
                branch=branch,
                type_key=index.type_key,
                index=index.name,
                column=index.column,
                reason=index.reason,
                action=work.outcome(index) if confirm else "preview",
            )
            for index in bad
        ]
    return done, commits


class _Replacing:
    """Indexes that are dropped and built again, as a function of the snapshot."""

    def __init__(self, found: Sequence[ForeignIndex]) -> None:
        self._segments = {key: set[str]() for key in (index.type_key for index in found)}
        for index in found:
            self._segments[index.type_key] |= index.segments
        self._planned: dict[TableVersion, BulkWork] = {}
        self._work: dict[str, BulkWork] = {}
        self._change = BulkChange(tables=self._work)
        self._rebuilt: set[tuple[str, str]] = set()

    def publish(
        self, repository: Repository, branch: str, message: str | None
    ) -> list[GraphCommit]:
        """One commit, unless another write has dropped them meanwhile."""
        request = WriteRequest(
            kind="repair",
            branch=branch,
            prepare=self.prepare,
            actor=REPAIRER,
            message=message,
            requires=Requires.NEWEST_HEAD,
        )
        commit = publish(repository, request).commit
        return [commit] if commit is not None else []

    def outcome(self, index: ForeignIndex) -> str:
        """What became of an index."""
        return "rebuilt" if (index.type_key, index.name) in self._rebuilt else "dropped"

    def prepare(self, txn: WriteTxn) -> BulkChange:
        """What still has them is freed of them; other writes may have come in between."""
        self._work.clear()
        self._rebuilt.clear()
        for key, segments in self._segments.items():
            pin = txn.pin(key)
            if pin is None:
                continue
            graph_type, table = txn.schema.catalog.table(key), txn.repository.table(pin)
            bad = [i for i in table_indexes(table) if segments & {s.uuid for s in i.segments}]
            if not bad:
                continue
            build = tuple(
                spec
                for spec in wanted_indexes(graph_type)
                if any(index.serves(spec) for index in bad) and buildable(spec, table)
            )
            self._rebuilt |= {(key, i.name) for i in bad if any(map(i.serves, build))}
            if pin.name not in self._planned:
                upkeep = TableUpkeep(drop=frozenset(i.name for i in bad), groups=(), build=build)
                self._planned[pin.name] = BulkWork(
                    type=graph_type,
                    actions=(Action.REWORK,),
                    change=TableChange(),
                    staged=(upkeep,),
                )
            self._work[key] = self._planned[pin.name]
        return self._change
