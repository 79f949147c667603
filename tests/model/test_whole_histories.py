"""Random histories of everything together against the model that knows schemas.

    SEED=1 STEPS=10000 pytest tests/model/test_whole_histories.py     as many steps, in histories
    SEED=1 FROM=600 STEPS=10000 pytest …                              those from a step on
    HISTORY='[["load",1],…]' pytest …                                 one that failed

After every step the branches that moved show what the model says and kept commits show what they
showed; every fifth step (in short histories every one) all branches do and a full check finds
nothing; every twentieth of a long run loads again what is published. Histories have 200 steps: longer ones meet nothing
new. One that fails is made as short as it gets before it is told; a long run goes on with the next.
"""

from __future__ import annotations

import json
import os
import sys

import pytest
from whole_history import fails, shrunk, spelled, steps_of

SEEDS = [int(seed) for seed in os.environ.get("SEED", "1 2 3").split()]
STEPS = int(os.environ.get("STEPS", "40"))
FROM = int(os.environ.get("FROM", "0"))
STEPS_OF_ONE = 200
HISTORY = os.environ.get("HISTORY")


@pytest.mark.parametrize("seed", SEEDS[:1] if HISTORY else SEEDS)
def test_a_history_of_everything_is_what_the_model_says(seed: int) -> None:
    soak = "STEPS" in os.environ
    if HISTORY:
        steps = [(verb, number) for verb, number in json.loads(HISTORY)]
        failed = fails(steps)
        assert failed is None, f"step {failed[0]}: {failed[1]}"
        return
    differences: list[str] = []
    for first in range(FROM, STEPS, STEPS_OF_ONE):
        steps = steps_of(f"{seed} from {first}", min(STEPS_OF_ONE, STEPS - first))
        failed = fails(steps, long=soak)
        if failed is not None:
            place, why = failed
            small, again = shrunk(steps[: place + 1], why)
            told = f"seed {seed}, step {first + place}: {why}"
            differences.append(f"{told}\nHISTORY='{spelled(small)}'\n{again}")
            if soak:
                sys.stderr.write(differences[-1] + "\n")
        if soak:
            sys.stderr.write(f"seed {seed}: {first + len(steps)} steps\n")
    assert not differences, "\n\n".join(differences)
