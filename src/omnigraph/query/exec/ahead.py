"""What a read asks a remote store for before the step that needs it.

    plan, world -> [ahead] -> tables that open, edges that are looked up

A plan says which tables will be read, and where a node is sought by its id, whose edges: that the
node is there is found out beside them. On a disk nothing is begun: it would not wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from omnigraph.errors import OmnigraphError
from omnigraph.query import typed
from omnigraph.query.exec.run import Run
from omnigraph.query.exec.scan import seek_ids
from omnigraph.query.exec.world import World
from omnigraph.query.plan.nodes import Close, Degrees, Expand, Plan, Scan, Seek, inputs
from omnigraph.query.plan.planner import expressions


def open_tables(root: Plan, world: World) -> None:
    """Begin to open what the plan reads for sure."""
    for step in _steps(root):
        match step:
            case Scan(type_name=name) | Seek(type_name=name):
                world.begin(world.catalog.nodes[name])
            case Expand(edge=name) | Close(edge=name) | Degrees(edge=name):
                world.begin(world.catalog.edges[name])
            case _:
                pass


def ask(root: Plan, run: Run) -> None:
    """Begin to look up what hangs on nodes that are sought by their ids."""
    columns = _columns(root)
    for step in _steps(root):
        match step:
            case Seek(variable=variable, type_name=name):
                run.world.node(name).expect(columns.get(variable, ()))
            case Expand(input=Seek() as source, origin=origin) if source.variable == origin:
                edges, per_edge = run.world.edge(step.edge), step.edge_variable is not None
                with suppress(OmnigraphError):  # Is said by the step itself.
                    edges.ask_ahead(step.direction, seek_ids(source, run), per_edge=per_edge)
            case _:
                pass


def _steps(root: Plan) -> Iterator[Plan]:
    waiting = [root]
    while waiting:
        step = waiting.pop()
        yield step
        waiting += inputs(step)


def _columns(root: Plan) -> dict[str, tuple[str, ...]]:
    """Stored columns that are asked of each variable."""
    found: dict[str, dict[str, None]] = {}
    for step in _steps(root):
        for expression in expressions(step):
            for part in typed.walk(expression):
                if isinstance(part, typed.Prop):
                    found.setdefault(part.variable, {})[part.column] = None
    return {variable: tuple(names) for variable, names in found.items()}
