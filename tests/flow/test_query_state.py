"""Reading while others write: views stand still, queries see the newest commit, nothing is torn."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from query_support import MODES, SCHEMA, ask, knows, people, person

import omnigraph

COUNTS = "match { $a: Person  optional { $a knows $b } } return { count(distinct $a) as people, count($b) as pairs }"


def test_a_view_keeps_its_answer(tmp_path):
    with people(tmp_path / "g") as graph:
        view = graph.snapshot()
        before = ask(view, COUNTS)
        graph.load([person("eve"), knows("eve", "ann")])
        graph.mutate('delete Person where name = "bob"')
        graph.load([person("cat", age=1)], mode="merge")
        assert ask(view, COUNTS) == before == [(4, 4)]
        assert ask(view, 'match { $p: Person { name: "cat" } } return { $p.age }') == [30]
        assert ask(graph, COUNTS) == [(4, 3)]
        assert ask(graph, 'match { $p: Person { name: "cat" } } return { $p.age }') == [1]
        # Also after its derived state was pushed out by newer ones.
        for i in range(8):
            graph.load([person(f"n{i}"), knows(f"n{i}", "ann")])
            ask(graph, COUNTS)
        assert ask(view, COUNTS) == before


def test_a_query_sees_what_another_handle_committed(tmp_path):
    with people(tmp_path / "g") as ours, omnigraph.open(tmp_path / "g") as theirs:
        assert ask(ours, COUNTS) == ask(theirs, COUNTS) == [(4, 4)]
        for i in range(3):
            writer, reader = (ours, theirs) if i % 2 else (theirs, ours)
            writer.load([person(f"n{i}"), knows(f"n{i}", "ann")])
            assert ask(reader, COUNTS) == ask(writer, COUNTS) == [(5 + i, 5 + i)]
        theirs.mutate('delete Person where name = "ann"')
        assert ask(ours, COUNTS) == [(6, 3)]


def test_a_query_sees_what_another_process_committed(tmp_path):
    with people(tmp_path / "g") as graph:
        assert ask(graph, COUNTS) == [(4, 4)]
        script = (
            "import sys, omnigraph\n"
            "with omnigraph.open(sys.argv[1]) as g:\n"
            "    g.mutate('insert Person { name: \"eve\" }')\n"
            '    g.mutate(\'insert Knows { from: "eve" to: "ann" }\')\n'
            "    g.mutate('delete Knows where from = \"bob\"')\n"
        )
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "g")], check=True, timeout=120)
        assert ask(graph, COUNTS) == [(5, 4)]


def test_threads_read_one_handle_while_another_commits(tmp_path, monkeypatch):
    """Every answer is that of a committed state, and no thread ever goes back in time.

    A round adds a node with an edge, gives every node the number of the round, then takes the edge
    of an earlier round away. So in each state all nodes carry one number, and the number of nodes
    and edges is known from the last commit.
    """
    monkeypatch.setattr("omnigraph.query.topology.edges.BYTES_MAX", 4_000)
    readers, rounds = 3, 8
    states: dict[str, tuple] = {}
    done, together = Event(), Barrier(readers + 1)
    text = (
        "match { $a: Person  optional { $a $e:knows $b } } return { count(distinct $a) as people, "
        "count($e) as edges, min($a.age) as low, max($a.age) as high, sum($e.since) as s }"
    )
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        graph.load([person("p0", age=0), person("p1", age=0), knows("p0", "p1", since=100)])

        def note(people_: int, edges: list[int], number: int) -> None:
            commit = graph.snapshot().commit.id
            states[commit] = (
                people_,
                len(edges),
                number,
                number,
                float(sum(edges)) if edges else None,
            )

        def write() -> None:
            together.wait()
            edges = [100]
            try:
                for turn in range(1, rounds + 1):
                    graph.load(
                        [
                            person(f"p{turn + 1}", age=turn - 1),
                            knows("p0", f"p{turn + 1}", since=turn),
                        ]
                    )
                    edges.append(turn)
                    note(turn + 2, edges, turn - 1)
                    graph.mutate(
                        "query q($n: I32) { update Person set { age: $n } where age != $n }",
                        {"n": turn},
                    )
                    note(turn + 2, edges, turn)
                    if turn % 2:
                        graph.mutate(
                            "query q($n: I32) { delete Knows where since = $n }", {"n": turn}
                        )
                        edges.remove(turn)
                        note(turn + 2, edges, turn)
            finally:
                done.set()

        def read(_: int) -> list[tuple[int, str, tuple]]:
            together.wait()
            seen = []
            while not done.is_set() or len(seen) < 5:
                result = graph.query(text)
                (row,) = result.to_dicts()
                seen.append((result.manifest_version, result.commit_id, tuple(row.values())))
            return seen

        note(2, [100], 0)
        with ThreadPoolExecutor(readers + 1) as pool:
            writing = pool.submit(write)
            answers = [task.result() for task in [pool.submit(read, i) for i in range(readers)]]
            writing.result()
        for seen in answers:
            versions = [version for version, _, _ in seen]
            assert versions == sorted(versions)
            for _, commit, row in seen:
                assert row == states[commit]
        newest = graph.query(text)
        assert tuple(newest.to_dicts()[0].values()) == states[newest.commit_id]


def test_threads_that_ask_a_cold_handle_at_once(tmp_path):
    """Whoever comes first makes the derived state; all get the same answers."""
    people(tmp_path / "g").close()
    questions = [
        COUNTS,
        "match { $a: Person  $a knows{1,4} $b } return { count($b) as n }",
        "match { $a: Person  $a <knows> $b } return { count($b) as n }",
        "match { $a: Person  $a $e:knows $b } return { sum($e.since) as n }",
        'match { $a: Person  search($a.bio, "fox") } return { count($a) as n }',
        'match { $a: Person { name: "cat" } } return { $a }',
    ]
    with omnigraph.open(tmp_path / "g") as warm:
        expected = [warm.query(q).to_dicts() for q in questions]
    for _ in range(3):
        with omnigraph.open(tmp_path / "g") as graph, ThreadPoolExecutor(6) as pool:
            together = Barrier(6)

            def work(turn: int, graph=graph, together=together):
                together.wait()
                order = questions[turn:] + questions[:turn]
                found = [graph.query(q).to_dicts() for q in order]
                return found[len(questions) - turn :] + found[: len(questions) - turn]

            assert all(answer == expected for answer in pool.map(work, range(6)))


def test_the_way_of_traversing_may_change_between_queries(tmp_path, monkeypatch):
    with people(tmp_path / "g") as graph:
        answers = []
        for turn in range(6):
            monkeypatch.setenv("OMNIGRAPH_TRAVERSAL_MODE", MODES[turn % 3])
            graph.load([person(f"n{turn}"), knows(f"n{turn}", "ann")])
            answers.append(tuple(graph.query(COUNTS).to_dicts()[0].values()))
        assert answers == [(5 + i, 5 + i) for i in range(6)]
