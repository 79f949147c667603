"""One plan on its way to DataFrames: what every step needs, and the way from a step to its frame.

    plan -> [lowering] -> steps -> DataFrame

A block, and a traversal of many hops, look at the rows they start from twice: once to find where to
start, once to match what was found. In a plan that is a tree each such step doubles what stands
below it. So a frame that is no longer simple is *settled* before: its rows are made, and the plan
goes on from there. Those, and searches, are all that runs while a plan is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from omnigraph.query import typed
from omnigraph.query.exec.evaluate import Values
from omnigraph.query.plan.nodes import Plan
from omnigraph.query.plan.planner import QueryPlan
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.lower.expressions import LoweredExpressions
from omnigraph.spark.lower.frame import LoweredFrame, Slots, slots_of
from omnigraph.spark.lower.search import Search, Searches
from omnigraph.spark.lower.sources import Sources, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredScope:
    """Where a step stands."""

    outer: LoweredFrame | None = None
    """The rows that the enclosing block hands in."""
    counted: bool = True
    """Whether rows are counted; else one is as good as many equal ones."""

    def uncounted(self) -> LoweredScope:
        """The same place, where they are not counted."""
        return replace(self, counted=False)


READS_MAX = 8
"""A frame with more reads of tables in its plan is settled before it is read twice."""

MakeFrame = Callable[["Lowering", Any, LoweredScope], LoweredFrame]


class Lowering:
    """One plan, the tables it reads and the values it is run with."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Tables,
        plan: QueryPlan,
        values: Values,
        catalog: Catalog,
        steps: Mapping[type, MakeFrame],
        search: Search,
    ) -> None:
        self.spark = spark
        self.values = values
        self.catalog = catalog
        self.plan = plan
        self.slots: Slots = slots_of(plan, catalog, pushed=tables.takes_conditions)
        self.sources = Sources(tables, self.slots, catalog, self.expressions())
        self.searches = Searches(spark, search, plan.blocks)
        self._steps = steps

    def frame(self, step: Plan, scope: LoweredScope) -> LoweredFrame:
        """The rows of a step that binds variables."""
        return self._steps[type(step)](self, step, scope)

    def light(self, frame: LoweredFrame) -> LoweredFrame:
        """The frame, so simple that it can be read twice."""
        if frame.reads <= READS_MAX:
            return frame
        return replace(frame, df=self.settled(frame.df), reads=1, before=None)

    def settled(self, df: DataFrame) -> DataFrame:
        """The rows made and kept by the executors; where checkpoints have a place, there."""
        if self.spark.conf.get("spark.checkpoint.dir", None):
            return df.checkpoint()
        return df.localCheckpoint()

    def expressions(self, answers: Mapping[typed.Expr, str] | None = None) -> LoweredExpressions:
        """Expressions over frames; ``answers`` are columns that hold what was found elsewhere."""
        return LoweredExpressions(self.slots, self.values, self.catalog, answers)
