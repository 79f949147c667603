"""What all steps of checking one query share: the schema, the parameters, the findings.

    AST -> declare -> [context] -> patterns, outputs | mutations -> typed query

A step that finds something wrong reports it here and goes on with ``None`` in place of the value,
so that one run shows everything. A check that gets ``None`` stays silent: it was reported already.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from omnigraph.lang.source import Help, Span
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query.codes import QueryCode, QueryFindings
from omnigraph.schema.catalog import (
    Catalog,
    EdgeType,
    EntityKind,
    GraphType,
    NodeType,
    PropertyType,
    Scalar,
)

_QUOTED_MAX = 40
EDGE_COLUMNS = {"id": "id", "from": "src", "src": "src", "to": "dst", "dst": "dst"}
"""What every edge has beside its properties: the words for it, and the stored columns."""
ID_TYPE = PropertyType(scalar=Scalar.STRING)


class Context:
    """Grows while one query is checked."""

    def __init__(self, catalog: Catalog, findings: QueryFindings) -> None:
        self.catalog = catalog
        self.reports = 0
        """How many findings there are; a step compares two moments to learn about its own."""
        self.params: dict[str, PropertyType | None] = {}
        """By name; None for one whose type was refused."""
        self.used: set[str] = set()
        """Parameters that the query reads."""
        self._findings = findings
        self._names: dict[str, int] = {}

    def report(self, code: QueryCode, span: Span, message: str, **help: Unpack[Help]) -> None:
        """Record a finding: the query will not run. None stands for the refused value."""
        self.reports += 1
        self._findings.add(code, span, message, **help)

    def quote(self, span: Span) -> str:
        """What was written at a place, for a message."""
        text = " ".join(self._findings.source.text[span.start : span.end].split())
        return f"`{text}`" if len(text) <= _QUOTED_MAX else f"`{text[:_QUOTED_MAX]}…`"

    def unique(self, name: str) -> str:
        """A variable's name in the whole query; ``#`` stands in no name that a user can write."""
        count = self._names.get(name, 0) + 1
        self._names[name] = count
        return name if count == 1 and name != "_" else f"{name}#{count}"

    def reserve(self, names: Iterable[str]) -> None:
        """Keep these names for variables that the result can show."""
        self._names.update(dict.fromkeys(names, 1))

    def param(self, name: str) -> PropertyType | None:
        """A declared parameter's type; it counts as used from now on."""
        self.used.add(name)
        return self.params[name]

    def column(
        self, owner: GraphType, name: str, span: Span, *, nullable: bool = False
    ) -> tuple[str, PropertyType] | None:
        """The stored column behind a property of a node or edge, and its type."""
        prop = owner.by_name.get(name)
        if prop is not None:
            column, found = name, prop.type
        elif owner.kind == "edge" and name in EDGE_COLUMNS:
            column, found = EDGE_COLUMNS[name], ID_TYPE
        elif name == "id":
            column, found = name, ID_TYPE
        else:
            known = {*owner.by_name, *(EDGE_COLUMNS if owner.kind == "edge" else ("id",))}
            return self.report(
                QueryCode.UNKNOWN_PROPERTY,
                span,
                f"{owner.kind} type `{owner.name}` has no property `{name}`",
                hint=did_you_mean(name, known) or f"it has {', '.join(sorted(known))}",
            )
        return column, as_nullable(found) if nullable else found


def as_nullable(of: PropertyType) -> PropertyType:
    """The same type, with null."""
    if of.nullable:
        return of
    return PropertyType(
        scalar=of.scalar,
        is_list=of.is_list,
        nullable=True,
        enum_values=of.enum_values,
        vector_size=of.vector_size,
    )


# -- scope -----------------------------------------------------------------------------------------
# Which variables a clause can see, and what is known about them.
#
#     patterns -> [scope] <- places (expressions)
#
# Every block has a scope; an inner one sees the outer ones and remembers which of their variables
# it mentions. Optional blocks hand their variables to the scope around them when they are checked.


class Bound:
    """A node or edge variable. Node types are filled in while traversals are resolved."""

    __slots__ = ("anonymous", "kind", "name", "optional", "settled", "type")

    def __init__(
        self, name: str, kind: EntityKind, *, anonymous: bool = False, optional: bool = False
    ) -> None:
        self.name = name
        """Unique in the whole query."""
        self.kind: EntityKind = kind
        self.type: NodeType | EdgeType | None = None
        """None while not settled, and for good when what was written made no sense."""
        self.settled = False
        self.anonymous = anonymous
        self.optional = optional
        """May be unbound where this scope looks at it."""

    def settle(self, found: NodeType | EdgeType | None) -> None:
        """Decide the type."""
        self.type = found
        self.settled = True

    def as_optional(self) -> Bound:
        """The same variable as those around an optional block see it."""
        seen = Bound(self.name, self.kind, anonymous=self.anonymous, optional=True)
        seen.settle(self.type)
        return seen


class Scope:
    """The variables of one block."""

    def __init__(self, ctx: Context, outer: Scope | None = None, *, local: bool = False) -> None:
        self._ctx = ctx
        self.outer = outer
        self.local = local or (outer is not None and outer.local)
        """Whether these variables are never seen outside; else their names are reserved."""
        self.own: dict[str, Bound] = {}
        """By the name that was written."""
        self.coming: set[str] = set()
        """Names that optional blocks further down will bring."""
        self.mentioned: set[str] = set()
        """Unique names of outer variables that this block uses."""

    def find(self, name: str) -> Bound | None:
        """The variable of this name that is seen from here."""
        found = self.own.get(name)
        if found is None and self.outer is not None:
            found = self.outer.find(name)
            if found is not None:
                self.mentioned.add(found.name)
        return found

    def sees(self, name: str) -> bool:
        """Whether there is such a variable; looking does not count as mentioning."""
        return name in self.own or (self.outer is not None and self.outer.sees(name))

    def comes_later(self, name: str) -> bool:
        """Whether an optional block further down brings this variable."""
        return name in self.coming or (self.outer is not None and self.outer.comes_later(name))

    def add(self, name: str, kind: EntityKind) -> Bound:
        """A new variable; ``_`` is a different one each time and cannot be found again."""
        anonymous = name == "_"
        unique = self._ctx.unique(name) if anonymous or self.local else name
        bound = Bound(unique, kind, anonymous=anonymous)
        if not anonymous:
            self.own[name] = bound
        return bound

    def visible(self) -> set[str]:
        """All names that can be written here."""
        return {*self.own, *(self.outer.visible() if self.outer else ())}
