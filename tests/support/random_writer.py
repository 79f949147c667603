"""Choices of one random query: constants, parameters, names (needs the dev dependencies).

random_worlds -> [random_writer] -> random_conditions -> random_queries
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from itertools import chain, count
from typing import Any, TypeVar

from hypothesis import strategies as st

from omnigraph.schema.catalog import EdgeType, GraphType, NodeType, PropertyType, Scalar
from support.random_worlds import EXACT, RandomWorld

Item = TypeVar("Item")

# Not in alphabetical order of their making, because rows are told apart by variables in that order.
NODE_NAMES = ("m", "b", "z", "a", "k", "y", "c", "x")
EDGE_NAMES = ("r", "e", "w", "d")
# For variables of inner blocks; blocks beside each other have the same names.
LOCAL_NAMES = tuple(f"{letter}{n}" for n in ("", "2", "3", "4") for letter in "hijlostu")

_RANGES = {
    Scalar.I32: (-(2**31), 2**31 - 1),
    Scalar.I64: (-(2**63), 2**63 - 1),
    Scalar.U32: (0, 2**32 - 1),
    Scalar.U64: (0, 2**64 - 1),
}
_STRING = PropertyType(scalar=Scalar.STRING)


@dataclass(frozen=True, kw_only=True)
class Var:
    """A variable in sight."""

    name: str
    type: GraphType
    nullable: bool = False
    """It stands in an optional block."""
    reachable: bool = True
    """Traversals of the current block may use it; those of inner blocks always may."""

    @property
    def is_node(self) -> bool:
        return isinstance(self.type, NodeType)


@dataclass(frozen=True, kw_only=True)
class Field:
    """A property of a variable, as it is written."""

    var: Var
    name: str
    type: PropertyType

    @property
    def text(self) -> str:
        return f"${self.var.name}.{self.name}"

    @property
    def is_list(self) -> bool:
        return self.type.is_list

    @property
    def is_scalar(self) -> bool:
        return not self.type.is_list and self.type.scalar not in (Scalar.VECTOR, Scalar.BLOB)

    @property
    def category(self) -> str:
        """Values of equal category can be compared; of a list, its elements."""
        scalar = self.type.scalar
        return "number" if scalar.is_numeric else str(scalar)


@dataclass(frozen=True, kw_only=True)
class RandomQuery:
    """A text and the values of its parameters."""

    text: str
    params: dict[str, Any]


class Writer:
    """Everything that is decided while one query is written."""

    def __init__(self, draw: st.DrawFn, world: RandomWorld) -> None:
        self._draw = draw
        self.world = world
        self.declared: dict[str, str] = {}
        self.params: dict[str, Any] = {}
        self._used: set[str] = set()

    # ------------------------------------------------------------ choices

    def chance(self, percent: int) -> bool:
        """True that often; what shrinks away is the yes."""
        return self._draw(st.integers(0, 99)) >= 100 - percent

    def pick(self, items: Sequence[Item]) -> Item:
        """One of them; shrinks towards the first."""
        return self._draw(st.sampled_from(items))

    def number(self, low: int, high: int) -> int:
        """An integer in a closed range."""
        return self._draw(st.integers(low, high))

    # ------------------------------------------------------------ names

    def fresh(self, names: Sequence[str]) -> str:
        """A variable's name that the query does not have yet."""
        # A large query may need more names than there are.
        numbered = (f"{name}{number}" for number in count(2) for name in names)
        name = next(n for n in chain(names, numbered) if n not in self._used)
        self._used.add(name)
        return name

    # ------------------------------------------------------------ fields

    def fields(self, scope: Sequence[Var], wanted: Callable[[Field], bool]) -> list[Field]:
        """Properties in sight that a test is looking for, the ids included."""
        found: list[Field] = []
        for var in scope:
            names = [("id", _STRING)]
            if isinstance(var.type, EdgeType):
                names += [("from", _STRING), ("to", _STRING)]
            names += [(p.name, p.type) for p in var.type.properties]
            found += [Field(var=var, name=n, type=t) for n, t in names]
        return [f for f in found if wanted(f)]

    # ------------------------------------------------------------ constants

    def pool(self, field: Field) -> list[Any]:
        """Values to compare a field with; of a list, its elements."""
        if field.name == "id":
            return ["a", "b", "100", "1", "e05"]
        if field.name in ("from", "to"):
            return ["a", "b", "100"]
        values = self.world.pool(field.var.type.name, field.name, field.type)
        if field.type.is_list:
            values = [v for one in values for v in one]
            return list(dict.fromkeys(values))
        if field.type.scalar.is_numeric and field.type.enum_values is None:
            values += [1.5, 0, 3, 0.1]
        return values

    def constant(self, field: Field) -> str:
        """A literal or a parameter that a field can be compared with."""
        value = self.pick(self.pool(field))
        if self.chance(40):
            return self.parameter(value, nullable=self.chance(25))
        return literal(value)

    def parameter(self, value: Any, *, nullable: bool = False) -> str:
        """Declare a parameter with this value, or with null."""
        base = self._scalar_for(value)
        if nullable and self.chance(40):
            value = None
        return self.declare(base + ("?" if nullable else ""), value)

    def list_parameter(self, values: Sequence[Any]) -> str:
        """Declare a parameter that is a list."""
        floats = any(isinstance(v, float) for v in values)
        base = str(Scalar.F64) if floats else self._scalar_for(values[0])
        if not floats and isinstance(values[0], int) and not isinstance(values[0], bool):
            base = "U64" if max(values) >= 2**63 else "I64"
            values = [max(0, v) for v in values] if base == "U64" else values
        return self.declare(f"[{base}]", list(values))

    def declare(self, type_text: str, value: Any) -> str:
        """Declare a parameter; the text that uses it."""
        name = f"p{len(self.declared) + 1}"
        self.declared[name] = type_text
        self.params[name] = value
        return f"${name}"

    def _scalar_for(self, value: Any) -> str:
        if isinstance(value, bool):
            return "Bool"
        if isinstance(value, int):
            fitting = [s for s, (low, high) in _RANGES.items() if low <= value <= high]
            if abs(value) <= EXACT:
                return str(self.pick([*fitting, Scalar.F64]))
            return str(self.pick(fitting))
        if isinstance(value, float):
            # Only what 32 bits hold: rounding a parameter is another test's concern.
            short = struct.unpack("f", struct.pack("f", value))[0] == value
            return str(self.pick([Scalar.F64, Scalar.F32])) if short else str(Scalar.F64)
        if isinstance(value, datetime):
            return "DateTime"
        return "Date" if isinstance(value, date) else "String"


def literal(value: Any) -> str:
    """A value as it is written in a query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, datetime):
        text = value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return f'datetime("{text}")'
    if isinstance(value, date):
        return f'date("{value.isoformat()}")'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(v) for v in value) + "]"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def inner(scope: Sequence[Var]) -> list[Var]:
    """What a block sees of the scope around it: everything, for its traversals too."""
    return [replace(v, reachable=True) for v in scope]
