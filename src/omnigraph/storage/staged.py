"""A version of a table that was made and is not published: what staging hands to a publish."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass

from omnigraph.storage.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedTable:
    """A committed but unpublished version; to ``pin`` it makes its final name."""

    table: Table
    source: str | None = None
    """The manifest under its staging name, relative to the root; None if it was made aside."""
    passed: tuple[str, ...] = ()
    """Such names of versions on the way to this one, which no reader will ask for."""
    manifest: bytes | None = None
    """Of a version that was made aside."""
    sent: tuple[Future[None], ...] = ()
    """Complete when the store has its files."""

    @property
    def leftovers(self) -> list[str]:
        """Objects that have served when the version has its final name."""
        return [*([self.source] if self.source is not None else []), *self.passed]
