"""The dispatcher on a branch that needs nothing, and the chain of steps as data."""

from __future__ import annotations

from typing import Any, cast

import pytest

from omnigraph.errors import ErrorKind, FormatError, InternalError
from omnigraph.manifest import format as graph_format
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.store import Head
from omnigraph.write.migration import MIGRATIONS, Migration, bring_up_to_date, steps_between
from support.releases import release_of_format

NOBODY = cast(Any, None)
"""Whoever asks it anything fails."""


def test_a_branch_of_the_newest_format_asks_nobody() -> None:
    snapshot = Snapshot(
        graph_id="G", branch="main", version=1, schema_hash="h", pins={}, commits=()
    )
    bring_up_to_date(NOBODY, NOBODY, Head(snapshot=snapshot, stored=NOBODY))


def test_the_chain_leads_from_every_format_that_is_read_to_the_newest() -> None:
    for start in graph_format.formats_read():
        way = steps_between(MIGRATIONS, start, graph_format.FORMAT)
        ends = [start, *(step.to_format for step in way)]
        assert [step.from_format for step in way] == ends[:-1]
        assert ends[-1] == graph_format.FORMAT


def _step(start: int, goal: int) -> Migration:
    return Migration(from_format=start, to_format=goal, name="", run=lambda *_: None)


@pytest.mark.parametrize(
    "chain",
    [
        (),
        (_step(1, 2),),
        (_step(2, 3),),
        (_step(1, 3), _step(1, 2)),
        (_step(1, 4),),
        (_step(1, 1),),
    ],
)
def test_a_chain_without_a_single_way_is_refused(chain: tuple[Migration, ...]) -> None:
    with pytest.raises(InternalError):
        steps_between(chain, 1, 3)


def test_steps_are_taken_in_order_from_where_a_branch_is() -> None:
    chain = (_step(2, 4), _step(4, 5), _step(1, 2))
    assert steps_between(chain, 1, 5) == [chain[2], chain[0], chain[1]]
    assert steps_between(chain, 4, 5) == [chain[1]]
    assert steps_between(chain, 5, 5) == []


@pytest.mark.parametrize("stamp", ["3", "4", "7", "12345678901234567890"])
def test_stamps_outside_of_what_is_read_are_refused(stamp: str) -> None:
    with (
        release_of_format(6, oldest=5),
        pytest.raises(FormatError, match="reads formats 5 to 6") as e,
    ):
        graph_format.read_stamp(stamp, "here")
    newer = int(stamp) > 6
    assert e.value.kind is (ErrorKind.FORMAT_NEWER if newer else ErrorKind.FORMAT_OLDER)
    assert e.value.details == {"format": int(stamp), "format_supported": 6 if newer else 5}
