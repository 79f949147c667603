"""From an accepted schema to a desired one: identity, plan, columns. No I/O."""

from omnigraph.schema.migrate.desired import Desired, resolve
from omnigraph.schema.migrate.plan import SchemaPlan, make_plan
from omnigraph.schema.migrate.steps import DropMode, Effect, LintCode, Step, StepKind

__all__ = [
    "Desired",
    "DropMode",
    "Effect",
    "LintCode",
    "SchemaPlan",
    "Step",
    "StepKind",
    "make_plan",
    "resolve",
]
