"""Object-store requests of a cleanup: linear in what there is to look at, a constant beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.testing.measure import measure
from omnigraph.testing.proxy import CountingProxy

TYPES = 200
STATES = 40
CLEANUP_REQUESTS_MAX = 40
CLEANUP_REQUESTS_PER_TABLE_MAX = 3
"""A listing, and the one version that is kept."""
CLEANUP_REQUESTS_PER_CHANGE_MAX = 16
"""Where something is removed: a second listing and deletions; of the manifest, the news."""
CLEANUP_REQUESTS_PER_STATE_MAX = 6
"""Its manifest, and the version of a table that only it has."""


def schema(types: int) -> str:
    return "\n".join(f"node Kind{i} {{ code: String @key  size: I64? }}" for i in range(types))


def row(kind: int, size: int) -> dict[str, Any]:
    return {"type": f"Kind{kind}", "data": {"code": "a", "size": size}}


def cost(root: str, proxy: CountingProxy, keep: int, *, confirm: bool = False) -> tuple[int, int]:
    """Requests of a cleanup by somebody who has just come, and how many tables it removed from."""
    with measure(proxy) as io, omnigraph.open(root) as cold:
        report = cold.upkeep.cleanup(keep=keep, grace=0, confirm=confirm)
    assert report.errors == ()
    return io.count(), sum(place.is_table for place in report.places)


def test_a_cleanup_looks_once_at_each_of_200_tables(
    tmp_path: Path, copied_to_s3: Callable[[Path], str], s3_proxy: CountingProxy
) -> None:
    with omnigraph.init(tmp_path / "g", schema(TYPES)) as graph:
        graph.load([row(i, 0) for i in range(4, TYPES)])
    place = copied_to_s3(tmp_path / "g")
    with omnigraph.open(place) as graph:
        graph.load([row(i, 0) for i in range(4)])
        graph.settle()
        looking = CLEANUP_REQUESTS_MAX + CLEANUP_REQUESTS_PER_TABLE_MAX * TYPES
        nothing, _ = cost(place, s3_proxy, 1)
        assert nothing <= looking
        for size in range(1, 4):
            graph.load([row(i, size) for i in range(4)], mode="merge")
        graph.settle()
    preview, _ = cost(place, s3_proxy, 1)
    assert preview <= looking
    confirmed, changed = cost(place, s3_proxy, 1, confirm=True)
    # A store that counts seconds may show all that there is as too young to be removed.
    assert changed in (0, 4)
    assert confirmed <= looking + (4 + 1) * CLEANUP_REQUESTS_PER_CHANGE_MAX
    again, _ = cost(place, s3_proxy, 1, confirm=True)
    assert again <= looking + CLEANUP_REQUESTS_PER_CHANGE_MAX


def test_a_state_that_is_kept_is_read_once(s3_proxied_root: str, s3_proxy: CountingProxy) -> None:
    with omnigraph.init(s3_proxied_root, schema(2)) as graph:
        for size in range(STATES + 4):
            graph.load([row(0, size)], mode="merge")
        graph.settle()
    few, _ = cost(s3_proxied_root, s3_proxy, 1)
    many, _ = cost(s3_proxied_root, s3_proxy, STATES)
    assert many - few <= CLEANUP_REQUESTS_PER_STATE_MAX * STATES
    confirmed, _ = cost(s3_proxied_root, s3_proxy, STATES, confirm=True)
    assert confirmed - many <= CLEANUP_REQUESTS_MAX + 2 * CLEANUP_REQUESTS_PER_CHANGE_MAX
