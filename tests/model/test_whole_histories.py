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
from whole_history import fails, shrunk, spelled, steps_of

SEEDS = [int(seed) for seed in os.environ.get("SEED", "1 2 3").split()]
STEPS = int(os.environ.get("STEPS", "40"))
HISTORY = os.environ.get("HISTORY")


@pytest.mark.parametrize("seed", SEEDS[:1] if HISTORY else SEEDS)
def test_a_history_of_everything_is_what_the_model_says(seed: int) -> None:
    soak = "STEPS" in os.environ
    steps = steps_of(seed, STEPS)
    if HISTORY:
        steps = [(verb, number) for verb, number in json.loads(HISTORY)]
    failed = fails(steps, thorough=soak, tell=progress if soak else None)
    if failed is None:
        return
    place, why = failed
    small, again = (steps, why) if HISTORY else shrunk(steps[: place + 1], why)
    pytest.fail(f"seed {seed}, step {place}: {why}\nHISTORY='{spelled(small)}'\n{again}")


def progress(place: int) -> None:
    if place % 100 == 99:
        sys.stderr.write(f"{place + 1} steps\n")
