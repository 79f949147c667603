"""Object-store requests of reads: counted on a real S3 server.

The budgets are those of docs/dev/cost-budgets.md. Counts are exact, so these tests cannot flicker.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.query.exec import columns, rank
from omnigraph.testing.measure import Measured, measure
from omnigraph.testing.proxy import CountingProxy

SCHEMA = """
node Person { name: String @key  age: I32  city: String  note: String? }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = 50_000
EDGES = 100_000
LOOKUP_REQUESTS_MAX = 3
BY_NAME = "query by_name($n: String) { match { $p: Person { name: $n } } return { $p.age, $p.city, $p.note } }"
FRIENDS = (
    "query friends($n: String) { match { $p: Person { name: $n } $p knows $f } return { $f.name } }"
)


@pytest.fixture
def root(s3_proxied_root: str) -> str:
    """A graph too large for one page of a column, in one file a type."""
    people = pa.table(
        {
            "name": [f"p{i}" for i in range(PEOPLE)],
            "age": pa.array([i % 90 for i in range(PEOPLE)], pa.int32()),
            "city": [f"city{i % 200}" for i in range(PEOPLE)],
            "note": [f"note {i} " * 20 for i in range(PEOPLE)],
        }
    )
    knows = pa.table(
        {
            "src": [f"p{i * 7 % PEOPLE}" for i in range(EDGES)],
            "dst": [f"p{i * 13 % PEOPLE}" for i in range(EDGES)],
        }
    )
    with omnigraph.init(s3_proxied_root, SCHEMA) as graph:
        graph.load({"Person": people, "Knows": knows})
    return s3_proxied_root


def opens(io: Measured) -> int:
    """Requests for manifests of tables: what opening a version costs."""
    return sum(1 for r in io.requests if "_graph/" in r.path)


@pytest.mark.parametrize(("kept_whole", "requests"), [(True, 1), (False, 3)])
def test_a_warm_point_lookup_opens_nothing(
    kept_whole: bool,
    requests: int,
    root: str,
    s3_proxy: CountingProxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not kept_whole:
        # As if the columns were too large to be read whole at first touch.
        monkeypatch.setattr(columns, "SMALL_BYTES", 0)
        monkeypatch.setattr(columns, "FETCH_COST", 0)
    with omnigraph.open(root) as graph:
        graph.query(BY_NAME, {"n": "p1"})
        for name in ("p17", "p40000", "p17"):
            with measure(s3_proxy) as io:
                rows = graph.query(BY_NAME, {"n": name}).to_dicts()
            assert len(rows) == 1
            assert io.count() == requests <= LOOKUP_REQUESTS_MAX, io.log()
            assert opens(io) == 0, io.log()


def test_repeated_queries_ask_only_whether_somebody_published(
    root: str, s3_proxy: CountingProxy
) -> None:
    with omnigraph.open(root) as graph:
        graph.query(FRIENDS, {"n": "p7"})
        with measure(s3_proxy) as io:
            assert graph.query(FRIENDS, {"n": "p14"}).to_dicts()
        assert io.count() == 1, io.log()
        assert io.count("HEAD") == 1, io.log()


@pytest.mark.parametrize("built", [False, True])
def test_what_a_result_says_about_indexes_costs_no_request(
    built: bool, s3_proxied_root: str, s3_proxy: CountingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = "node Doc { slug: String @key  body: String @index }"
    ask = 'match { $d: Doc  search($d.body, "red") } return { $d.slug }'

    def first_and_second() -> tuple[int, int, int]:
        with omnigraph.open(s3_proxied_root) as graph:
            counts = []
            for _ in range(2):
                with measure(s3_proxy) as io:
                    notices = graph.query(ask).notices
                counts.append(io.count())
            return counts[0], counts[1], len(notices)

    with omnigraph.init(s3_proxied_root, schema) as graph:
        graph.load({"Doc": [{"slug": f"d{i}", "body": "red"} for i in range(50)]})
        if built:
            graph.build_indexes()
    silent = first_and_second()
    monkeypatch.setattr(rank, "NOTED_ROWS", dict.fromkeys(rank.NOTED_ROWS, 1))
    telling = first_and_second()
    assert silent[1] == telling[1] == 1, "a warm handle asks only whether somebody published"
    assert telling[0] - silent[0] == 0
    assert (silent[2], telling[2]) == (0, 0 if built else 1)
