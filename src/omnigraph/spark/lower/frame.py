"""The rows of a query that is being lowered: a DataFrame whose columns belong to variables.

    plan -> slots -> [frame] -> steps

A variable is its stored columns, of which ``id`` is always there: two rows bind a variable to the
same node or edge exactly when the ids are equal. A variable that is null has null in all of them.
Which columns a query reads is known from its plan before anything is read, because a table cannot
be asked for less afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from omnigraph.query import typed
from omnigraph.query.exec.outputs import visible
from omnigraph.query.plan.nodes import Close, Expand, Plan, Scan, inputs
from omnigraph.query.plan.planner import QueryPlan, expressions
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType, Scalar

ID = "id"


class Slots:
    """What each variable of a plan has in a DataFrame: its columns and their names there.

    Spark does not tell names apart by case and reads dots as paths, so a column has a name of its
    own here, whatever the variable and the property are called.
    """

    def __init__(self, columns: Mapping[str, Iterable[str]], types: Mapping[str, _Type]) -> None:
        self.types = types
        self._names: dict[str, dict[str, str]] = {}
        number = 0
        for variable, stored in columns.items():
            own = self._names.setdefault(variable, {})
            for column in stored:
                own[column] = f"{_plain(variable)}_{_plain(column)}_{number}"
                number += 1

    def stored(self, variable: str) -> list[str]:
        """The stored columns that are carried for a variable; the id is first."""
        return list(self._names[variable])

    def names(self, variable: str) -> list[str]:
        """Their names in a DataFrame."""
        return list(self._names[variable].values())

    def name(self, variable: str, column: str = ID) -> str:
        """The name of one of them."""
        return self._names[variable][_as_stored(self.types[variable], column)]

    def column(self, variable: str, column: str = ID) -> Column:
        """One of them as a Spark column."""
        return F.col(self.name(variable, column))

    def carries(self, expr: typed.Expr) -> bool:
        """Whether the columns that an expression looks at are carried."""
        props = [p for p in typed.walk(expr) if isinstance(p, typed.Prop)]
        return all(
            _as_stored(self.types[p.variable], p.column) in self._names[p.variable] for p in props
        )

    def has_only_id(self, variable: str) -> bool:
        """Whether nothing but the id is carried."""
        return len(self._names[variable]) == 1


_Type = NodeType | EdgeType


def _plain(name: str) -> str:
    return re.sub(r"\W", "", name, flags=re.ASCII)


def _as_stored(of: _Type, column: str) -> str:
    """A String that is the whole key of a node is its id: it is not read twice."""
    if of.key == (column,) and isinstance(of, NodeType):
        return ID if of.by_name[column].type.scalar is Scalar.STRING else column
    return column


def slots_of(plan: QueryPlan, catalog: Catalog, *, pushed: bool) -> Slots:
    """The slots of a plan. ``pushed``: tables answer conditions on their own columns alone."""
    steps = [step for root in (plan.root, *plan.blocks.values()) for step in _steps(root)]
    types: dict[str, _Type] = {}
    for step in steps:
        types |= _introduced(step, catalog)
    columns: dict[str, dict[str, None]] = {name: {ID: None} for name in types}

    def need(variable: str, column: str) -> None:
        columns[variable][_as_stored(types[variable], column)] = None

    for step in steps:
        answered = own_filters(step) if pushed else ()
        for expr in expressions(step):
            if expr in answered:
                continue
            if isinstance(expr, typed.Entity):
                for prop in visible(catalog.nodes[expr.type.type_name]):
                    need(expr.variable, prop.name)
            for part in typed.walk(expr):
                if isinstance(part, typed.Prop):
                    need(part.variable, part.column)
    return Slots(columns, types)


def own_filters(step: Plan) -> tuple[typed.Expr, ...]:
    """Conditions of a step that the table of one variable can answer."""
    match step:
        case Scan(filters=filters):
            return tuple(f for f in filters if not searches(f))
        case Expand(filters=filters):
            own = [f for f in filters if len(typed.variables(f)) == 1]
            return tuple(f for f in own if not searches(f))
        case _:
            return ()


def searches(expr: typed.Expr) -> bool:
    """Whether a text test stands in it: no table answers that."""
    return any(isinstance(part, typed.TextMatch) for part in typed.walk(expr))


def _steps(plan: Plan) -> Iterable[Plan]:
    yield plan
    for source in inputs(plan):
        yield from _steps(source)


def _introduced(step: Plan, catalog: Catalog) -> dict[str, _Type]:
    match step:
        case Scan(variable=variable, type_name=name):
            return {variable: catalog.nodes[name]}
        case Expand(target=target, target_type=name, edge=edge, edge_variable=bound):
            here: dict[str, _Type] = {target: catalog.nodes[name]}
            return here | ({bound: catalog.edges[edge]} if bound else {})
        case Close(edge=edge, edge_variable=bound) if bound:
            return {bound: catalog.edges[edge]}
        case _:
            return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredFrame:
    """Rows that bind variables."""

    df: DataFrame
    variables: frozenset[str]
    """Their columns are in the DataFrame."""
    tags: tuple[str, ...] = ()
    """Columns that say for which row of the enclosing block a row is a solution."""
    weight: str | None = None
    """The column that says how many rows a row stands for; None: one."""
    score: str | None = None
    """The column that says what a ranking gave to each row, once it was ranked."""
    order: tuple[Column, ...] = ()
    """What the rows are sorted by, to sort them again after a step that mixes them."""
    reads: int = 1
    """How many reads of tables stand in the DataFrame's plan, each as often as it is there."""
    before: LoweredFrame | None = None
    """A simpler frame with the same bindings of those variables that it has."""

    def with_rows(self, df: DataFrame, *more: str, reads: int = 0) -> LoweredFrame:
        """Other rows, and perhaps more variables; ``reads`` are those that came with them."""
        return replace(
            self,
            df=df,
            variables=self.variables.union(more),
            reads=self.reads + reads,
            before=None,
        )

    def simplest(self, variables: Iterable[str]) -> LoweredFrame:
        """The simplest frame that has the bindings of these variables."""
        found, wanted = self, frozenset(variables)
        while found.before is not None and wanted <= found.before.variables:
            found = found.before
        return found

    def only(self, variables: Iterable[str], slots: Slots) -> LoweredFrame:
        """Some of the variables; tags, weights and scores stay."""
        kept = [v for v in sorted(self.variables) if v in set(variables)]
        names = [name for v in kept for name in slots.names(v)]
        more = [name for name in (self.weight, self.score) if name is not None]
        df = self.df.select(*names, *self.tags, *more)
        return replace(self, df=df, variables=frozenset(kept), order=(), before=None)


# -- weights ---------------------------------------------------------------------------------------
# How many rows a row stands for: counts are added and multiplied, and never wrong.
#
# Paths are counted, not walked, and a small graph has more paths than 64 bits can count. Spark is
# set to fail on such a number or to go on with a wrong one; here it always fails, in words that the
# driver recognises.


OVERFLOW = "OMNIGRAPH_COUNT_OVERFLOW"


def times(weight: Column, count: Column) -> Column:
    """Row by row."""
    return _known(F.try_multiply(weight, count), weight.isNotNull() & count.isNotNull())


def total(weight: Column) -> Column:
    """Of all rows of a group that have a weight; zero if none has."""
    some = F.count(weight) > F.lit(0)
    return F.when(some, _known(F.try_sum(weight), some)).otherwise(F.lit(0).cast("bigint"))


def _known(value: Column, expected: Column) -> Column:
    lost = value.isNull() & expected
    return F.when(lost, F.raise_error(F.lit(OVERFLOW)).cast("bigint")).otherwise(value)
