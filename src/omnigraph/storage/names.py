"""How a table version and its manifest are named, in our words and in Lance's."""

from __future__ import annotations

from dataclasses import dataclass

TABLE_ID = ["t"]
"""A staging namespace serves exactly one table, whose name inside it never matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """The exact name of one version of one table, relative to the graph's root."""

    path: str
    version: int
    manifest: str
    manifest_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """Where the manifest of one table version is, in Lance's own spelling of paths."""

    path: str
    size: int | None
