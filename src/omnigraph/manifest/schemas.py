"""Schemas by their hash: objects that never change, read once.

hash -> [schemas] -> text and catalog
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock

from omnigraph.errors import CorruptionError
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.ir import from_ir, schema_hash, to_ir
from omnigraph.storage.objects import Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedSchema:
    """A schema as a graph accepted it."""

    hash: str
    source: str
    """The `.pg` text."""
    catalog: Catalog

    @staticmethod
    def of(catalog: Catalog, source: str) -> AcceptedSchema:
        """A schema with the name that it will have; nothing is written."""
        digest = schema_hash(to_ir(catalog, source))
        return AcceptedSchema(hash=digest, source=source, catalog=catalog)

    def objects(self) -> dict[str, bytes]:
        """What is stored of it, by name: named by its content, it can be written at any time."""
        return {
            schema_object(self.hash, "pg"): self.source.encode(),
            schema_object(self.hash): to_ir(self.catalog, self.source),
        }


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


# -- numbers ---------------------------------------------------------------------------------------
# Stable numbers that no two branches hand out twice.
#
#     schema apply -> [numbers] -> catalog with new types and properties
#
# Every branch has a schema of its own, and a branch can be set back; so the counter in a schema
# does not know which numbers others have taken. A block of numbers is therefore claimed for the
# whole graph: one object per claim, named by its first number, created only if it is not there. A
# claim starts where the newest one ended, so of two racers one creates it and the other looks
# again. A claim that is not used is a gap, which does no harm.


PREFIX = "_schema/numbers"


def claim_numbers(objects: Objects, first: int, count: int) -> int:
    """Take ``count`` numbers that are free in the whole graph, none below ``first``."""
    while True:
        start = max(first, _end_of_claims(objects))
        if objects.create(f"{PREFIX}/{start:016x}", str(count).encode()):
            return start


class NumberClaim:
    """The numbers of one change of a schema: a plan that is made again takes the same ones."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._claimed: tuple[int, int] | None = None
        """The first of the numbers that were claimed, and how many."""

    def first(self, lowest: int, count: int) -> int:
        """The first of ``count`` free numbers, claimed unless as many were before."""
        if self._claimed is None or self._claimed[1] < count:
            self._claimed = (claim_numbers(self._objects, lowest, count), count)
        return self._claimed[0]


def _end_of_claims(objects: Objects) -> int:
    newest = max(objects.names(f"{PREFIX}/"), default=None)
    if newest is None:
        return 0
    content = objects.get(newest, referenced=True) or b""
    try:
        return int(newest.rpartition("/")[2], 16) + int(content)
    except ValueError as e:
        raise CorruptionError(
            f"the claim of numbers {newest} is damaged", hint="restore it from a copy of the graph"
        ) from e
