"""Rules of a type as values that renaming does not change.

Members are stable numbers, so a rule over a renamed property is the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.schema.catalog import GraphType, NodeType, Range

Member = int | str
"""A property by its number; ``src`` and ``dst`` by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintRule:
    """One ``@unique``, ``@index``, ``@range`` or ``@check``."""

    word: str
    members: tuple[Member, ...]
    low: int | float | None = None
    high: int | float | None = None
    pattern: str | None = None

    @property
    def first(self) -> int:
        """The property of a rule about one."""
        return int(self.members[0])

    def text(self, graph_type: GraphType) -> str:
        """As the language writes it, with the names of a declaration of the type."""
        names = {p.id: p.name for p in graph_type.properties}
        shown = [names[m] if isinstance(m, int) else m for m in self.members]
        if self.word == "range":
            low, high = ("" if b is None else str(b) for b in (self.low, self.high))
            shown.append(f"{low}..{high}")
        elif self.pattern is not None:
            shown.append('"' + self.pattern.replace("\\", "\\\\").replace('"', '\\"') + '"')
        return f"@{self.word}({', '.join(shown)})"


def rules_of(graph_type: GraphType) -> list[ConstraintRule]:
    """The rules of a type but its key, each once, in the order of declaration."""

    def group(word: str, names: tuple[str, ...]) -> ConstraintRule:
        members = tuple(sorted((member(graph_type, n) for n in names), key=member_order))
        return ConstraintRule(word=word, members=members)

    found = [group("unique", names) for names in graph_type.unique]
    # A key is an index on each of its members; that is said by the key.
    keys = {(name,) for name in graph_type.key}
    found += [group("index", names) for names in graph_type.indexes if names not in keys]
    if isinstance(graph_type, NodeType):
        found += [range_rule(graph_type, r) for r in graph_type.ranges]
        found += [
            ConstraintRule(
                word="check", members=(member(graph_type, c.property_name),), pattern=c.pattern
            )
            for c in graph_type.checks
        ]
    return list(dict.fromkeys(found))


def member_order(place: Member) -> tuple[bool, int]:
    """The order of members says nothing, so there is one: endpoints, then by number."""
    return (False, place == "dst") if isinstance(place, str) else (True, place)


def range_rule(graph_type: GraphType, bounds: Range) -> ConstraintRule:
    """A range as a rule."""
    place = member(graph_type, bounds.property_name)
    return ConstraintRule(word="range", members=(place,), low=bounds.low, high=bounds.high)


def member(graph_type: GraphType, name: str) -> Member:
    """What a name in a rule means."""
    prop = graph_type.by_name.get(name)
    return prop.id if prop is not None else name


def key_of(graph_type: GraphType) -> tuple[bool, tuple[Member, ...]]:
    """Whether a type has a key, and its members."""
    keyed = bool(graph_type.key) or getattr(graph_type, "keyed", False)
    return keyed, tuple(member(graph_type, n) for n in graph_type.key)


def key_text(graph_type: GraphType) -> str:
    """A key as the language writes it."""
    ends = ["@src", "@dst"] if getattr(graph_type, "keyed", False) else []
    members = [*ends, *graph_type.key]
    return f"@key({', '.join(members)})" if members else "no key"


def covers(wider: ConstraintRule, narrower: ConstraintRule) -> bool:
    """Whether whatever keeps the one range keeps the other."""
    low = wider.low is None or (narrower.low is not None and narrower.low >= wider.low)
    high = wider.high is None or (narrower.high is not None and narrower.high <= wider.high)
    return wider.members == narrower.members and low and high
