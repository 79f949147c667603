"""Snapshots survive the way into rows and back, and damaged rows are told from good ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import CorruptionError, FormatError
from omnigraph.manifest import codec
from omnigraph.manifest.snapshot import (
    BranchFacts,
    GraphCommit,
    ManifestPlace,
    Snapshot,
    TableChange,
    TablePin,
)
from omnigraph.storage.names import TableVersion

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
COUNTS = st.integers(0, 2**53)
PLACES = st.builds(
    ManifestPlace,
    path=st.sampled_from(["__manifest", "_branches/X"]),
    version=st.integers(1, 9),
    back=st.integers(0, 3),
)
CHANGES = st.builds(TableChange, inserted=COUNTS, updated=COUNTS, deleted=COUNTS)


@st.composite
def steps_before(
    draw: st.DrawFn, pins: dict[str, TablePin], commits: int
) -> tuple[dict[str, TablePin], ...]:
    """States on the way to a snapshot, of some of its tables in other versions."""
    count = draw(st.integers(0, commits - 1)) if pins else 0
    chosen = [
        draw(st.sets(st.sampled_from(sorted(pins)), min_size=1, max_size=2)) for _ in range(count)
    ]
    return tuple(
        {key: replace(pins[key], row_count=back) for key in sorted(keys)}
        for back, keys in enumerate(chosen)
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    branch = draw(st.sampled_from(["main", "feature/x"]))
    depth = draw(st.integers(1, 8))
    commits = tuple(
        GraphCommit(
            id=f"C{n}",
            parent_id=f"C{n - 1}" if n > 1 else None,
            merged_parent_id=(merged := draw(st.none() | st.just("M")) if n > 1 else None),
            branch=draw(st.sampled_from(["main", branch])),
            place=draw(PLACES),
            kind="load",
            actor=draw(st.none() | TEXT),
            message=draw(st.none() | TEXT),
            created_at_us=draw(COUNTS),
            changes=draw(st.dictionaries(st.sampled_from(["node:A", "edge:B"]), CHANGES)),
            generation=draw(st.integers(1, 99)),
            merged_place=ManifestPlace(path="_branches/Y", version=3) if merged else None,
        )
        for n in range(depth, 0, -1)
    )
    pins = {
        f"node:T{n}": TablePin(
            table_key=f"node:T{n}",
            type_id=n,
            incarnation=n + 1,
            name=TableVersion(
                path=f"nodes/{n}", version=n + 7, manifest=f"nodes/{n}/_graph/x.manifest",
                manifest_size=n,
            ),
            row_count=draw(COUNTS),
        )
        for n in range(draw(st.integers(0, 4)))
    }  # fmt: skip
    return Snapshot(
        graph_id="G",
        branch=branch,
        version=5,
        schema_hash="h",
        pins=pins,
        commits=commits,
        path=draw(st.sampled_from(["__manifest", "_branches/X"])),
        facts=BranchFacts(
            rewound_at=draw(st.integers(0, 5)),
            deleted=draw(st.booleans()),
            revoked=tuple(draw(st.lists(TEXT, max_size=2))),
        ),
        steps=draw(steps_before(pins, len(commits))),
    )


def metadata(snapshot: Snapshot) -> dict[str, str]:
    raw = codec.to_table(snapshot).schema.metadata
    return {k.decode(): v.decode() for k, v in raw.items()}


@given(snapshots())
def test_a_snapshot_survives_the_round_trip(snapshot: Snapshot) -> None:
    table = codec.to_table(snapshot)
    back = codec.from_table(
        table, path=snapshot.path, version=snapshot.version, metadata=metadata(snapshot)
    )
    assert back == snapshot


@given(snapshots(), st.randoms())
def test_the_order_of_rows_does_not_matter(snapshot: Snapshot, random) -> None:
    table = codec.to_table(snapshot)
    order = random.sample(range(table.num_rows), table.num_rows)
    back = codec.from_table(
        table.take(order), path=snapshot.path, version=5, metadata=metadata(snapshot)
    )
    assert back == snapshot


def test_old_commits_leave_the_window() -> None:
    commits = tuple(
        GraphCommit(
            id=f"C{n}", parent_id=f"C{n - 1}" if n else None, merged_parent_id=None, branch="main",
            place=ManifestPlace(path="__manifest", version=n + 1), kind="load", actor=None,
            message=None, created_at_us=n, changes={},
        )
        for n in range(80, -1, -1)
    )  # fmt: skip
    snapshot = Snapshot(
        graph_id="G", branch="main", version=81, schema_hash="h", pins={}, commits=commits
    )
    back = codec.from_table(
        codec.to_table(snapshot), path=snapshot.path, version=81, metadata=metadata(snapshot)
    )
    assert back == replace(snapshot, commits=commits[: codec.COMMITS_MAX])


@given(snapshots(), st.sampled_from(["schema", "graph_head", "graph_commit"]))
def test_missing_rows_are_corruption(snapshot: Snapshot, gone: str) -> None:
    table = codec.to_table(snapshot)
    kept = [i for i, kind in enumerate(table["object_type"].to_pylist()) if kind != gone]
    with pytest.raises(CorruptionError, match="manifest version 5 cannot be understood"):
        codec.from_table(
            table.take(kept), path=snapshot.path, version=5, metadata=metadata(snapshot)
        )


@pytest.mark.parametrize(
    ("stamp", "error"),
    [({}, CorruptionError), ({"omnigraph.format": "x"}, CorruptionError),
     ({"omnigraph.format": "4"}, FormatError), ({"omnigraph.format": "0"}, FormatError)],
)  # fmt: skip
def test_foreign_stamps_are_refused(stamp: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        codec.check_format(stamp, "somewhere")
