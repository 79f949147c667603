"""How many random cases a test tries, and how often racing processes write: a sample in
``make test``, many more in ``make soak``."""

from __future__ import annotations

import os

TIMES = int(os.environ.get("EXAMPLES", "1"))


def examples(sample: int) -> int:
    """The number of examples in ``make test``, times what ``EXAMPLES`` says."""
    return sample * TIMES
