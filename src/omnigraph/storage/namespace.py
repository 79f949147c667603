"""The staging namespace: how Lance commits a table version without showing it.

Lance lets a catalog own table versions. A commit on such a table writes its files and a manifest
under a unique staging name, then asks the catalog to create the version; no HEAD moves. Here the
catalog is one small object per table and write that answers from memory, so a write stages any
number of versions and one commit to ``__manifest`` makes them visible (docs/adr/0001).

Lance calls the methods of a namespace by their names and reads an answer through ``model_dump``; it
asks for no class. So the answers are made here: those of `lance_namespace` are models of a client
for REST catalogs, whose import takes more than a second. For the same reason tables are opened
with ``opened``: ``lance.dataset`` imports that client to ask a namespace where the table lies.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock
from typing import Any

import lance
from lance import LanceDataset

from omnigraph.errors import InternalError
from omnigraph.storage.location import Location
from omnigraph.storage.names import HINT_NAME, TABLE_ID, ManifestFile


class _Answer(dict[str, Any]):
    """What Lance accepts as a response of a namespace, in the words of its specification."""

    def model_dump(self) -> dict[str, Any]:
        return self


class StagingNamespace:
    """One table's lineage as one reader or writer may see it."""

    def __init__(
        self,
        location: str,
        versions: dict[int, ManifestFile],
        place: Location | None = None,
    ) -> None:
        self._location = location
        self._place = place
        self._versions = dict(versions)
        self._indexes_built: set[str] = set()

    @property
    def _managed(self) -> dict[str, Any]:
        return {
            "storage_options": _options(self._place),
            "namespace_client": self,
            "table_id": TABLE_ID,
            "namespace_client_managed_versioning": True,
        }

    @property
    def is_remote(self) -> bool:
        """Whether the table lies on another machine."""
        return "://" in self._location and not self._location.startswith("file:")

    def opened(self, version: int, *, session: Any = None) -> LanceDataset:
        """The table as it is at a version of this lineage; commits on it are staged here."""
        return LanceDataset(self._location, version, session=session, **self._managed)

    def opened_as(self, facts: LanceDataset, *, session: Any) -> LanceDataset:
        """A version of this lineage whose manifest is in memory, wherever that lies.

        One request, and one more when the version has indexes and they are asked for.
        """
        manifest = facts._ds.serialized_manifest()  # pyright: ignore[reportPrivateUsage]
        return LanceDataset(
            self._location,
            facts.version,
            serialized_manifest=manifest,
            session=session,
            **self._managed,
        )

    def in_own_session(self, dataset: LanceDataset) -> LanceDataset:
        """The same version in a session that knows nothing else."""
        return self.opened_as(dataset, session=own_session())

    def commit(self, base: LanceDataset | str, operation: Any, **options: Any) -> LanceDataset:
        """The version after ``base``, where no reader sees it; a URI begins a table."""
        if isinstance(base, LanceDataset):
            options["read_version"] = base.version
            self._forget_hint()
        made = LanceDataset.commit(base, operation, max_retries=0, **self._managed, **options)
        if isinstance(base, str) and self._place is not None and self._place.keys is not None:
            # Made of a path, it would not ask for keys when its own expire.
            return self.in_own_session(made)
        return made

    def _forget_hint(self) -> None:
        # A commit looks for newer versions in the folder of the table, at first for the one that
        # Lance noted there last. None of ours is there under that name, and then it lists them all.
        # On a disk it does so right away if the note says nothing: a quarter of the time of a
        # commit. It is emptied, not removed: a commit that has just written it looks at it again.
        if "://" not in self._location:
            with suppress(OSError):
                os.truncate(f"{self._location}/{HINT_NAME}", 0)

    @property
    def indexes_built(self) -> frozenset[str]:
        """The parts of indexes that were built by what stages here."""
        return frozenset(self._indexes_built)

    def note_index(self, uuid: str) -> None:
        """A part of an index was built for a version that is staged here."""
        self._indexes_built.add(uuid)

    def staged(self, version: int) -> ManifestFile:
        """Where a version committed through this namespace put its manifest."""
        return self._versions[version]

    def made_since(self, version: int) -> list[ManifestFile]:
        """The manifests of all versions after one, in order."""
        return [self._versions[later] for later in sorted(self._versions) if later > version]

    def fork(self) -> StagingNamespace:
        """The same lineage, free to grow apart."""
        return StagingNamespace(self._location, self._versions, self._place)

    def settle(self, version: int, manifest: ManifestFile, *, since: int) -> list[ManifestFile]:
        """Forget all other versions: from now on this one is the lineage.

        Returns the manifests that were made after ``since`` on the way to it.
        """
        passed = [m for v, m in self._versions.items() if since < v < version]
        self._versions = {version: manifest}
        return passed

    def namespace_id(self) -> str:
        return "omnigraph"

    def describe_table(self, request: Any) -> _Answer:
        return _Answer(
            location=self._location, managed_versioning=True, storage_options=_options(self._place)
        )

    def describe_table_version(self, request: Any) -> _Answer:
        version = dict(request).get("version") or max(self._versions)
        return _Answer(version=self._entry(version))

    def list_table_versions(self, request: Any) -> _Answer:
        wanted = dict(request)
        versions = sorted(self._versions, reverse=bool(wanted.get("descending")))
        return _Answer(versions=[self._entry(v) for v in versions[: wanted.get("limit") or None]])

    def create_table_version(self, request: Any) -> _Answer:
        made = dict(request)
        version = made["version"]
        if version in self._versions:
            raise InternalError(f"version {version} of {self._location} was staged twice")
        self._versions[version] = ManifestFile(
            path=made["manifest_path"], size=made.get("manifest_size")
        )
        return _Answer(version=self._entry(version))

    def _entry(self, version: int) -> dict[str, Any]:
        manifest = self._versions[version]
        entry: dict[str, Any] = {"version": version, "manifest_path": manifest.path}
        return entry if manifest.size is None else {**entry, "manifest_size": manifest.size}


# -- keys that expire ------------------------------------------------------------------------------
# Lance asks a namespace for options anew when those that it has come to their end.


class _Lender:
    """A namespace of one dataset, which knows nothing but how to get there."""

    def __init__(self, uri: str, place: Location) -> None:
        self._uri = uri
        self._place = place

    def namespace_id(self) -> str:
        return f"omnigraph:{self._uri}"

    def describe_table(self, request: Any) -> _Answer:
        return _Answer(location=self._uri, storage_options=_options(self._place))


def access(place: Location, path: str) -> dict[str, Any]:
    """What Lance needs to reach a dataset below a root, as arguments of its functions."""
    options: dict[str, Any] = {"storage_options": _options(place)}
    if place.keys is None:
        return options
    lender = _Lender(place.table_uri(path), place)
    return {**options, "namespace_client": lender, "table_id": TABLE_ID}


def open_dataset(
    place: Location, path: str, version: int | None = None, *, session: Any = None
) -> LanceDataset:
    """A dataset as any program opens it, at a version or at its newest."""
    return LanceDataset(place.table_uri(path), version, session=session, **access(place, path))


def _options(place: Location | None) -> dict[str, str] | None:
    return place.storage_options if place is not None else None


# -- sessions --------------------------------------------------------------------------------------
# One Lance session for each lineage of a table, and proof that a version lists its own indexes.
#
#     base -> [which write continues it] -> commits in its session or a new one -> [verify] -> pin
#
# A session keeps the list of a version's indexes under the path of the table and the number of the
# version, and the next commit writes into its own version what it finds there. Two lineages of one
# table count alike. In one session the second would take the indexes of the first for its own, for
# good, and they would answer for files that they have never seen (docs/adr/0020).


SESSION_METADATA_BYTES_MAX = 8 << 20


def own_session() -> Any:
    """A Lance session of its own. Small: it would keep the manifest of every version it saw."""
    return lance.Session(  # pyright: ignore[reportPrivateImportUsage]
        metadata_cache_size_bytes=SESSION_METADATA_BYTES_MAX
    )


class Succession:
    """One write goes on from a version in its own session, so that the session stays a chain."""

    def __init__(self) -> None:
        self._claimed = Lock()

    def claim(self) -> bool:
        """True for the first that asks, whatever becomes of its version; never again after that."""
        return self._claimed.acquire(blocking=False)


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
