"""Patterns and expressions of the reference evaluator, straight from the language's rules.

    typed query -> [naive_match] -> rows of bindings -> naive

A row maps every variable bound so far to its node or edge, or to None where an optional block did
not match. A block's solutions are all rows that extend a given row, found by trying every node.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np

from omnigraph.query import typed
from omnigraph.schema.catalog import Catalog, GraphType, Scalar
from support import naive_search
from support.naive_graph import Entity, NaiveGraph
from support.naive_values import (
    compared,
    conjunction,
    disjunction,
    in_list,
    list_contains,
    negated,
    text_test,
)

Row = dict[str, Entity | None]


class Evaluator:
    """One query on one graph: what expressions are worth and which rows a block has."""

    def __init__(
        self, graph: NaiveGraph, catalog: Catalog, params: Mapping[str, Any], now: datetime
    ) -> None:
        self.graph = graph
        self.catalog = catalog
        self._params = params
        self._now = now
        self.scores: dict[typed.Score, Mapping[str, float]] = {}
        """Scores of entities by id, filled before rows are projected."""

    # ------------------------------------------------------------ blocks

    def solutions(self, block: typed.Pattern, outer: Row) -> list[Row]:
        """Every row of the block that continues ``outer``."""
        late = [f for f in block.filters if typed.variables(f) & optional_variables(block)]
        early = [f for f in block.filters if f not in late]
        rows = self._required(block, early, outer)
        for optional in block.optionals:
            rows = [more for row in rows for more in self._optional(optional, row)]
        rows = [r for r in rows if all(self.value(f, r) is True for f in late)]
        return [r for r in rows if not any(self.solutions(n, r) for n in block.negations)]

    def _required(self, block: typed.Pattern, filters: list[typed.Expr], outer: Row) -> list[Row]:
        """All choices of nodes and bound edges that satisfy every hop and filter.

        A condition is tried as soon as its variables have a value: that changes only the time.
        """
        rows, bound = [outer], set(outer)
        hops, conditions = list(block.hops), list(filters)
        for node in (None, *block.nodes):
            if node is not None:
                candidates = self.graph.nodes_of(node.type_name)
                rows = [{**row, node.name: n} for row in rows for n in candidates]
                bound.add(node.name)
            for hop in [h for h in hops if {h.left, h.right} <= bound]:
                hops.remove(hop)
                rows = [more for row in rows for more in self._hop(hop, row)]
                if hop.variable is not None:
                    bound.add(hop.variable)
            for condition in [c for c in conditions if typed.variables(c) <= bound]:
                conditions.remove(condition)
                rows = [row for row in rows if self.value(condition, row) is True]
        if hops or conditions:
            raise ValueError(f"variables of nowhere in {hops} {conditions}")
        return rows

    def _hop(self, hop: typed.Hop, row: Row) -> list[Row]:
        left, right = row[hop.left], row[hop.right]
        if left is None or right is None:
            return []
        if hop.variable is not None:
            edges = self.graph.edges_between(hop, left["id"], right["id"])
            return [{**row, hop.variable: edge} for edge in edges]
        reached = self.graph.reached(self.catalog, hop, left["id"])
        return [row] if right["id"] in reached else []

    def _optional(self, block: typed.Pattern, row: Row) -> list[Row]:
        found = self.solutions(block, row)
        if found:
            return found
        return [{**row, **dict.fromkeys(block_variables(block))}]

    # ------------------------------------------------------------ expressions

    def value(self, expr: typed.Expr, row: Row) -> Any:
        """What an expression is worth in a row; None is null, or unknown."""
        match expr:
            case typed.Const(value=value):
                return value
            case typed.Param(name=name, type=kind):
                given = self._params.get(name)
                return _rounded(given) if kind.scalar is Scalar.F32 else given
            case typed.Now():
                return self._now
            case typed.Prop(variable=variable, column=column):
                entity = row[variable]
                return None if entity is None else entity[column]
            case typed.Entity(variable=variable, type=object_type):
                return self._object(object_type, row[variable])
            case typed.Bm25(variable=v) | typed.Nearest(variable=v):
                return self._score(expr, v, row)
            case typed.Rrf(arms=arms):
                return self._score(expr, arms[0].variable, row)
            case typed.AggregateCall() | typed.OutputRef():
                raise ValueError(f"{expr} has no value in a single row")
            case _:
                return self._test(expr, row)

    def _test(self, expr: typed.Expr, row: Row) -> Any:
        match expr:
            case typed.Compare(op=op, left=left, right=right):
                return compared(op, self.value(left, row), self.value(right, row))
            case typed.Contains(values=values, item=item):
                return list_contains(self.value(values, row), self.value(item, row))
            case typed.InList(item=item, values=values):
                return in_list(self.value(item, row), self.value(values, row))
            case typed.TextTest(kind=kind, text=text, part=part):
                return text_test(kind, self.value(text, row), self.value(part, row))
            case typed.IsNull(operand=operand):
                return self.value(operand, row) is None
            case typed.Not(operand=operand):
                return negated(self.value(operand, row))
            case typed.And(operands=operands):
                return conjunction([self.value(o, row) for o in operands])
            case typed.Or(operands=operands):
                return disjunction([self.value(o, row) for o in operands])
            case typed.Exists(block=block):
                return len(self.solutions(block, row)) > 0
            case typed.CountOf(block=block):
                return len(self.solutions(block, row))
            case typed.TextMatch():
                return self._text_match(expr, row)
            case _:
                raise ValueError(f"no rule for {expr}")

    def _text_match(self, expr: typed.TextMatch, row: Row) -> bool:
        entity = row[expr.variable]
        return naive_search.matches(
            expr.kind,
            None if entity is None else entity[expr.column],
            self.value(expr.query, row),
            None if expr.edits is None else self.value(expr.edits, row),
        )

    def _score(self, score: typed.Score, variable: str, row: Row) -> float | None:
        entity = row[variable]
        return None if entity is None else self.scores[score].get(entity["id"])

    def _object(self, object_type: typed.ObjectType, entity: Entity | None) -> Any:
        if entity is None:
            return None
        name = object_type.type_name
        declared: GraphType = self.catalog.nodes.get(name) or self.catalog.edges[name]
        shown = [
            p.name for p in declared.properties if p.type.scalar not in (Scalar.BLOB, Scalar.VECTOR)
        ]
        return {"@id": entity["id"], **{p: entity.get(p) for p in shown}}


# ---------------------------------------------------------------- variables of a block


def block_variables(block: typed.Pattern) -> list[str]:
    """All variables that a row of the block has, those of its optional blocks included."""
    nodes = [n.name for n in block.nodes]
    edges = [h.variable for h in block.hops if h.variable is not None]
    return nodes + edges + sorted(optional_variables(block))


def optional_variables(block: typed.Pattern) -> set[str]:
    """Those that may be null because they stand in an optional block."""
    return {v for optional in block.optionals for v in block_variables(optional)}


def _rounded(value: Any) -> Any:
    """What a column of 32-bit floats would have stored."""
    if isinstance(value, (tuple, list)):
        return tuple(_rounded(v) for v in value)
    return float(np.float32(value)) if isinstance(value, float) else value
