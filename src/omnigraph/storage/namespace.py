"""The staging namespace: how Lance commits a table version without anybody seeing it.

Lance lets a catalog own table versions. A commit on such a table writes its files and a manifest
under a unique staging name, then asks the catalog to create the version; no HEAD moves. Here the
catalog is one small object per table and write that answers from memory, so a write stages any
number of versions and one commit to ``__manifest`` makes them visible (docs/adr/0001).

Importing this module costs a second (Lance's client for REST catalogs comes with it), so it is
imported when the first table is opened, not before.
"""

from __future__ import annotations

from typing import Any

from lance_namespace import (
    CreateTableVersionResponse,
    DescribeTableResponse,
    DescribeTableVersionResponse,
    LanceNamespace,
    ListTableVersionsResponse,
    TableVersion,
)

from omnigraph.errors import InternalError
from omnigraph.storage.names import ManifestFile


class StagingNamespace(LanceNamespace):
    """One table's lineage as one reader or writer may see it."""

    def __init__(self, location: str, versions: dict[int, ManifestFile]) -> None:
        self._location = location
        self._versions = dict(versions)
        self._indexes_built: set[str] = set()

    @property
    def indexes_built(self) -> frozenset[str]:
        """The parts of indexes that were built by who stages here."""
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
        return StagingNamespace(self._location, self._versions)

    def settle(self, version: int, manifest: ManifestFile, *, since: int) -> list[ManifestFile]:
        """Forget all other versions: from now on this one is the lineage.

        Returns the manifests that were made after ``since`` on the way to it.
        """
        passed = [m for v, m in self._versions.items() if since < v < version]
        self._versions = {version: manifest}
        return passed

    def namespace_id(self) -> str:
        return "omnigraph"

    def describe_table(self, request: Any) -> DescribeTableResponse:
        return DescribeTableResponse(location=self._location, managed_versioning=True)

    def describe_table_version(self, request: Any) -> DescribeTableVersionResponse:
        version = dict(request).get("version") or max(self._versions)
        return DescribeTableVersionResponse(version=self._entry(version))

    def list_table_versions(self, request: Any) -> ListTableVersionsResponse:
        wanted = dict(request)
        versions = sorted(self._versions, reverse=bool(wanted.get("descending")))
        return ListTableVersionsResponse(
            versions=[self._entry(v) for v in versions[: wanted.get("limit") or None]]
        )

    def create_table_version(self, request: Any) -> CreateTableVersionResponse:
        made = dict(request)
        version = made["version"]
        if version in self._versions:
            raise InternalError(f"version {version} of {self._location} was staged twice")
        self._versions[version] = ManifestFile(
            path=made["manifest_path"], size=made.get("manifest_size")
        )
        return CreateTableVersionResponse(version=self._entry(version))

    def _entry(self, version: int) -> TableVersion:
        manifest = self._versions[version]
        return TableVersion(
            version=version, manifest_path=manifest.path, manifest_size=manifest.size
        )
