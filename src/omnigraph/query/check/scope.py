"""Which variables a clause can see, and what is known about them.

    patterns -> [scope] <- places (expressions)

Every block has a scope; an inner one sees the outer ones and remembers which of their variables it
mentions. Optional blocks hand their variables to the scope around them when they are checked.
"""

from __future__ import annotations

from omnigraph.query.check.context import Context
from omnigraph.schema.catalog import EdgeType, EntityKind, NodeType


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
