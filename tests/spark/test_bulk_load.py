"""The same input loaded by one process and by Spark: the same graph, the same refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from bulk_cases import SCHEMA, World, split_jsonl, write_jsonl

import omnigraph
from omnigraph.errors import ConstraintError, ErrorKind, InputError
from omnigraph.results import LoadResult
from omnigraph.write.validate import validate


def load(graph: omnigraph.Graph, source, mode: str, spark, **options) -> LoadResult:
    return graph.load(source, mode=mode, engine="spark", spark=spark, **options)


def content(graph: omnigraph.Graph) -> dict[str, list]:
    """Every type's rows by id; ids that were drawn are left out."""
    found = {}
    for graph_type in graph.catalog.types():
        rows = graph.snapshot().rows(graph_type.name).to_dicts()
        if graph_type.name == "Knows":
            rows = [{k: v for k, v in r.items() if k != "id"} for r in rows]
        found[graph_type.name] = sorted(rows, key=lambda r: json.dumps(r, default=str))
    return found


def everything_wrong(graph: omnigraph.Graph, source, mode: str, monkeypatch) -> ConstraintError:
    """What the local validator says, however much it is."""

    def all_of_it(*arguments, violations_max: int):
        return validate(*arguments, violations_max=1 << 30)

    monkeypatch.setattr("omnigraph.write.schema_view.validate", all_of_it)
    with pytest.raises(ConstraintError) as caught:
        graph.load(source, mode=mode)
    monkeypatch.undo()
    return caught.value


@pytest.fixture
def pair(tmp_path: Path):
    """Two equal graphs: one for each engine."""
    graphs = [omnigraph.init(tmp_path / name, SCHEMA) for name in ("local", "spark")]
    world = World(1)
    start = write_jsonl(tmp_path / "start.jsonl", world.clean(range(30), range(12), 0))
    for graph in graphs:
        graph.load(start)
    yield graphs
    for graph in graphs:
        graph.close()


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_every_rule_is_broken_and_told_in_the_same_words(pair, mode, spark, tmp_path, monkeypatch):
    local, other = pair
    world = World(2)
    records = [*world.clean(range(20, 45), range(8, 16), 10), *world.dirty(range(45), range(16))]
    files = split_jsonl(tmp_path / "in", world.shuffled(records), 3)
    expected = everything_wrong(local, files, mode, monkeypatch)
    rejects = tmp_path / "rejects.jsonl"
    before = content(other), other.snapshot().version
    with pytest.raises(ConstraintError) as caught:
        load(other, files, mode, spark, rejects=rejects)
    error = caught.value
    assert error.total == expected.total > 20
    assert error.kind is expected.kind
    first = [comparable(v.to_dict()) for v in error.violations]
    assert first == [comparable(v.to_dict()) for v in expected.violations[:20]]
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert list(map(comparable, told)) == [
        comparable({"reject": "violation", **v.to_dict()}) for v in expected.violations
    ]
    rules = {v.rule for v in expected.violations}
    assert rules >= {"required", "range", "check", "enum", "unique", "key", "endpoint"}
    assert (content(other), other.snapshot().version) == before
    assert data_files(other) == referenced_files(other), "nothing was staged"


def comparable(violation: dict) -> dict:
    """Without ids that were drawn for the occasion."""
    drawn = violation["type_name"] == "Knows"
    return {k: v for k, v in violation.items() if not (drawn and k == "entity_id")}


def data_files(graph: omnigraph.Graph) -> set[str]:
    root = Path(graph.uri)
    return {str(f.relative_to(root)) for f in root.glob("*/*/data/*.lance")}


def referenced_files(graph: omnigraph.Graph) -> set[str]:
    repository = graph._repository
    pins = repository.branch("main").refresh().snapshot.pins.values()
    return {
        f for pin in pins for f in repository.table(pin).files_since(None) if f.endswith(".lance")
    }


def row_ids(graph: omnigraph.Graph, key: str) -> dict[str, int]:
    pin = graph._repository.branch("main").refresh().snapshot.pins[key]
    table = graph._repository.table(pin).dataset.to_table(columns=["id", "_rowid"])
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


def test_a_history_of_loads_gives_the_same_graph(pair, spark, tmp_path):
    """Append, merge with repeated ids, overwrite: content, counts and row identity."""
    local, other = pair
    world = World(3)

    def both(name: str, records: list[dict], mode: str) -> LoadResult:
        files = split_jsonl(tmp_path / name, records, 2)
        expected = local.load(files, mode=mode)
        outcome = load(other, files, mode, spark)
        assert outcome.commit == other.commits()[0]
        assert dict(outcome.changes) == dict(expected.changes)
        assert (outcome.nodes, outcome.edges) == (expected.nodes, expected.edges)
        assert content(local) == content(other)
        return outcome

    both("append", world.clean(range(30, 60), range(12, 20), 500), "append")
    before = row_ids(other, "node:Person")
    bare = {"mail": None, "serial": None, "nick": None}
    again = [world.person(i, **bare, age=n) for n, i in enumerate((3, 4, 3, 70, 70, 40))]
    again += [world.lives(0, 1, 2), world.city(3, size=99), world.city(25), world.road(25, 3)]
    outcome = both("merge", [*again, world.person(4, **bare | {"nick": "last"})], "merge")
    assert outcome.changes["node:Person"].updated == 3
    assert outcome.changes["node:Person"].inserted == 1
    after = row_ids(other, "node:Person")
    assert {k: after[k] for k in before} == before, "replaced rows keep their identity"
    assert after["p70"] not in before.values()
    assert len(set(after.values())) == len(after)
    both("new", [world.person(200, **bare), world.person(200, age=3), world.person(201)], "merge")
    both("overwrite", world.clean(range(10, 20), range(4), 0), "overwrite")
    with omnigraph.open(other.uri) as fresh:
        assert content(fresh) == content(local)


def test_only_strict_inserts_of_existing_ids_is_a_conflict(pair, spark, tmp_path):
    local, other = pair
    source = write_jsonl(tmp_path / "in.jsonl", [World(1).city(1, zip=None)])
    with pytest.raises(ConstraintError) as expected:
        local.load(source)
    with pytest.raises(ConstraintError) as caught:
        load(other, source, "append", spark)
    assert caught.value.kind is expected.value.kind is ErrorKind.KEY_CONFLICT
    assert str(caught.value) == str(expected.value)


def test_input_that_cannot_be_read_is_told_with_its_lines(pair, spark, tmp_path):
    _, other = pair
    source = tmp_path / "in.jsonl"
    source.write_text(
        '{"type": "City", "data": {"name": "x"}}\nnonsense\n{"type": "Citi", "data": {}}\n'
    )
    rejects = tmp_path / "rejects.jsonl"
    with pytest.raises(InputError, match=r"in\.jsonl:2.*\n.*in\.jsonl:3.*did you mean 'City'"):
        load(other, source, "append", spark, rejects=rejects)
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [(t["reject"], t["line"]) for t in told] == [("problem", 2), ("problem", 3)]
    assert told[0]["text"] == "nonsense"


def test_a_dry_run_checks_and_changes_nothing(pair, spark, tmp_path):
    _, other = pair
    before = other.snapshot().version
    source = write_jsonl(tmp_path / "in.jsonl", [World(1).city(1, zip=None), World(1).city(90)])
    outcome = load(other, source, "merge", spark, dry_run=True)
    assert outcome.commit is None
    assert outcome.dry_run
    assert outcome.total_entities == 2
    assert (outcome.changes["node:City"].inserted, outcome.changes["node:City"].updated) == (1, 1)
    with pytest.raises(ConstraintError):
        load(other, source, "append", spark, dry_run=True)
    assert other.snapshot().version == before
    assert data_files(other) == referenced_files(other)


def test_an_empty_input_is_no_commit(pair, spark, tmp_path):
    _, other = pair
    (tmp_path / "empty.jsonl").write_text("\n\n")
    outcome = load(other, tmp_path / "empty.jsonl", "append", spark)
    assert outcome.commit is None
    assert outcome.total_entities == 0


def test_ids_of_edges_that_only_look_alike_are_no_repeats(spark, tmp_path):
    """Into a new table only their hashes are compared, which of a long text know the two ends."""
    ids = [f"https://edges/{middle}/{'0' * 40}" for middle in ("one", "two", "six")]
    people = [{"type": "Person", "data": {"id": name}} for name in "ab"]
    knows = [{"edge": "Knows", "from": "a", "to": "b", "data": {"id": i}} for i in ids]
    source = write_jsonl(tmp_path / "in.jsonl", [*people, *knows])
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        result = load(graph, source, "append", spark)
        assert result.changes["edge:Knows"].inserted == len(ids)
        assert {r["id"] for r in graph.snapshot().rows("Knows").to_dicts()} == set(ids)


def test_the_last_of_repeated_edges_stays_in_a_new_table(spark, tmp_path):
    people = [{"type": "Person", "data": {"id": name}} for name in "ab"]
    knows = [
        {"edge": "Knows", "from": "a", "to": "b", "data": {"id": f"k{n % 3}", "weight": float(n)}}
        for n in range(7)
    ]
    source = write_jsonl(tmp_path / "in.jsonl", [*people, *knows])
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        result = load(graph, source, "merge", spark)
        assert result.changes["edge:Knows"].inserted == 3
        found = {r["id"]: r["weight"] for r in graph.snapshot().rows("Knows").to_dicts()}
        assert found == {"k0": 6.0, "k1": 4.0, "k2": 5.0}
    with (
        omnigraph.init(tmp_path / "strict", SCHEMA) as graph,
        pytest.raises(ConstraintError) as caught,
    ):
        load(graph, source, "append", spark)
    assert caught.value.total == 4


TABLE = pa.table(
    {
        "name": [f"n{i}" for i in range(300)],
        "age": pa.array([i % 90 if i % 7 else None for i in range(300)], pa.int64()),
    }
)


def write_table(path: Path, table: pa.Table) -> Path:
    match path.name.removesuffix(".gz").rpartition(".")[2]:
        case "csv":
            with pa.output_stream(str(path)) as out:  # Packed, if its name says so.
                pcsv.write_csv(table, out)
        case "tsv":
            pcsv.write_csv(table, path, pcsv.WriteOptions(delimiter="\t"))
        case "parquet":
            pq.write_table(table, path, row_group_size=100)
        case "arrow":
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table, max_chunksize=100)
        case "arrows":
            with pa.ipc.new_stream(str(path), table.schema) as writer:
                writer.write_table(table, max_chunksize=100)
        case _:
            raise ValueError(path)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.parquet", "a.arrow", "a.arrows"])
def test_every_format_gives_the_same_graph_and_the_same_problems(name, spark, tmp_path):
    schema = "node Person { name: String @key  age: I32? }"
    good = write_table(tmp_path / name, TABLE)
    wrong = TABLE.set_column(1, "age", pa.array([2**40 if i % 50 == 9 else i for i in range(300)]))
    bad = write_table(tmp_path / f"bad-{name}", wrong)
    graphs, told = [], []
    for engine in ("local", "spark"):
        graph = omnigraph.init(tmp_path / engine, schema)
        options = {"spark": spark} if engine == "spark" else {}
        done = graph.load(good, type="Person", engine=engine, **options)
        rejects = tmp_path / f"{engine}.jsonl"
        with pytest.raises(InputError) as caught:
            graph.load(bad, type="Person", mode="merge", engine=engine, rejects=rejects, **options)
        lines = sorted(rejects.read_text().splitlines())
        told.append((done.total_entities, caught.value.message, caught.value.details, lines))
        graphs.append(content(graph))
        graph.close()
    assert graphs[0] == graphs[1]
    assert told[0] == told[1]
    assert len(told[0][3]) == 6


def test_a_merge_of_equal_rows_makes_no_commit(pair, spark, tmp_path):
    local, other = pair
    world = World(3)
    rows = world.clean(range(30, 60), range(12, 20), 0)
    rows = [r for r in rows if "edge" not in r or r["edge"] == "Road" or "id" in r["data"]]
    first = write_jsonl(tmp_path / "first.jsonl", rows)
    for graph in pair:
        graph.load(first, mode="merge")
    expected = local.load(first, mode="merge")
    dry = load(other, first, "merge", spark, dry_run=True)
    before, files = other.snapshot().version, data_files(other)
    outcome = load(other, first, "merge", spark)
    assert (outcome.commit, dict(outcome.changes)) == (None, {})
    assert dict(outcome.unchanged) == dict(expected.unchanged) == dict(dry.unchanged)
    assert outcome.unchanged_entities > 40
    assert other.snapshot().version == before
    assert data_files(other) == files
    # One differs in a blob, one in a list, some are new and the rest is as it was.
    some = [r for r in rows if r.get("type") == "Person"]
    some[6]["data"]["photo"] = "base64:aGVsbG9v"
    some[7]["data"]["tags"] = [0.5]
    more = [*rows, world.city(70), world.city(71)]
    second = write_jsonl(tmp_path / "second.jsonl", more)
    identity = row_ids(other, "node:Person")
    expected, outcome = local.load(second, mode="merge"), load(other, second, "merge", spark)
    assert dict(outcome.changes) == dict(expected.changes)
    assert outcome.changes["node:Person"].updated == 2
    assert (outcome.changes["node:City"].inserted, outcome.changes["node:City"].updated) == (2, 0)
    assert dict(outcome.unchanged) == dict(expected.unchanged)
    assert content(local) == content(other)
    assert row_ids(other, "node:Person") == identity
