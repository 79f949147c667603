"""A mutation that loses a race is carried out again, whole, on what the winner left (ADR 0007)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mutation_support import FLEET, counts, edge, ends, fleet, mutate, nodes, port

import omnigraph
from omnigraph.errors import ErrorKind
from omnigraph.failpoints import FailPoint, armed
from omnigraph.ids import SeededIds
from omnigraph.query.mutate import MutationOutcome


@pytest.fixture
def graph(tmp_path: Path) -> omnigraph.Graph:
    return fleet(tmp_path / "fleet")


def beaten(
    graph: omnigraph.Graph, text: str, rival: Callable[[omnigraph.Graph], object], **options: object
) -> MutationOutcome:
    """Run a mutation; just before it is published a rival publishes once."""
    pending = [rival]
    with omnigraph.open(graph.uri) as other:

        def beat() -> None:
            if pending:
                pending.pop()(other)

        with armed(FailPoint.PUBLISH_BEFORE_COMMIT, beat):
            return mutate(graph, text, **options)


def test_an_update_keeps_what_the_winner_wrote_in_other_columns(graph: omnigraph.Graph) -> None:
    outcome = beaten(
        graph,
        'update Port set { berths: 9 } where code = "AAR"',
        lambda g: mutate(g, 'update Port set { name: "Aarhus" } where code = "AAR"'),
    )
    assert counts(outcome) == (1, 0) and outcome.receipt.attempts == 2
    assert nodes(graph, "Port")["AAR"] == {"code": "AAR", "name": "Aarhus", "berths": 9}


def test_a_condition_is_asked_again(graph: omnigraph.Graph) -> None:
    outcome = beaten(
        graph,
        "update Port set { berths: 99 } where berths = 4",
        lambda g: mutate(g, 'update Port set { berths: 5 } where code = "AAR"'),
    )
    assert counts(outcome) == (0, 0)
    assert outcome.receipt.commit is None
    assert nodes(graph, "Port")["AAR"]["berths"] == 5


def test_an_upsert_keeps_what_the_winner_wrote(graph: omnigraph.Graph) -> None:
    outcome = beaten(
        graph,
        'upsert Vessel { imo: 900, name: "late" }',
        lambda g: mutate(g, 'upsert Vessel { imo: 900, name: "first", flag: "dk" }'),
    )
    assert outcome.receipt.changes["node:Vessel"].updated == 1
    found = nodes(graph, "Vessel")["900"]
    assert (found["name"], found["flag"]) == ("late", "dk")


def test_a_delete_takes_edges_that_came_meanwhile(graph: omnigraph.Graph) -> None:
    outcome = beaten(
        graph,
        'delete Port where code = "CPH"',
        lambda g: g.load(
            [edge("CallsAt", "300", "CPH", on="2026-04-01"), edge("Feeds", "CPH", "BGO")]
        ),
    )
    assert counts(outcome) == (1, 5)
    assert not [e for e in ends(graph, "Feeds") if "CPH" in e]
    assert ("300", "CPH") not in ends(graph, "CallsAt")


def test_a_delete_takes_rows_that_match_only_now(graph: omnigraph.Graph) -> None:
    outcome = beaten(graph, "delete Port where berths > 5", lambda g: g.load([port("NEW", 8)]))
    assert counts(outcome) == (2, 3)
    assert set(nodes(graph, "Port")) == {"AAR", "BGO"}


def test_what_does_not_concern_a_mutation_does_not_run_it_again(graph: omnigraph.Graph) -> None:
    outcome = beaten(
        graph,
        "update Port set { berths: 9 } where berths = 4",
        lambda g: mutate(g, 'update Vessel set { name: "Kora" } where imo = 300'),
    )
    assert counts(outcome) == (1, 0)
    assert nodes(graph, "Port")["AAR"]["berths"] == 9
    assert nodes(graph, "Vessel")["300"]["name"] == "Kora"


def test_a_winner_that_removed_an_endpoint_refuses_the_edge(graph: omnigraph.Graph) -> None:
    with pytest.raises(omnigraph.ConstraintError, match="dst 'CPH' not found in Port"):
        beaten(
            graph,
            'insert CallsAt { from: "300", to: "CPH", on: date("2026-01-01") }',
            lambda g: mutate(g, 'delete Port where code = "CPH"'),
        )


def test_if_commit_holds_to_the_last_moment(graph: omnigraph.Graph) -> None:
    seen = graph.snapshot().commit.id
    with pytest.raises(omnigraph.ConflictError) as caught:
        beaten(
            graph,
            'delete Port where code = "CPH"',
            lambda g: g.load([port("NEW", 8)]),
            expected_commit=seen,
        )
    assert caught.value.kind is ErrorKind.PRECONDITION_FAILED
    assert set(nodes(graph, "Port")) == {"AAR", "BGO", "CPH", "NEW"}


def test_a_stale_handle_does_not_miss_what_others_wrote(graph: omnigraph.Graph) -> None:
    """Nothing to do on a stale snapshot is only believed when the newest says the same."""
    with omnigraph.open(graph.uri) as other:
        other.load([port("NEW", 77)])
        assert counts(mutate(graph, "update Port set { berths: 78 } where berths = 77")) == (1, 0)
        other.snapshot()
        mutate(graph, 'update Port set { name: "n" } where code = "NEW"')
        assert counts(mutate(other, 'delete Port where name = "n"')) == (1, 0)
        mutate(other, 'insert Port { code: "X", name: "x", berths: 1 }')
        # The same row as this handle remembers it, but no longer as it is.
        mutate(graph, 'update Port set { berths: 2 } where code = "X"')
        again = mutate(other, 'insert Port { code: "X", name: "x", berths: 1 }')
        assert again.receipt.commit is not None
        assert nodes(graph, "Port")["X"]["berths"] == 1


def test_ids_and_the_moment_stay_the_same_when_it_runs_again(tmp_path: Path) -> None:
    schema = "node Note { text: String  at: DateTime }\nnode Other { code: String @key }"
    text = """
    insert Note { text: "a", at: now() } insert Note { text: "b", at: now() }
    update Note set { text: "c" } where text = "b" or text = "rival"
    """

    def run(name: str, *, race: bool) -> list[tuple[str, str]]:
        with omnigraph.init(tmp_path / name, schema, ids=SeededIds(1)) as graph:
            if race:
                rival = 'insert Note { text: "rival", at: now() }'
                assert counts(beaten(graph, text, lambda g: mutate(g, rival))) == (4, 0)
            else:
                assert counts(mutate(graph, text)) == (3, 0)
            rows = graph.snapshot().rows("Note").to_dicts()
            return sorted((r["id"][10:], str(r["at"])) for r in rows)

    quiet, raced = run("quiet", race=False), run("raced", race=True)
    assert len(raced) == 3 and set(quiet) < set(raced)


def deeper(graph: omnigraph.Graph) -> None:
    """Give ports a depth, as another process would."""
    with omnigraph.open(graph.uri) as other:
        other.schema_apply(FLEET.replace("berths: U32", "berths: U32  depth: F64?"))


def test_a_stale_handle_checks_a_mutation_on_the_newest_schema(graph: omnigraph.Graph) -> None:
    deeper(graph)
    assert graph.mutate('update Port set { depth: 9.5 } where code = "CPH"').affected_nodes == 1
    assert nodes(graph, "Port")["CPH"]["depth"] == 9.5


def test_a_schema_that_came_by_a_merge_is_the_newest_too(graph: omnigraph.Graph) -> None:
    with omnigraph.open(graph.uri) as other:
        other.branches.create("s")
        other.schema_apply(FLEET.replace("berths: U32", "berths: U32  depth: F64?"), branch="s")
        other.merge("s")
    assert graph.mutate('update Port set { depth: 2 } where code = "CPH"').affected_nodes == 1


def test_a_schema_change_of_something_else_does_not_stop_a_mutation(graph: omnigraph.Graph) -> None:
    deeper(graph)
    assert graph.mutate('update Port set { berths: 8 } where code = "CPH"').affected_nodes == 1
    assert nodes(graph, "Port")["CPH"] == {**nodes(graph, "Port")["CPH"], "berths": 8}


def test_a_schema_change_in_the_last_moment_is_noticed(graph: omnigraph.Graph) -> None:
    pending = [deeper]
    with armed(FailPoint.PUBLISH_BEFORE_COMMIT, lambda: pending and pending.pop()(graph)):
        done = graph.mutate('update Port set { berths: 8 } where code = "CPH"')
    assert done.affected_nodes == 1
    assert nodes(graph, "Port")["CPH"]["berths"] == 8
    assert "depth" in graph.catalog.nodes["Port"].by_name


@pytest.mark.parametrize("code", ["CPH", "nowhere"])
def test_what_the_newest_schema_does_not_have_is_refused(graph: omnigraph.Graph, code: str) -> None:
    with omnigraph.open(graph.uri) as other:
        other.schema_apply(FLEET.replace("berths: U32", ""), confirm=True)
    with pytest.raises(omnigraph.QueryError, match="berths"):
        graph.mutate(f'update Port set {{ berths: 8 }} where code = "{code}"')
