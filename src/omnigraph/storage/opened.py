"""A version of a table as Lance has it: what its manifest says, and its rows in the store."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lance import LanceDataset

from omnigraph.errors import InternalError
from omnigraph.storage.aside import Aside
from omnigraph.storage.faults import translated
from omnigraph.storage.names import TableVersion
from omnigraph.storage.namespace import StagingNamespace
from omnigraph.storage.objects import Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeAside:
    """How a version came about that was made beside the store."""

    folder: Aside
    """Where its manifest lies, for as long as it is asked."""
    manifest: bytes
    session: Any
    """In which it is opened."""


class OpenedVersion:
    """One version; one that was made aside is opened in the store when rows are asked for."""

    def __init__(
        self,
        name: TableVersion,
        facts: LanceDataset,
        space: StagingNamespace,
        aside: MadeAside | None = None,
    ) -> None:
        self.facts = facts
        """What the manifest says."""
        self.aside = aside
        self._name = name
        self._space = space

    @cached_property
    def dataset(self) -> LanceDataset:
        """The version in the store."""
        if self.aside is None:
            return self.facts
        doing = f"opening {self._name.path} version {self._name.version}"
        with translated(doing, referenced=True):
            return self._space.opened_as(self.facts, session=self.aside.session)

    @property
    def session(self) -> Any:
        """The Lance session of its lineage."""
        return self.facts.session() if self.aside is None else self.aside.session


def manifest_of(name: TableVersion, aside: MadeAside | None, objects: Objects | None) -> bytes:
    """The manifest of a version, as it is stored."""
    if aside is not None:
        return aside.manifest
    if objects is None:
        raise InternalError(f"{name.path} was opened to be read only")
    return objects.get(name.manifest, referenced=True) or b""
