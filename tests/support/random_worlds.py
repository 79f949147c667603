"""Schemas for random tests, and the few values that each property may have.

    [random_worlds] -> random_graphs (data) and random_queries (constants)

Data and queries draw from the same small pools, so that comparisons hit. A pool holds what is hard
about its type: numbers that a 64-bit float cannot hold, text that differs by case or accent, ids
that occur in several types. Fractions are sums of few powers of two, so that adding and averaging
them is exact in any order and results can be compared without an excuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.schema.catalog import Catalog, PropertyType, Scalar
from omnigraph.schema.compile import compile_schema

NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""The moment at which random queries run; the start of ``ManualClock``."""

FLEET = """
interface Named { name: String @index }
node Vessel implements Named { imo: I64 @key  flag: enum(dk, no, pa)?  built: Date?  tags: [String]?
                               @range(imo, 1..9999999) }
node Port   implements Named { code: String @key  berths: U32 }
edge CallsAt: Vessel -> Port @card(0..3) { on: Date  cargo: String? }
edge Feeds:   Port -> Port   { @unique(src, dst) }
"""

SOCIAL = """
node Person {
    handle: String @key
    level: U32
    age: I32?
    total: I64?
    big: U64?
    score: F64?
    weight: F32?
    mood: enum(calm, glad, sad)?
    active: Bool?
    born: Date?
    seen: DateTime?
    nicks: [String]?
    marks: [I64]?
    bio: String? @index
    place: Vector(3)?
}
node Club { title: String  motto: String? @index  founded: Date?  rating: F64? }
edge Knows: Person -> Person { since: I32?  close: Bool?  at: DateTime? }
edge Follows: Person -> Person { @key(@src, @dst)  strength: F64? }
edge MemberOf: Person -> Club @card(0..4) { role: enum(chair, member)?  joined: Date?  dues: F64 }
edge Hosts: Club -> Person
"""

PAPERS = """
node Paper {
    number: I64 @key
    title: String @index
    summary: String? @index
    topic: Vector(3)? @index
    year: I32
    words: [String]
}
node Author { name: String  joined: DateTime?  rank: U64? }
edge Cites: Paper -> Paper { @unique(src, dst)  weight: I32? }
edge Wrote: Author -> Paper { position: U32  note: String? }
edge Advises: Author -> Author
"""

_TEXTS = (
    "",
    "Ice",
    "ice breaker",
    "the quick breaker of ice",
    "Ice, ice; harbour",
    "harbour pilot",
    "quick harbor pilot ice",
    "Pilots",
    "café harbour",
    "...",
)
_VECTORS = (
    (0.0, 0.0, 0.0),
    (1.0, 0.0, 0.0),
    (0.0, 1.0, 0.0),
    (0.5, 0.5, 0.0),
    (-1.0, 2.0, 0.25),
    (1.0, 1.0, 1.0),
)
_IDS = ("a", "b", "ab", "100", "B", "é", "x y", 'q"t')
"""Ids of every type that is not keyed by a number; unsorted, and shared between types."""

_NUMBERS: dict[Scalar, tuple[int | float, ...]] = {
    Scalar.I32: (-2, 0, 1, 2, 3),
    Scalar.I64: (-2, 0, 1, 2, 3),
    Scalar.U32: (0, 1, 2, 3),
    Scalar.U64: (0, 1, 2, 3),
    Scalar.F32: (-1.5, 0.0, 0.5, 1.0, 2.0, 2.5),
    Scalar.F64: (-1.5, 0.0, 0.5, 1.0, 2.0, 2.5),
}
_OTHERS: dict[Scalar, tuple[Any, ...]] = {
    Scalar.STRING: ("", "a", "ab", "abc", "Ab", "b", "é", "%_"),
    Scalar.BOOL: (False, True),
    Scalar.DATE: (date(1969, 12, 31), date(2026, 1, 1), date(2026, 1, 2), date(2026, 2, 2)),
    Scalar.DATETIME: (
        datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
        NOW,
        datetime(2026, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC),
        datetime(2026, 6, 1, 12, 30, tzinfo=UTC),
    ),
    Scalar.VECTOR: _VECTORS,
}
EXACT = 2**53
"""From here on a 64-bit float cannot tell all integers apart."""

SHORT_TENTH = 0.10000000149011612
"""0.1 as a 32-bit float; not equal to 0.1."""

_SPECIAL: Mapping[str, tuple[Any, ...]] = {
    "Vessel.imo": (100, 200, 300, 400, 500, 600, 700, 800),
    "Vessel.name": ("Alba", "Brisa", "Cora", "ice breaker", "Ice pilot"),
    "Vessel.tags": ((), ("ice",), ("ice", "ro-ro"), ("ro-ro", "ice", "ice")),
    "Port.code": _IDS,
    "Port.name": ("Alba", "Aarhus harbour", "old harbour", ""),
    "Person.handle": _IDS,
    "Person.total": (-2, 0, 1, 2, EXACT, EXACT + 1, 2**63 - 1),
    "Person.big": (0, 1, 2, EXACT, EXACT + 1, 2**63, 2**64 - 1),
    "Person.score": (-1.5, 0.0, 0.5, 1.0, 2.0, float(EXACT)),
    "Person.weight": (-1.5, 0.0, 0.5, 1.0, 2.0, SHORT_TENTH),
    "Person.nicks": ((), ("a",), ("a", "b", "a"), ("b", "é")),
    "Person.marks": ((), (1,), (1, 2, 2), (2, -2)),
    "Person.bio": _TEXTS,
    "Club.motto": _TEXTS,
    "Paper.number": (1, 2, 3, 4, 5, 10, 20, 100),
    "Paper.title": _TEXTS,
    "Paper.summary": _TEXTS,
    "Paper.words": ((), ("ice",), ("ice", "sea"), ("sea", "sea")),
}


class RandomWorld:
    """A schema with the values that its properties may have."""

    def __init__(self, name: str, schema: str, inexact: tuple[str, ...] = ()) -> None:
        self.name = name
        self.schema = schema
        self.catalog: Catalog = compile_schema(schema)
        self.inexact = frozenset(inexact)
        """``Type.property`` whose sums depend on the order of addition."""

    def __repr__(self) -> str:
        return f"<world {self.name}>"

    def pool(self, type_name: str, property_name: str, property_type: PropertyType) -> list[Any]:
        """The values of a property, without null; a list is a tuple."""
        special = _SPECIAL.get(f"{type_name}.{property_name}")
        return list(special if special is not None else plain_pool(property_type))


def plain_pool(property_type: PropertyType) -> tuple[Any, ...]:
    """Values of a type; of the elements, for a list."""
    if property_type.enum_values is not None:
        return property_type.enum_values
    return _NUMBERS.get(property_type.scalar) or _OTHERS[property_type.scalar]


IDS = _IDS
VECTORS = _VECTORS


WORLDS = (
    RandomWorld("fleet", FLEET),
    RandomWorld("social", SOCIAL, ("Person.total", "Person.big", "Person.score")),
    RandomWorld("papers", PAPERS),
)
