"""Types and columns of two snapshots, matched by their stable numbers.

    two catalogs -> [types] -> pairs of types -> delta per pair

A name may change between two snapshots, and a name may come back with another meaning. The numbers
of a type, of the life of its table and of a property do neither, so only they say what belongs
together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from omnigraph.errors import InternalError
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EntityKind, GraphType, Property, Scalar
from omnigraph.schema.migrate.renumbering import one_numbering


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPair:
    """A column of a table in two versions: its name in each, None where it does not exist."""

    before: str | None
    after: str | None
    is_blob: bool = False
    same_type: bool = True

    @property
    def name(self) -> str:
        """What to call it: the newer name."""
        return self.after or self.before or ""


@dataclass(frozen=True, kw_only=True)
class ComparedTypes:
    """One type in two snapshots; None where it does not exist. At least one is there."""

    before: GraphType | None
    after: GraphType | None
    numbers: Mapping[int, int] = field(default_factory=dict[int, int])
    """Numbers that are to be read as others: one thing may have two."""

    @staticmethod
    def unchanged(graph_type: GraphType) -> ComparedTypes:
        """A type that both sides know by the same declaration."""
        return ComparedTypes(before=graph_type, after=graph_type)

    @property
    def newest(self) -> GraphType:
        """The type as the newer snapshot that has it declares it."""
        found = self.after or self.before
        if found is None:
            raise InternalError("a pair of types without a type")
        return found

    @property
    def kind(self) -> EntityKind:
        return self.newest.kind

    @property
    def table_key(self) -> str:
        """The key under the newer name."""
        return self.newest.table_key

    @cached_property
    def columns(self) -> tuple[ColumnPair, ...]:
        """Every column but the id, in the order of the newer declaration, dropped ones last."""
        system = [n for n in self.newest.system_columns if n != "id"]
        pairs = [
            ColumnPair(
                before=name if self.before is not None else None,
                after=name if self.after is not None else None,
            )
            for name in system
        ]
        old = self._properties(self.before)
        new = self._properties(self.after)
        for number in [*new, *(n for n in old if n not in new)]:
            was, now = old.get(number), new.get(number)
            pairs.append(
                ColumnPair(
                    before=was.name if was else None,
                    after=now.name if now else None,
                    is_blob=any(p is not None and p.type.scalar is Scalar.BLOB for p in (was, now)),
                    same_type=bool(was and now and arrow_type(was.type) == arrow_type(now.type)),
                )
            )
        return tuple(pairs)

    @property
    def comparable(self) -> bool:
        """Whether the same stored row is the same entity on both sides.

        It is not when a column is new or holds values of another type. One that is gone is a
        change of the schema and not of rows (ADR 0019).
        """
        return all(c.after is None or (c.before and c.same_type) for c in self.columns)

    def _properties(self, graph_type: GraphType | None) -> dict[int, Property]:
        """By stable number; a declared id is the entity's own and no column beside it."""
        if graph_type is None:
            return {}
        own = [p for p in graph_type.properties if p.name not in graph_type.system_columns]
        return {self.numbers.get(p.id, p.id): p for p in own}


def matched_types(before: Catalog, after: Catalog) -> Sequence[ComparedTypes]:
    """All types of two schemas, by type and table life: nodes before edges, then by number."""
    numbers = one_numbering([after, before])
    old, new = (
        {(numbers.get(t.id, t.id), numbers.get(t.incarnation, t.incarnation)): t for t in c.types()}
        for c in (before, after)
    )
    pairs = [
        ComparedTypes(before=old.get(k), after=new.get(k), numbers=numbers) for k in {**new, **old}
    ]
    return sorted(pairs, key=lambda p: (p.kind != "node", p.newest.stable_id))
