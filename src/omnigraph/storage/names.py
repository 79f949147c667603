"""How a table version and its manifest are named, in our words and in Lance's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TABLE_ID = ["t"]
"""A staging namespace serves exactly one table, whose name inside it never matters."""


HINT_NAME = "_versions/latest_version_hint.json"
"""Where Lance notes its newest version of a dataset, below it."""

_LAST_NAME = (1 << 64) - 1
_VERSION_NAME = re.compile(r"(\d{20})\.manifest")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVersion:
    """The exact name of one version of one table, relative to the graph's root."""

    path: str
    version: int
    manifest: str
    manifest_size: int | None = field(compare=False)
    """None if it was not known yet when the version was written down. It saves a look at the
    object, and says nothing about which version it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """Where the manifest of one table version is, in Lance's own spelling of paths."""

    path: str
    size: int | None


def final_name(path: str, name: str) -> str:
    """The manifest of a table version as a snapshot names it, from the root."""
    return f"{path}/_graph/{name}.manifest"


def manifest_name(path: str, version: int) -> str:
    """The manifest of a version under Lance's own name, from the root."""
    # Lance counts down, so that the newest version is listed first.
    return f"{path}/_versions/{_LAST_NAME - version:020d}.manifest"


def version_of(name: str) -> int | None:
    """The inverse of ``manifest_name``; None for any other name."""
    found = _VERSION_NAME.fullmatch(name.rpartition("/")[2])
    return _LAST_NAME - int(found[1]) if found is not None else None
