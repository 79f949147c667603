"""Schemas by their hash: objects that never change, read once.

hash -> [schemas] -> text and catalog
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock

from omnigraph.errors import CorruptionError
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.ir import from_ir, schema_hash
from omnigraph.storage.objects import Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSchema:
    """A schema as a graph accepted it."""

    hash: str
    source: str
    """The `.pg` text."""
    catalog: Catalog


def schema_object(digest: str, suffix: str = "json") -> str:
    """The name of a schema's object."""
    return f"_schema/{digest}.{suffix}"


class Schemas:
    """The schemas that were read, or written here."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._known: dict[str, AcceptedSchema] = {}
        # Held while the store is asked, so that a schema is read once.
        self._reading = RLock()

    def get(self, digest: str) -> AcceptedSchema:
        """A schema by its hash, verified against its name."""
        with self._reading:
            if digest not in self._known:
                content = self._objects.get(schema_object(digest), referenced=True) or b""
                if schema_hash(content) != digest:
                    raise CorruptionError(
                        f"the schema object {schema_object(digest)} does not match its name",
                        hint="restore it from a copy of the graph",
                    )
                catalog, source = from_ir(content)
                self.keep(AcceptedSchema(hash=digest, source=source, catalog=catalog))
            return self._known[digest]

    def keep(self, schema: AcceptedSchema) -> None:
        """Remember a schema so that it is not read again."""
        with self._reading:
            self._known[schema.hash] = schema
