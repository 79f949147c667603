"""What a full check found sound of a commit or an index, it does not have to find again.

A commit and a version of a table never change, so a history that is checked after every step looks
at the new ones each time, and at all of them now and then.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import pytest

from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import GraphCommit, Snapshot
from omnigraph.schema.catalog import GraphType
from omnigraph.storage.indexing import BuiltIndex
from omnigraph.storage.tables import Table
from omnigraph.upkeep import check, index_check


class Remembered:
    """What was found sound since everything was looked at."""

    def __init__(self) -> None:
        self._sound: set[object] = set()

    def forget(self) -> None:
        self._sound.clear()

    def check_counts(self, repository: Repository, commit: GraphCommit) -> str | None:
        if commit.id in self._sound:
            return None
        return self._keep(commit.id, _check_counts(repository, commit))

    def wrong_answer(self, table: Table, index: BuiltIndex) -> str | None:
        place = (table.name, index.name)
        return None if place in self._sound else self._keep(place, _wrong_answer(table, index))

    def check_rules(
        self, repository: Repository, state: Snapshot, graph_type: GraphType
    ) -> Iterable[str]:
        place = (state.head.id, graph_type.table_key)
        if place in self._sound:
            return ()
        found = list(_check_rules(repository, state, graph_type))
        self._keep(place, found[0] if found else None)
        return found

    def _keep(self, subject: object, fault: str | None) -> str | None:
        if fault is None:
            self._sound.add(subject)
        return fault


_check_counts, _check_rules = check.check_counts, check.check_rules
_wrong_answer = index_check.wrong_answer


@contextmanager
def remembering() -> Generator[Remembered]:
    """Full checks of this process remember what they found sound."""
    made = Remembered()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "check_counts", made.check_counts)
        patch.setattr(check, "check_rules", made.check_rules)
        patch.setattr(index_check, "wrong_answer", made.wrong_answer)
        yield made
