"""`check` finds every kind of damage, and says what to do; `status` says what to run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import omnigraph
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.upkeep.check import check
from omnigraph.write import publish

SCHEMA = """
node Person { name: String @key  age: I64? }
edge Knows: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[omnigraph.Graph]:
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        made.load([{"type": "Person", "data": {"name": n, "age": 1}} for n in "abc"])
        made.load([{"edge": "Knows", "from": "a", "to": "b"}])
        made.branches.create("work")
        made.load([{"type": "Person", "data": {"name": "d"}}], branch="work")
        made.tags.create("v1")
        made.settle()
        yield made


def codes(graph: omnigraph.Graph) -> set[str]:
    with omnigraph.open(graph.uri) as fresh:
        report = check(fresh._repository, full=True)
    assert all(finding.remedy for finding in report.findings)
    return {finding.code for finding in report.findings}


def lie(graph: omnigraph.Graph, key: str, **facts: object) -> None:
    """Publish a version whose pin of a table says something else."""

    def changed(snapshot: Snapshot) -> Snapshot:
        pin = replace(snapshot.pins[key], **facts)  # type: ignore[arg-type]
        return replace(snapshot, pins={**snapshot.pins, key: pin})

    publish_unchecked(graph, changed)


def publish_unchecked(
    graph: omnigraph.Graph, changed: Callable[[Snapshot], Snapshot | None]
) -> None:
    """As a faulty release might: what no snapshot may be is published all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "check_invariants", lambda *_: None)
        publish.restate(graph._repository, graph._repository.branch("main"), changed)


def test_a_whole_graph_has_no_findings(graph: omnigraph.Graph) -> None:
    seen: list[tuple[int, int]] = []
    report = graph.upkeep.check(full=True, progress=lambda done, total: seen.append((done, total)))
    assert report.ok, report.findings
    assert (report.branches, report.tags, report.commits) == (2, 1, 4)
    assert (report.tables, report.rows) == (3, 8)
    assert seen[-1][0] == seen[-1][1]
    graph.upkeep.cleanup(keep=1, confirm=True, grace=0)
    assert codes(graph) == set()


def test_files_that_are_missing_or_damaged(graph: omnigraph.Graph) -> None:
    root = Path(graph.uri)
    (edges,) = (root / "edges").rglob("data/*.lance")
    content = edges.read_bytes()
    edges.write_bytes(content[: len(content) // 2])
    assert codes(graph) == {"read"}
    edges.unlink()
    assert codes(graph) == {"file"}


def test_a_table_version_that_is_gone(graph: omnigraph.Graph) -> None:
    for manifest in (Path(graph.uri) / "edges").rglob("_graph/*.manifest"):
        manifest.unlink()
    assert codes(graph) == {"table"}


def test_counts_that_do_not_match(graph: omnigraph.Graph) -> None:
    lie(graph, "node:Person", row_count=17)
    assert codes(graph) == {"count"}


def test_edges_that_lead_nowhere(graph: omnigraph.Graph) -> None:
    def without_people(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, pins={"edge:Knows": snapshot.pins["edge:Knows"]})

    publish_unchecked(graph, without_people)
    assert codes(graph) == {"endpoint"}


def test_a_table_that_the_schema_does_not_know(graph: omnigraph.Graph) -> None:
    lie(graph, "node:Person", type_id=99)
    assert codes(graph) == {"schema"}


def test_a_lineage_that_runs_backwards(graph: omnigraph.Graph) -> None:
    def older(snapshot: Snapshot) -> Snapshot:
        head = replace(snapshot.head, generation=1, created_at_us=0)
        return replace(snapshot, commits=(head, *snapshot.commits[1:]))

    publish_unchecked(graph, older)
    assert "lineage" in codes(graph)


def test_refs_and_tags_that_lead_nowhere(graph: omnigraph.Graph) -> None:
    root = Path(graph.uri)
    tag = root / "_refs" / "tags" / "v1.json"
    body = json.loads(tag.read_text())
    tag.write_text(json.dumps(body | {"commit": "01" + "A" * 24}))
    assert codes(graph) == {"tag"}
    tag.write_text("{")
    assert codes(graph) == {"tag"}
    tag.unlink()
    (root / "_refs" / "branches" / "work" / "1.json").write_text("[]")
    assert codes(graph) == {"ref"}


def test_intents_that_cannot_be_read(graph: omnigraph.Graph) -> None:
    (Path(graph.uri) / "__recovery" / "01X.json").write_text("{")
    assert codes(graph) == {"intent"}
    assert "recovery run" in graph.upkeep.status().advice[0]
    graph.upkeep.recovery.run()
    assert codes(graph) == {"intent"}
    assert "delete it" in graph.upkeep.status().advice[0]


def test_a_version_that_was_made_in_the_folder_of_a_table(graph: omnigraph.Graph) -> None:
    """Nobody knows what it needs, so nothing is removed there; other tables are."""
    root = Path(graph.uri)
    (manifest,) = (root / "edges").rglob("_graph/*.manifest")
    later = manifest.parent.parent / "_versions" / f"{(1 << 64) - 1 - 99:020d}.manifest"
    later.write_bytes(manifest.read_bytes())
    for age in (2, 3):
        graph.load([{"type": "Person", "data": {"name": "a", "age": age}}], mode="merge")
    report = graph.upkeep.cleanup(keep=1, confirm=True, grace=0)
    (refused,) = report.errors
    assert refused.type_key == "edge:Knows"
    assert "another program made version 99" in (refused.error or "")
    assert any(p.type_key == "node:Person" and p.files_removed for p in report.places)


def test_the_past_is_looked_at_if_that_is_asked_for(graph: omnigraph.Graph) -> None:
    for age in range(4):
        graph.load([{"type": "Person", "data": {"name": "a", "age": age}}], mode="merge")
    graph.settle()
    seen: list[tuple[int, int]] = []
    report = graph.upkeep.check(
        history=True, progress=lambda done, total: seen.append((done, total))
    )
    assert report.ok, report.findings
    assert (report.states, report.tables) == (9, 7)
    assert seen[-1] == (3, 3)
    old = graph.at("main@5").datasets[0]
    pin = graph._repository.lineage.snapshot(
        next(c.place for c in graph.commits() if c.manifest_version == 5 and c.branch == "main")
    ).pins["node:Person"]
    assert old.published_dataset_version == pin.name.version
    (Path(graph.uri) / pin.name.manifest).unlink()
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.upkeep.check(full=True).ok
        (finding,) = fresh.upkeep.check(history=True).findings
    assert finding.code == "table"
    assert finding.where.endswith("node:Person")
    assert "omnigraph cleanup --keep" in finding.remedy
    # What it says helps.
    graph.upkeep.cleanup(keep=1, confirm=True, grace=0)
    with omnigraph.open(graph.uri) as fresh:
        assert fresh.upkeep.check(history=True).ok


def test_what_a_cleanup_gave_up_is_not_missed(graph: omnigraph.Graph) -> None:
    for age in range(40):
        graph.load([{"type": "Person", "data": {"name": "a", "age": age}}], mode="merge")
    graph.upkeep.cleanup(keep=2, confirm=True, grace=0)
    with omnigraph.open(graph.uri) as fresh:
        report = fresh.upkeep.check(history=True)
    assert report.ok, report.findings
    assert report.states < 12


def test_status_counts(graph: omnigraph.Graph) -> None:
    status = graph.upkeep.status()
    people, knows = status.types
    assert (people.type_key, people.rows, people.fragments) == ("node:Person", 3, 1)
    assert (knows.rows, knows.fragments) == (1, 1)
    assert status.branches == ("main", "work")
    assert status.tags == ("v1",)
    assert status.history_depth == 3
    assert status.versions == 3
    assert status.advice == ()
    assert status.bytes == sum(p.stat().st_size for p in Path(graph.uri).rglob("*") if p.is_file())
    for age in range(210):
        publish.restate(
            graph._repository,
            graph._repository.branch("main"),
            lambda snapshot, age=age: snapshot.saying(swept=age + 1),
        )
    assert any("omnigraph cleanup" in advice for advice in graph.upkeep.status().advice)
