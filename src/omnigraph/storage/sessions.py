"""One Lance session for each lineage of a table, and proof that a version lists its own indexes.

    base -> [which write continues it] -> commits in its session, or in a new one -> [verify] -> pin

A session keeps the list of a version's indexes under the path of the table and the number of the
version, and the next commit writes into its own version what it finds there. Two lineages of one
table count alike. In one session the second would take the indexes of the first for its own, for
good, and they would answer for files that they have never seen (docs/adr/0020).
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

import lance
from lance import LanceDataset

from omnigraph.errors import InternalError

SESSION_METADATA_BYTES_MAX = 8 << 20


def own_session() -> Any:
    """A Lance session of its own. Small: it would keep the manifest of every version it saw."""
    return lance.Session(  # pyright: ignore[reportPrivateImportUsage]
        metadata_cache_size_bytes=SESSION_METADATA_BYTES_MAX
    )


def in_own_session(dataset: LanceDataset, managed: Mapping[str, Any]) -> LanceDataset:
    """The same version in a session that knows nothing else: the manifest is taken from memory.

    One request, and one more when the version has indexes and they are asked for.
    """
    return LanceDataset(
        dataset.uri,
        dataset.version,
        serialized_manifest=dataset._ds.serialized_manifest(),  # pyright: ignore[reportPrivateUsage]
        session=own_session(),
        **managed,
    )


class Succession:
    """One write goes on from a version in its own session, so that the session stays a chain."""

    def __init__(self) -> None:
        self._heir = Lock()

    def claim(self) -> bool:
        """True for the first that asks, whatever becomes of its version; never again after that."""
        return self._heir.acquire(blocking=False)


def listed_segments(dataset: LanceDataset) -> frozenset[str]:
    """The parts of all indexes that a version lists. No request for one that was just made."""
    return frozenset(
        str(segment.uuid) for index in dataset.describe_indices() for segment in index.segments
    )


def verify_indexes(
    path: str, base: LanceDataset | None, made: LanceDataset, built: frozenset[str]
) -> None:
    """Raise unless a version lists indexes of its base and those that were built on the way only.

    Both lists were needed for the commit: they are in memory, and the one of the version that was
    made is the one that the next commit would go by.
    """
    listed = listed_segments(made)
    foreign = listed - built
    if foreign and base is not None:
        foreign -= listed_segments(base)
    if foreign:
        raise InternalError(
            f"version {made.version} of {path} lists indexes that were built for another one:"
            f" {', '.join(sorted(foreign))}",
            hint="nothing was published: repeat the command",
            details={"path": path, "version": made.version, "segments": sorted(foreign)},
        )
