"""Random histories of everything together against the model that knows schemas.

    SEED=1 STEPS=10000 pytest tests/model/test_whole_histories.py     a long one
    HISTORY='[["load",1],…]' pytest …                                 one that failed

After every step each branch shows what the model says, kept commits show what they showed, a check
finds nothing. A history that fails is made as short as it gets before it is told.
"""

from __future__ import annotations

import json
import os
import sys

import pytest
from whole_history import History, Step, fails, shrunk, spelled, steps_of

SEEDS = (1, 2, 3)
STEPS = 40


def told(steps: list[Step]) -> str:
    small, why = shrunk(steps)
    return f"HISTORY='{spelled(small)}'\n{why}"


@pytest.mark.parametrize("seed", [int(s) for s in os.environ.get("SEED", "").split()] or SEEDS)
def test_a_history_of_everything_is_what_the_model_says(seed: int) -> None:
    if text := os.environ.get("HISTORY"):
        found = fails([(verb, number) for verb, number in json.loads(text)])
        assert found is None, found
        return
    steps = steps_of(seed, int(os.environ.get("STEPS", STEPS)))
    soak = "STEPS" in os.environ
    history = History(thorough=soak)
    place = 0
    try:
        for place, step in enumerate(steps):
            history.run(step)
            if soak and place % 100 == 99:
                sys.stderr.write(f"seed {seed}: {place + 1} steps\n")
    except Exception as e:
        history.close()
        raise AssertionError(f"step {place}: {e}\n{told(steps[: place + 1])}") from e
    history.close()
