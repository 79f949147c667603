"""Stable numbers that no two branches hand out twice.

    schema apply -> [numbers] -> catalog with new types and properties

Every branch has a schema of its own, and a branch can be set back; so the counter in a schema does
not know which numbers others have taken. A block of numbers is therefore claimed for the whole
graph: one object per claim, named by its first number, created only if it is not there. A claim
starts where the newest one ended, so of two racers one creates it and the other looks again. A
claim that is not used is a gap, which does no harm.
"""

from __future__ import annotations

from omnigraph.errors import CorruptionError
from omnigraph.storage.objects import Objects

PREFIX = "_schema/numbers"


def claim_numbers(objects: Objects, first: int, count: int) -> int:
    """Take ``count`` numbers that are free in the whole graph, none below ``first``."""
    while True:
        start = max(first, _end_of_claims(objects))
        if objects.create(f"{PREFIX}/{start:016x}", str(count).encode()):
            return start


def _end_of_claims(objects: Objects) -> int:
    newest = max(objects.names(f"{PREFIX}/"), default=None)
    if newest is None:
        return 0
    content = objects.get(newest, referenced=True) or b""
    try:
        return int(newest.rpartition("/")[2], 16) + int(content)
    except ValueError as e:
        raise CorruptionError(
            f"the claim of numbers {newest} is damaged", hint="restore it from a copy of the graph"
        ) from e
