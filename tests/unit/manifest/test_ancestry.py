"""What merges of any two ends need, found at once, is what pair after pair would have found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from lineage_support import Line, lines

from omnigraph.manifest.snapshot import GraphCommit
from omnigraph.upkeep.ancestry import Ancestry


def bases(line: Line, one: GraphCommit, other: GraphCommit) -> list[GraphCommit]:
    found = line.lineage().merge_bases(line.snapshot(one), line.snapshot(other))
    return sorted(found, key=lambda commit: commit.id)


def made_one(line: Line, commits: Sequence[GraphCommit]) -> Iterator[str]:
    """As ``branch/merge/bases.py`` makes several ancestors one."""
    for number in range(1, len(commits)):
        older = {
            base.id: base
            for earlier in commits[:number]
            for base in bases(line, earlier, commits[number])
        }
        yield from older
        yield from made_one(line, list(older.values()))


def needed(line: Line, branches: Sequence[GraphCommit], tags: Sequence[GraphCommit]) -> set[int]:
    ancestry = Ancestry(line.lineage(), [line.snapshot(c) for c in (*branches, *tags)])
    found = ancestry.needed_by_merges([c.id for c in branches], [c.id for c in tags])
    return {place.version for place in found}


@given(lines(), st.data())
def test_every_merge_finds_what_it_looks_at(line: Line, data: st.DataObject) -> None:
    chosen = st.lists(st.sampled_from(line.commits), max_size=5, unique_by=lambda c: c.id)
    branches, tags = data.draw(chosen), data.draw(chosen)
    tags = [tag for tag in tags if tag not in branches]
    pairs = [*combinations(branches, 2), *((b, t) for b in branches for t in tags)]
    direct: set[str] = set()
    recursive: set[str] = set()
    several = False
    for one, other in pairs:
        found = bases(line, one, other)
        direct |= {base.id for base in found}
        several |= len(found) > 1
        for order in (found, found[::-1]):
            recursive |= set(made_one(line, order))
    looked_at = {int(one[1:]) for one in direct | recursive}
    kept = needed(line, branches, tags)
    assert looked_at <= kept
    if not several:  # Then nothing else is kept, either.
        assert kept == looked_at


def test_bases_between_tags_alone_are_not_kept() -> None:
    line = Line()
    root = line.add(None, None)
    fork = line.add(root, None)
    left, right = line.add(fork, None), line.add(fork, None)
    main = line.add(root, None)
    assert needed(line, [main], [left, right]) == {0}
    assert needed(line, [main, left], [right]) == {0, 1}


def test_a_thousand_branches_are_a_matter_of_one_walk() -> None:
    line = Line()
    main = [line.add(None, None)]
    branches = []
    for _ in range(1000):
        main.append(line.add(main[-1], None))
        branches.append(line.add(main[-1], None))
    line.opened = 0
    kept = needed(line, [main[-1], *branches], [])
    # Each was made at a commit of main, of its own; the last one has everything of main.
    assert kept == {commit.manifest_version for commit in main[1:]}
    assert line.opened <= 2 * len(line.commits)


def test_a_way_that_was_lost_does_not_hide_the_others() -> None:
    line = Line()
    root = line.add(None, None)
    fork = line.add(root, None)
    one, other = line.add(fork, None), line.add(fork, None)
    lost = [line.add(None, None)]
    for _ in range(8):
        lost.append(line.add(lost[-1], None))
    line.reclaimed = {commit.manifest_version for commit in lost[:-1]}
    assert needed(line, [one, other, lost[-1]], []) == {fork.manifest_version}
