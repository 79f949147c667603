"""Random query texts that fit a schema, with parameters (needs the dev dependencies).

    random_worlds, random_graphs -> [random_queries] -> the whole pipeline, and the reference

    @given(cases(world))
    def test(case):
        for query in case.queries:
            graph.query(query.text, params=query.params)

Texts, because parser, checker, planner and execution are to be compared as one. They are well-typed
by construction. What cannot be compared exactly is not written: sums that depend on the order of
addition are neither ordered by nor made distinct.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from omnigraph.schema.catalog import Scalar
from support.random_conditions import condition, searchable, text_query, text_search
from support.random_graphs import RandomGraph, graphs
from support.random_patterns import RandomClauses, match_clauses, vector_text
from support.random_worlds import VECTORS, RandomWorld
from support.random_writer import Field, RandomQuery, Writer, literal

__all__ = ["Case", "RandomQuery", "cases", "queries"]

_LIMITS = (1, 2, 3, 5, 5, 20, 3, 0)
_ALIASES = ("true_total", "n", "order_no", "limit_of", "q", "null_free")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A graph and queries to ask it."""

    graph: RandomGraph
    queries: tuple[RandomQuery, ...]


@st.composite
def cases(
    draw: st.DrawFn, world: RandomWorld, *, queries_max: int = 12, searching: bool = False
) -> Case:
    """A graph of a world with many queries, since loading it is what takes time."""
    # Nearly always as many as allowed; one when a failure is made smaller.
    count = draw(st.sampled_from([1, *[queries_max] * 9]))
    graph = draw(graphs(world))
    drawn = (draw(queries(world, searching=searching)) for _ in range(count))
    return Case(graph=graph, queries=tuple(drawn))


@st.composite
def queries(draw: st.DrawFn, world: RandomWorld, *, searching: bool = False) -> RandomQuery:
    """One read; with ``searching`` one that mostly tests texts or ranks."""
    w = Writer(draw, world)
    clauses = match_clauses(w)
    if searching and (test := text_search(w, clauses.scope)) is not None and w.chance(60):
        clauses.lines.append(w.pick([test, test, f"not {test}"]))
    tail = _Return(w, clauses, ranked_percent=60 if searching else 15).text()
    body = "match {\n    " + "\n    ".join(clauses.lines) + "\n}\n" + tail
    if w.declared:
        params = ", ".join(f"${name}: {type_text}" for name, type_text in w.declared.items())
        body = f"query q({params}) {{\n{body}\n}}"
    return RandomQuery(text=body, params=dict(w.params))


@dataclass(frozen=True, kw_only=True)
class _RandomColumn:
    """An output column."""

    text: str
    """The expression, without an alias."""
    name: str
    aliased: bool
    sortable: bool

    @property
    def projection(self) -> str:
        return f"{self.text} as {self.name}" if self.aliased else self.text


class _Return:
    """Everything behind ``match``."""

    def __init__(self, w: Writer, clauses: RandomClauses, *, ranked_percent: int) -> None:
        self.w = w
        self._ranked_percent = ranked_percent
        self.clauses = clauses
        self.scope = clauses.scope
        self.columns: list[_RandomColumn] = []
        self.sorts = w.chance(45)
        self.pages = w.chance(30)
        self.distinct = w.chance(18)

    def text(self) -> str:
        """``return``, ``order``, ``limit`` and ``offset``."""
        w = self.w
        score = self._score() if w.chance(self._ranked_percent) else None
        if score is not None:
            return self._scored(score)
        aggregates = w.chance(30)
        if aggregates:
            self._aggregate_columns()
        else:
            self._plain_columns()
        keys = self._keys(aggregates) if self.sorts else []
        return self._put_together(keys, w.pick(_LIMITS) if self.pages else None)

    def _put_together(self, keys: list[str], limit: int | None) -> str:
        w = self.w
        word = "return distinct" if self.distinct else "return"
        shown = [c.projection for c in self.columns]
        # Commas are optional, except that a minus would belong to what stands before it.
        between = ", " if any(text.startswith("-") for text in shown) else w.pick([", ", "  "])
        parts = [f"{word} {{ {between.join(shown)} }}"]
        if keys:
            parts.append(f"order {{ {', '.join(keys)} }}")
        page: list[str] = []
        if limit is not None:
            page.append(f"limit {self._whole(limit)}")
        if self.pages and w.chance(40):
            page.append(f"offset {self._whole(w.pick([0, 1, 1, 2, 4]))}")
        if w.chance(20):
            page.reverse()
        return "\n".join([*parts, *page])

    def _whole(self, value: int) -> str:
        if self.w.chance(30):
            return self.w.declare(self.w.pick(["I64", "I32", "U32", "U64"]), value)
        return str(value)

    # ------------------------------------------------------------ columns

    def _add(self, text: str, name: str | None, *, sortable: bool) -> None:
        """A column under its own name, or under an alias if there is none or it is taken."""
        taken = {c.name for c in self.columns}
        if name is not None and name not in taken and not self.w.chance(25):
            self.columns.append(
                _RandomColumn(text=text, name=name, aliased=False, sortable=sortable)
            )
            return
        alias = next(a for a in _ALIASES if a not in taken)
        self.columns.append(_RandomColumn(text=text, name=alias, aliased=True, sortable=sortable))

    def _add_field(self, field: Field) -> None:
        stored = {"from": "src", "to": "dst"}.get(field.name, field.name)
        if f"{field.var.name}.{stored}" in {c.name for c in self.columns}:
            return
        self._add(field.text, f"{field.var.name}.{field.name}", sortable=field.is_scalar)

    def _any_field(self) -> Field:
        return self.w.pick(self.w.fields(self.scope, lambda _: True))

    def _plain_columns(self) -> None:
        w = self.w
        for _ in range(w.number(1, 4)):
            kind = w.number(0, 99)
            nodes = [v for v in self.scope if v.is_node]
            if kind < 55 or not nodes:
                self._add_field(self._any_field())
            elif kind < 72:
                node = w.pick(nodes)
                self._add(f"${node.name}", node.name, sortable=False)
            elif kind < 78:
                self._add(literal(w.pick([1, -2, 2.5, "x", True])), None, sortable=False)
            elif kind < 82:
                self._add(w.parameter(w.pick([1, "x", 2.5])), None, sortable=False)
            elif kind < 86:
                self._add("now()", "now", sortable=False)
            else:
                self._computed_column()
        if not self.columns:
            self._add_field(self._any_field())

    def _computed_column(self) -> None:
        """A test, or the number of solutions of a block."""
        block = self.clauses.inner_block(self.scope) if self.w.chance(60) else None
        if block is not None:
            word = self.w.pick(["count", "exists"])
            self._add(f"{word} {block}", None, sortable=True)
        else:
            text = condition(self.w, self.scope, self.clauses.inner_block)
            # What is the same in every row orders nothing and is refused.
            varies = any(f"${v.name}" in text for v in self.scope)
            self._add(f"({text})", None, sortable=varies)

    # ------------------------------------------------------------ aggregates

    def _aggregate_columns(self) -> None:
        w = self.w
        for _ in range(w.number(0, 2)):
            nodes = [v for v in self.scope if v.is_node]
            if nodes and w.chance(15):
                node = w.pick(nodes)
                if node.name not in {c.name for c in self.columns}:
                    self._add(f"${node.name}", node.name, sortable=False)
            else:
                self._add_field(self._any_field())
        for _ in range(w.number(1, 3)):
            self._aggregate()

    def _aggregate(self) -> None:
        w = self.w
        function = w.pick(["count", "count", "sum", "avg", "min", "max"])
        if function == "count" and w.chance(60):
            var = w.pick(self.scope)
            self._call("count", f"${var.name}", var.name)
            return
        block = self.clauses.inner_block(self.scope) if w.chance(10) else None
        if block is not None:
            self._add(f"{function}(count {block})", None, sortable=True)
            return
        fields = w.fields(self.scope, lambda f: f.is_scalar)
        if function in ("sum", "avg"):
            fields = [f for f in fields if self._can_add(f)]
            if not fields:
                return self._call("count", f"${self.scope[0].name}", self.scope[0].name)
        field = w.pick(fields)
        self._call(function, field.text, f"{field.var.name}.{field.name}")

    def _can_add(self, field: Field) -> bool:
        exact = f"{field.var.type.name}.{field.name}" not in self.w.world.inexact
        compared = self.sorts or self.pages or self.distinct
        return field.type.scalar.is_numeric and (exact or not compared)

    def _call(self, function: str, argument: str, name: str) -> None:
        word = "distinct " if function in ("count", "sum", "avg") and self.w.chance(30) else ""
        self._add(f"{function}({word}{argument})", f"{function}({word}{name})", sortable=True)

    # ------------------------------------------------------------ order

    def _keys(self, aggregates: bool) -> list[str]:
        w = self.w
        outputs = [c.name if c.aliased else c.text for c in self.columns if c.sortable]
        if aggregates or self.distinct:
            possible = outputs
        else:
            fields = [f.text for f in w.fields(self.scope, lambda f: f.is_scalar)]
            possible = [*fields, *outputs]
        if not possible:
            return []
        chosen = dict.fromkeys(w.pick(possible) for _ in range(w.number(1, 3)))
        if not aggregates and not self.distinct and w.chance(8):
            block = self.clauses.inner_block(self.scope)
            chosen |= {} if block is None else {f"count {block}": None}
        return [key + w.pick(["", " asc", " desc", " desc"]) for key in chosen]

    # ------------------------------------------------------------ scores

    def _score(self) -> str | None:
        w = self.w
        nodes = [v for v in self.scope if v.is_node and not v.nullable]
        texts = searchable(w, nodes)
        vectors = w.fields(nodes, lambda f: f.type.scalar is Scalar.VECTOR)
        if not texts and not vectors:
            return None
        ranked = w.pick([*vectors, *texts]).var
        arms = [f for f in [*vectors, *texts] if f.var == ranked]
        if not w.chance(50):
            return self._arm(w.pick(arms))
        if w.chance(60):
            # Places are counted among those that pass the filters on the variable alone.
            self.clauses.lines.append(condition(w, [ranked], lambda _: None))
        k = w.pick(["", "", ", 1", ", 60"])
        return f"rrf({self._arm(w.pick(arms))}, {self._arm(w.pick(arms))}{k})"

    def _arm(self, field: Field) -> str:
        if field.type.scalar is Scalar.VECTOR:
            return f"nearest({field.text}, {vector_text(self.w, self.w.pick(VECTORS))})"
        return f"bm25({field.text}, {text_query(self.w)})"

    def _scored(self, score: str) -> str:
        w = self.w
        self.distinct = False
        self._plain_columns()
        if w.chance(70):
            self._add(score, score.partition("(")[0], sortable=False)
        keys = [score, *(self._keys(False) if self.sorts else [])]
        needs_limit = not score.startswith("bm25") or self.pages
        return self._put_together(keys, w.pick(_LIMITS) if needs_limit else None)
