"""Stable numbers are claimed once in a graph, whoever asks."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from omnigraph.errors import CorruptionError
from omnigraph.manifest.schemas import claim_numbers
from omnigraph.storage.location import locate
from omnigraph.storage.objects import Objects


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(locate(tmp_path), create=True)


def test_a_claim_starts_where_the_newest_ended_and_never_below_the_first(objects: Objects) -> None:
    assert claim_numbers(objects, 20, 3) == 20
    assert claim_numbers(objects, 20, 1) == 23
    assert claim_numbers(objects, 5, 300) == 24
    assert claim_numbers(objects, 20, 1) == 324
    assert claim_numbers(objects, 1000, 2) == 1000


def test_racers_never_share_a_number(objects: Objects) -> None:
    with ThreadPoolExecutor(8) as pool:
        starts = list(pool.map(lambda n: claim_numbers(objects, 10, 1 + n % 3), range(40)))
    taken = [s + i for n, s in enumerate(starts) for i in range(1 + n % 3)]
    assert len(set(taken)) == len(taken)
    assert max(taken) == 10 + len(taken) - 1


def test_a_damaged_claim_is_loud(objects: Objects) -> None:
    objects.put("_schema/numbers/000000000000000a", b"many")
    with pytest.raises(CorruptionError, match="000a"):
        claim_numbers(objects, 1, 1)
