"""How much a bulk load moves between tasks: one exchange for all rules, as long as they are kept."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import omnigraph
from omnigraph.errors import ConstraintError

SCHEMA = """
node Person { key: String @key  email: String? @unique }
edge Knows: Person -> Person @card(0..3) { since: I32? }
edge Likes: Person -> Person @card(1..3) { since: I32?  @key(@src, @dst) }
"""


def lines(*records: str) -> str:
    return "".join(record + "\n" for record in records)


def person(i: int, email: str | None = None) -> str:
    return f'{{"type": "Person", "data": {{"key": "p{i}", "email": "{email or f"e{i}"}"}}}}'


def knows(i: int, j: int) -> str:
    return f'{{"edge": "Knows", "from": "p{i}", "to": "p{j}", "data": {{"id": "k{i}"}}}}'


def likes(i: int, j: int) -> str:
    return f'{{"edge": "Likes", "from": "p{i}", "to": "p{j}"}}'


def exchanges(spark, work) -> int:
    """Stages that wrote what other tasks read."""
    context, gateway = spark.sparkContext._jsc.sc(), spark.sparkContext._gateway
    numbers = gateway.new_array(gateway.jvm.double, 0)

    def stages() -> dict[tuple[int, int], int]:
        context.listenerBus().waitUntilEmpty()
        nothing = gateway.jvm.java.util.ArrayList()
        found = context.statusStore().stageList(None, False, False, numbers, nothing)
        each = [found.apply(i) for i in range(found.size())]
        return {(s.stageId(), s.attemptId()): s.shuffleWriteRecords() for s in each}

    before = stages()
    work()
    return sum(1 for key, written in stages().items() if key not in before and written)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    with omnigraph.init(tmp_path_factory.mktemp("exchanges") / "graph", SCHEMA) as graph:
        people, edges = [person(i) for i in range(9)], [likes(i, 0) for i in range(9)]
        start = lines(*people, *edges, *(knows(i, 1) for i in range(9)))
        graph.load(io.BytesIO(start.encode()))
        yield graph


@pytest.mark.parametrize(
    ("mode", "records", "expected"),
    [
        ("append", [person(20), person(21), knows(20, 21), likes(20, 1)], 1),
        ("merge", [person(20), person(21), likes(20, 1)], 1),
        # Rows that a merge would replace are compared with them, table by table.
        ("merge", [person(1), person(20), knows(1, 2), likes(1, 0), likes(1, 3)], 4),
        ("overwrite", [*(person(i) for i in range(9)), *(likes(i, 1) for i in range(9))], 1),
    ],
)
def test_rules_that_are_kept_take_one_exchange(
    graph, mode, records, expected, spark, tmp_path: Path
):
    (tmp_path / "in.jsonl").write_text(lines(*records))

    def load() -> None:
        graph.load(tmp_path / "in.jsonl", mode=mode, engine="spark", spark=spark, dry_run=True)

    assert exchanges(spark, load) == expected


@pytest.mark.parametrize(
    ("mode", "records", "expected"),
    [
        ("append", [person(20), person(20)], 2),
        ("append", [person(3)], 2),
        ("append", [person(20, "e3"), knows(20, 99)], 2),
        ("merge", [knows(1, 99), likes(2, 99)], 2),
        # Whether p4 still holds what p3 wants is known once all rows of p4 have met.
        ("merge", [person(3, "e4"), person(4, "e3"), person(5, "e6")], 3),
    ],
)
def test_a_rule_that_is_broken_takes_one_more(
    graph, mode, records, expected, spark, tmp_path: Path
):
    (tmp_path / "in.jsonl").write_text(lines(*records))

    def load() -> None:
        with pytest.raises(ConstraintError):
            graph.load(tmp_path / "in.jsonl", mode=mode, engine="spark", spark=spark, dry_run=True)

    assert exchanges(spark, load) == expected
