"""Two releases write one graph at once, in processes of their own: until it is brought up to date
both succeed, from then on the older one is refused, and nothing that was acknowledged is lost."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph.manifest.format import FORMAT
from support.racers import SCHEMA, Racer, run_racers
from support.releases import release_of_format

PROCESSES = 4
COMMITS = 10


@pytest.mark.xdist_group("races")
def test_releases_that_race_lose_nothing(store_root: str) -> None:
    with release_of_format(1):
        omnigraph.init(store_root, SCHEMA).close()
    racers = [
        Racer(
            kind="append",
            uri=store_root,
            name=f"{'old' if n % 2 else 'new'}{n}",
            count=COMMITS,
            type_name="Person",
            format=1 if n % 2 else None,
        )
        for n in range(PROCESSES)
    ]
    results = run_racers(racers)
    for racer, result in zip(racers, results, strict=True):
        assert set(result.errors) <= ({"format_newer"} if racer.format == 1 else set())
    with omnigraph.open(store_root) as graph:
        names = graph.snapshot().rows("Person").to_arrow()["name"].to_pylist()
        assert len(names) == len(set(names)) == sum(result.done for result in results)
        stamps = [
            graph.snapshot(version=c.manifest_version).to_dict()["internal_schema_version"]
            for c in reversed(graph.commits())
        ]
        assert stamps == sorted(stamps)
        assert (stamps[0], stamps[-1]) == (1, FORMAT)
        writers = {c.actor: s for c, s in zip(reversed(graph.commits()), stamps, strict=True)}
        assert all(s == 1 for a, s in writers.items() if a and a.startswith("old"))
        assert graph.upkeep.check(full=True).ok
