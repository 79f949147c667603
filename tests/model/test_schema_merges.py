"""A matrix of merges: a schema step and a deed on each side, in both directions, again and back.

    SOAK=1 pytest tests/model/test_schema_merges.py        every cell
    SOAK=1 SOAK_SHARD=0/4 pytest …                         a quarter of them
    CELL='rename+update/widen+insert/>' pytest …           this one, as a failure names it

A cell is `step+deed/step+deed/direction` of the source and the target; `>` merges the branch into
main, `<` main into the branch; `!` changes rows before schemas.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from zlib import crc32

import pytest
from schema_merge import Ambiguous
from schema_model import new_property, text_of
from schema_states import State
from schema_steps import DEEDS, STEPS, Deeds, first_rows, first_schema, steps_of
from schema_world import Differs, Unclear, World, record
from state_merge import Commit

import omnigraph

BATCH = 8
STRIDE = 7
"""Has no divisor in common with the number of steps: each comes up on the other side, too."""
DIRECTIONS = (">", "<", ">!", "<!")


class Template:
    """The graph that every cell begins with, made once and copied."""

    def __init__(self, folder: Path) -> None:
        self.schema = first_schema()
        self.state = first_rows(self.schema)
        self.place = folder / "template"
        self._cells = 0
        with omnigraph.init(self.place, text_of(self.schema)) as graph:
            rows = [
                record(self.schema, thing, entity_id, row)
                for thing in sorted(self.schema.types(), key=lambda t: t.kind == "edge")
                for entity_id, row in self.state.of(thing.id).items()
            ]
            graph.load(rows)
            graph.branches.create("work")

    def world(self) -> World:
        self._cells += 1
        place = self.place.parent / f"cell{self._cells}"
        shutil.copytree(self.place, place, ignore=shutil.ignore_patterns("tables"))
        start = Commit(self.state, Commit(State(self.schema)))
        return World(omnigraph.open(place), {"main": start, "work": start})


def all_cells() -> Iterator[str]:
    for source in STEPS:
        for target in STEPS:
            for one in DEEDS:
                for other in DEEDS:
                    yield cell_of(source, one, target, other)


def cell_of(source: str, one: str, target: str, other: str) -> str:
    parts = f"{source}+{one}/{target}+{other}"
    # Each is met in every direction somewhere; a name can ask for any.
    return f"{parts}/{DIRECTIONS[crc32(parts.encode()) % len(DIRECTIONS)]}"


def sample() -> list[str]:
    """Few cells, with every two deeds against each other and every step on either side."""
    steps = list(STEPS)
    return [
        cell_of(steps[n % len(steps)], one, steps[(n * STRIDE + 3) % len(steps)], other)
        for n, (one, other) in enumerate(product(DEEDS, DEEDS))
    ]


def run_cell(template: Template, cell: str, *, thorough: bool) -> str:
    """Merge, back, again; returns how the first merge ended."""
    source_part, target_part, direction = cell.split("/")
    into = "main" if direction[0] == ">" else "work"
    source = "work" if into == "main" else "main"
    deeds = Deeds(template.schema)
    world = template.world()
    try:
        for branch, part, side in ((source, source_part, "s"), (into, target_part, "t")):
            step, _, deed = part.partition("+")
            rows_first = "!" in direction
            if rows_first:
                world.put(branch, getattr(deeds, deed)(world.heads[branch].state, side))
            for change in steps_of(step):
                world.apply(branch, change(world.heads[branch].state.schema))
            if not rows_first:
                world.put(branch, getattr(deeds, deed)(world.heads[branch].state, side))
        return _merges(world, source, into, deeds, thorough, cell)
    finally:
        world.graph.close()
        shutil.rmtree(world.graph.uri)


def _merges(world: World, source: str, into: str, deeds: Deeds, thorough: bool, cell: str) -> str:
    first = world.merge(source, into)
    if first.outcome == "conflicts":
        # One side by a look, the other for good.
        prefer = ("ours", "theirs") if len(cell) % 2 else ("theirs", "ours")
        world.graph.merge(source, into=into, prefer=prefer[0], dry_run=True)
        if world.merge(source, into, prefer[1]).outcome == "conflicts":
            return "undecidable"
    merged = world.graph.snapshot(into).commit
    if thorough:
        world.reload(into, "merge")
    if merged.merged_parent_id is not None and first.outcome != "fast_forward":
        world.revert(into, merged.id)
        back = world.graph.snapshot(into).commit
        if back.kind == "revert":
            if thorough:
                world.reload(into, "revert")
            world.revert(into, back.id)
    world.merge(into, source)
    for branch, side in ((source, "s"), (into, "t")):
        state = world.heads[branch].state
        if side == "t":
            node = state.schema.types()[0]
            late = new_property(node.id, "late", "I32?")
            world.apply(branch, state.schema.having(late))
        world.put(branch, deeds.later(world.heads[branch].state, side))
    if world.merge(source, into).outcome == "conflicts":
        world.merge(source, into, "theirs")
    world.sound("at the end")
    if thorough:
        world.reload(into, "the end")
    return first.outcome


def attempt(template: Template, cell: str, *, thorough: bool) -> tuple[str, str]:
    """How a cell ended, and what was wrong with it."""
    try:
        return run_cell(template, cell, thorough=thorough), ""
    except (Ambiguous, Unclear) as e:
        return type(e).__name__, ""
    except Differs as e:
        return "differs", f"CELL='{cell}'\n  {e}"
    except Exception as e:
        return "error", f"CELL='{cell}'\n  {type(e).__name__}: {e}"


def batches() -> list[list[str]]:
    if cell := os.environ.get("CELL"):
        return [[cell]]
    if os.environ.get("SOAK"):
        cells = list(all_cells())
        shard, _, count = os.environ.get("SOAK_SHARD", "0/1").partition("/")
        mine = cells[int(shard) :: int(count)]
        return [mine[i : i + 500] for i in range(0, len(mine), 500)]
    chosen = sample()
    return [chosen[i : i + BATCH] for i in range(0, len(chosen), BATCH)]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return Template(tmp_path_factory.mktemp("matrix"))


def test_the_sample_has_every_pair_of_deeds_every_step_and_every_direction() -> None:
    cells = [cell.split("/") for cell in sample()]
    deeds = {(one.partition("+")[2], other.partition("+")[2]) for one, other, _ in cells}
    assert deeds == set(product(DEEDS, DEEDS))
    for side in (0, 1):
        assert {cell[side].partition("+")[0] for cell in cells} == set(STEPS)
    assert {direction for *_, direction in cells} == set(DIRECTIONS)
    assert set(sample()) <= set(all_cells())


@pytest.mark.parametrize("cells", batches(), ids=lambda cells: cells[0])
def test_a_merge_of_schemas_and_rows_is_what_the_model_says(
    template: Template, cells: list[str]
) -> None:
    soak = bool(os.environ.get("SOAK") or os.environ.get("CELL"))
    wrong: list[str] = []
    ends: Counter[str] = Counter()
    for number, cell in enumerate(cells):
        end, why = attempt(template, cell, thorough=soak or number % 5 == 0)
        ends[end] += 1
        if why:
            wrong.append(why)
    if os.environ.get("SOAK"):
        sys.stderr.write(f"{cells[0]}: {dict(ends)}\n")
    assert not wrong, f"{len(wrong)} of {len(cells)} cells:\n" + "\n".join(wrong)
