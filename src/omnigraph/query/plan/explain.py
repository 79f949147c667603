"""A plan as text: one line a step, inputs indented below. Stable, for people and golden files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.clock import Clock
from omnigraph.query import typed
from omnigraph.query.exec.world import World
from omnigraph.query.plan import nodes as steps
from omnigraph.query.plan.nodes import Plan
from omnigraph.query.plan.planner import QueryPlan, expressions
from omnigraph.schema.catalog import Scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """One step of a plan as a line of text."""

    depth: int
    text: str
    step: Plan


def explain(plan: QueryPlan) -> list[StepLine]:
    """The whole plan, the last step first, what it takes its rows from below it."""
    writer = _Writer(plan)
    writer.write(plan.root, 0)
    return writer.lines


def indented(lines: Iterable[StepLine], annotate: Callable[[Plan], str] = lambda _: "") -> str:
    """The lines as people read them; ``annotate`` says what to write behind a step."""
    shown = [f"{'  ' * line.depth}{line.text}  {annotate(line.step)}".rstrip() for line in lines]
    return "\n".join(shown) + "\n"


class _Writer:
    def __init__(self, plan: QueryPlan) -> None:
        self._plan = plan
        self.lines: list[StepLine] = []

    def write(self, plan: Plan, depth: int, label: str = "") -> None:
        self.lines.append(StepLine(depth=depth, text=label + describe(plan), step=plan))
        for expr in expressions(plan):
            for part in typed.walk(expr):
                if isinstance(part, (typed.Exists, typed.CountOf)):
                    self.write(self._plan.blocks[part.block], depth + 2, f"{_word(part)} block: ")
        if isinstance(plan, (steps.Semi, steps.Attach)):
            self.write(plan.block, depth + 2, "block: ")
            self.write(plan.input, depth + 1)
            return
        for source in steps.inputs(plan):
            self.write(source, depth + 1)


def _word(part: typed.Exists | typed.CountOf) -> str:
    return "exists" if isinstance(part, typed.Exists) else "count"


def describe(plan: Plan) -> str:
    """One step on one line."""
    match plan:
        case steps.Scan():
            return f"scan ${plan.variable}: {plan.type_name}{_where(plan.filters)}"
        case steps.Seek():
            key = text(plan.ids) if plan.ids is not None else ", ".join(map(text, plan.key))
            return f"seek ${plan.variable}: {plan.type_name} by {key}{_where(plan.filters)}"
        case steps.Outer():
            return "rows of " + ", ".join(f"${v}" for v in plan.variables)
        case steps.Unit():
            return "one row"
        case steps.Expand():
            return f"expand {_path(plan)}{_where(plan.filters)}"
        case steps.Close():
            return f"connected {_path(plan)}"
        case steps.Degrees():
            what = "edges" if plan.per_edge else "neighbours"
            return f"count {what} ${plan.origin} {_arrow(plan.direction, plan.edge)}"
        case steps.Compact():
            what = "count" if plan.counted else "distinct"
            return f"{what} rows by {', '.join('$' + v for v in plan.keep) or 'nothing'}"
        case steps.Join():
            on = ", ".join(f"{text(a)} = {text(b)}" for a, b in plan.on)
            return f"join on {on}" if on else "product"
        case steps.Filter():
            return "filter " + _all(plan.conditions)
        case steps.Semi():
            return "without" if plan.negated else "with"
        case steps.Attach():
            return "optional " + ", ".join(f"${v}" for v in plan.variables)
        case steps.Rank():
            best = f" best {text(plan.limit)}" if plan.limit is not None else ""
            if best and plan.offset is not None:
                best += f" + {text(plan.offset)}"
            return f"rank ${plan.variable} by {text(plan.score)}{best}"
        case steps.Aggregate():
            return "aggregate " + _outputs(plan.outputs)
        case steps.Project():
            return "return " + _outputs(plan.outputs)
        case steps.Distinct():
            return "distinct"
        case steps.Order():
            return _order(plan)


def _path(plan: steps.Expand | steps.Close) -> str:
    hops = "" if plan.low == plan.high == 1 else f"{{{plan.low},{plan.high}}}"
    edge = f"${plan.edge_variable}:{plan.edge}" if plan.edge_variable else plan.edge
    arrow = _arrow(plan.direction, edge + hops)
    target = f"${plan.target}"
    if isinstance(plan, steps.Expand):
        target += f": {plan.target_type}"
    return f"${plan.origin} {arrow} {target}"


def _arrow(direction: str, edge: str) -> str:
    return {"out": f"-{edge}->", "in": f"<-{edge}-", "both": f"-{edge}-"}[direction]


def _where(filters: tuple[typed.Expr, ...]) -> str:
    return f" where {_all(filters)}" if filters else ""


def _all(conditions: tuple[typed.Expr, ...]) -> str:
    if len(conditions) == 1:
        return text(conditions[0])
    return " and ".join(f"({text(c)})" if isinstance(c, typed.Or) else text(c) for c in conditions)


def _outputs(outputs: Iterable[typed.Output]) -> str:
    return ", ".join(
        o.name if (shown := text(o.value)).lstrip("$") == o.name else f"{shown} as {o.name}"
        for o in outputs
    )


def _order(plan: steps.Order) -> str:
    keys = [text(k.value) + (" desc" if k.descending else "") for k in plan.keys]
    ties = [f"${t}.id" for t in plan.ties] if plan.on == "bindings" else ["all columns"]
    parts = ["order by " + ", ".join([*keys, *ties])]
    if plan.limit is not None:
        more = f" + {text(plan.offset)}" if plan.keeps_skipped and plan.offset is not None else ""
        parts.append(f"limit {text(plan.limit)}{more}")
    if plan.offset is not None and not plan.keeps_skipped:
        parts.append(f"offset {text(plan.offset)}")
    return " ".join(parts)


def text(expr: typed.Expr) -> str:
    """An expression as a person would write it."""
    match expr:
        case typed.Const(value=value, type=kind):
            return _value(_written(value) if kind.scalar is Scalar.F32 else value)
        case typed.Param(name=name):
            return f"${name}"
        case typed.Now():
            return "now()"
        case typed.Prop(variable=variable, column=column):
            return f"${variable}.{column}" if variable else column
        case typed.Entity(variable=variable):
            return f"${variable}"
        case typed.Compare(op=op, left=left, right=right):
            return f"{_inner(left)} {op} {_inner(right)}"
        case typed.Contains(values=values, item=item):
            return f"{_inner(values)} contains {_inner(item)}"
        case typed.InList(item=item, values=values):
            return f"{_inner(item)} in {_inner(values)}"
        case typed.TextTest(kind=kind, text=whole, part=part):
            return f"{_inner(whole)} {kind} {_inner(part)}"
        case typed.IsNull(operand=operand):
            return f"{_inner(operand)} is null"
        case typed.Not(operand=operand):
            return f"not {_inner(operand)}"
        case typed.And(operands=operands):
            return " and ".join(map(_inner, operands))
        case typed.Or(operands=operands):
            return " or ".join(map(_inner, operands))
        case typed.OutputRef(name=name):
            return name
        case _:
            return _call(expr)


def _call(expr: typed.Expr) -> str:
    match expr:
        case typed.Exists():
            return "exists { … }"
        case typed.CountOf():
            return "count { … }"
        case typed.TextMatch(kind=kind, variable=variable, column=column, query=query):
            name = "match_text" if kind == "phrase" else kind
            more = f", {text(expr.edits)}" if expr.edits is not None else ""
            return f"{name}(${variable}.{column}, {text(query)}{more})"
        case typed.Bm25(variable=variable, column=column, query=query):
            return f"bm25(${variable}.{column}, {text(query)})"
        case typed.Nearest(variable=variable, column=column, query=query):
            return f"nearest(${variable}.{column}, {text(query)})"
        case typed.Rrf(arms=arms, k=k):
            return f"rrf({', '.join(map(text, arms))}, {text(k)})"
        case typed.AggregateCall(function=function, operand=operand, distinct=distinct):
            inside = "rows" if isinstance(operand, typed.Const) else text(operand)
            return f"{function}({'distinct ' if distinct else ''}{inside})"
        case _:
            return repr(expr)


def _inner(expr: typed.Expr) -> str:
    shown = text(expr)
    return f"({shown})" if isinstance(expr, (typed.And, typed.Or, typed.Not)) else shown


def _written(value: Any) -> Any:
    """A 32-bit float, or a list of them, with the fewest digits that stand for it."""
    return tuple(map(_written, value)) if isinstance(value, tuple) else np.float32(value)


def _value(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'
    if isinstance(value, tuple):
        shown = [_value(v) for v in value[:8]]  # pyright: ignore[reportUnknownVariableType]
        return f"[{', '.join(shown)}{', …' if len(value) > 8 else ''}]"  # pyright: ignore[reportUnknownArgumentType]
    return str(value)


# -- profile ---------------------------------------------------------------------------------------
# What each step of a plan did: rows, time, requests. For ``explain --analyze``.


@dataclass(slots=True, kw_only=True, frozen=True)
class StepNotes:
    """One step over the whole run; a block's step may run several times."""

    rows: int
    seconds: float
    """Without the steps below it."""
    requests: int
    calls: int


class Profile:
    """Notes of all steps, by the step's identity in the plan."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notes: dict[int, StepNotes] = {}
        self._inside: list[tuple[float, int]] = [(0.0, 0)]

    def of(self, plan: Plan) -> StepNotes | None:
        """What a step did, if it ran."""
        return self._notes.get(id(plan))

    @contextmanager
    def step(self, plan: Plan, world: World) -> Generator[Callable[[int], None]]:
        """Measure one step; the steps below it measure themselves."""
        started, requests = self._clock.monotonic_s(), world.requests()
        self._inside.append((0.0, 0))
        seen = [0]
        yield lambda rows: seen.__setitem__(0, rows)
        total = self._clock.monotonic_s() - started
        asked = world.requests() - requests
        below_s, below_requests = self._inside.pop()
        outer_s, outer_requests = self._inside[-1]
        self._inside[-1] = (outer_s + total, outer_requests + asked)
        old = self._notes.get(id(plan)) or StepNotes(rows=0, seconds=0.0, requests=0, calls=0)
        self._notes[id(plan)] = StepNotes(
            rows=old.rows + seen[0],
            seconds=old.seconds + total - below_s,
            requests=old.requests + asked - below_requests,
            calls=old.calls + 1,
        )
