"""Results show themselves: as text, in notebooks, to other libraries, as drawings."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import igraph
import networkx
import pandas
import polars
import pyarrow as pa
import pytest

import omnigraph
from omnigraph.tabular import HTML_ROWS_MAX, TEXT_ROWS_MAX, TEXT_WIDTH

EVIL = "<script>alert('x')</script>"
SCHEMA = """
node Person { name: String @key  nick: String?  age: I32?  face: Vector(2)? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32?  @key(@src, @dst) }
edge LivesIn: Person -> City
"""
PEOPLE = [
    {"type": "Person", "data": {"name": "Ada", "nick": EVIL, "age": 36, "face": [0.5, 1.0]}},
    {"type": "Person", "data": {"name": "Bob"}},
    {"type": "City", "data": {"name": "Turin"}},
    {"edge": "Knows", "from": "Ada", "to": "Bob", "data": {"since": 1840}},
    {"edge": "Knows", "from": "Bob", "to": "Bob"},
    {"edge": "LivesIn", "from": "Ada", "to": "Turin", "data": {"id": "l1"}},
]
ALL = "match { $p: Person } return { $p.name, $p.nick, $p.age } order { $p.name }"


@pytest.fixture
def graph(tmp_path: Path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as made:
        made.load(PEOPLE, actor=EVIL, message=EVIL)
        yield made


def many(graph: omnigraph.Graph, count: int) -> omnigraph.QueryResult:
    graph.load({"City": pa.table({"name": [f"c{i:04}" for i in range(count)]})})
    return graph.query("match { $c: City } return { $c.name }")


def test_a_result_prints_as_a_table(graph: omnigraph.Graph):
    assert str(graph.query(ALL)).splitlines() == [
        "p.name  p.nick                       p.age",
        "──────────────────────────────────────────",
        f"Ada     {EVIL}     36",
        "Bob     null                          null",
        "2 rows",
    ]


def test_a_large_result_prints_its_first_rows_and_counts_the_rest(graph: omnigraph.Graph):
    lines = str(many(graph, TEXT_ROWS_MAX + 6)).splitlines()
    assert len(lines) == TEXT_ROWS_MAX + 3
    assert lines[-1] == "… and 7 more rows"


def test_a_wide_result_prints_what_fits(graph: omnigraph.Graph):
    table = pa.table({f"column{i}": ["x" * 50] for i in range(40)})
    lines = str(omnigraph.Rows(table)).splitlines()
    assert max(map(len, lines)) <= TEXT_WIDTH
    assert lines[-2].startswith("… and ") and lines[-2].endswith(" more columns")


def test_nothing_that_is_printed_steers_a_terminal():
    shown = str(omnigraph.Rows(pa.table({"a\x1b[31m": ["b\x1b[0m\nc"]})))
    assert "\x1b" not in shown
    assert len(shown.splitlines()) == 4


def test_odd_columns_are_shown():
    table = pa.table(
        {
            "none": pa.array([None, None]),
            "struct": [{"a": 1}, None],
            "bytes": [b"\x00\xff", None],
            "when": pa.array([1, None], pa.timestamp("us", tz="UTC")),
        }
    )
    for rows in (table, table.slice(0, 0), pa.table({})):
        assert str(omnigraph.Rows(rows))
        assert omnigraph.Rows(rows)._repr_html_().startswith("<table>")


def shown_things(graph: omnigraph.Graph) -> dict[str, object]:
    before = graph.commits()[-1].id
    graph.branches.create("june", description=EVIL)
    graph.load([{"type": "City", "data": {"name": EVIL}}], branch="june")
    view = graph.snapshot()
    return {
        "result": graph.query(ALL),
        "rows": view.rows("Person"),
        "snapshot": view,
        "graph": graph,
        "branches": graph.branches,
        "branch": graph.branches.show("june"),
        "commits": graph.commits(),
        "commit": graph.commits()[0],
        "diff": graph.diff(f"commit:{before}", "main"),
        "plan": graph.schema_plan(SCHEMA + "node Extra { name: String @key }"),
        "explanation": graph.explain(ALL),
        "schema": graph.schema,
        "load": graph.load([], mode="merge"),
        "mutation": graph.mutate('update Person set { age: 1 } where name = "Bob"'),
        "merge": graph.merge("june"),
    }


def test_notebooks_show_everything_and_nothing_of_it_runs(graph: omnigraph.Graph):
    for name, value in shown_things(graph).items():
        shown = value._repr_html_()  # type: ignore[attr-defined]
        assert shown.startswith(("<table", "<p>", "<pre>", "<svg")), name
        assert "<script" not in shown, name
        # Well-formed: what is not escaped would not be.
        ElementTree.fromstring(f"<div>{shown}</div>")


def test_a_notebook_shows_the_first_rows_and_counts_the_rest(graph: omnigraph.Graph):
    shown = many(graph, HTML_ROWS_MAX + 4)._repr_html_()
    assert shown.count("<tr>") == HTML_ROWS_MAX + 1
    assert shown.endswith("<p>… and 5 more rows</p>")


def test_a_diff_is_read_as_far_as_it_is_shown(graph: omnigraph.Graph):
    before = graph.snapshot().commit.id
    many(graph, 1_000)
    diff = graph.diff(f"commit:{before}")
    assert "… and 900 more rows" in diff._repr_html_()
    assert str(diff).endswith("… and 960 more rows")


def test_a_closed_graph_is_shown_without_an_error(graph: omnigraph.Graph):
    graph.close()
    assert "is closed" in graph._repr_html_()


def test_other_libraries_read_results_directly(graph: omnigraph.Graph):
    result = graph.query(ALL)
    commits, branches = graph.commits(), graph.branches
    view, diff = graph.snapshot(), graph.diff(graph.commits()[-1].id)
    for value, rows in (
        (result, 2),
        (view.rows("Knows"), 2),
        (commits, 2),
        (branches, 1),
        (diff, 6),
    ):
        assert pa.table(value).num_rows == rows
        assert polars.DataFrame(value).height == rows
        assert duckdb.sql("select count(*) from value").fetchall() == [(rows,)]
        assert value.to_polars().height == rows
        assert len(value.to_pandas()) == rows
        assert len(value.to_dicts()) == rows
    assert pa.table(view).num_rows == 4
    assert len(pandas.api.interchange.from_dataframe(result)) == 2


@pytest.mark.parametrize(
    ("library", "ask"),
    [
        ("polars", lambda g: g.query(ALL).to_polars()),
        ("pandas", lambda g: g.query(ALL).to_pandas()),
        ("networkx", lambda g: g.snapshot().to_networkx()),
        ("igraph", lambda g: g.snapshot().to_igraph()),
    ],
)
def test_a_library_that_is_missing_is_named(
    graph: omnigraph.Graph, monkeypatch: pytest.MonkeyPatch, library: str, ask
):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(omnigraph.UsageError, match=f"{library} is not installed") as caught:
        ask(graph)
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("pip install ")


def test_a_snapshot_becomes_a_graph_of_networkx(graph: omnigraph.Graph):
    made = graph.snapshot().to_networkx()
    assert isinstance(made, networkx.MultiDiGraph)
    assert set(made.nodes) == {("Person", "Ada"), ("Person", "Bob"), ("City", "Turin")}
    assert made.nodes["Person", "Ada"]["age"] == 36
    edge = list(made["Person", "Ada"]["Person", "Bob"].values())
    assert edge == [{"id": '["Ada","Bob"]', "since": 1840, "type": "Knows"}]
    assert made.has_edge(("Person", "Ada"), ("City", "Turin"), key="l1")
    only = graph.snapshot().to_networkx(types=["Person", "Knows"])
    assert (only.number_of_nodes(), only.number_of_edges()) == (2, 2)
    with pytest.raises(omnigraph.UsageError, match="LivesIn needs the nodes of City"):
        graph.snapshot().to_networkx(types=["Person", "LivesIn"])
    with pytest.raises(omnigraph.UsageError, match="types is a list"):
        graph.snapshot().to_networkx(types="Person")


def test_a_snapshot_becomes_a_graph_of_igraph(graph: omnigraph.Graph):
    made = graph.snapshot().to_igraph()
    assert isinstance(made, igraph.Graph)
    assert (made.vcount(), made.ecount(), made.is_directed()) == (3, 3, True)
    ada = made.vs.find(name="Ada")
    assert (ada["type"], ada["age"]) == ("Person", 36)
    ends = {(made.vs[e.source]["name"], made.vs[e.target]["name"]): e["since"] for e in made.es}
    assert ends == {("Ada", "Bob"): 1840, ("Bob", "Bob"): None, ("Ada", "Turin"): None}


def test_an_empty_graph_becomes_empty_ones(tmp_path: Path):
    with omnigraph.init(tmp_path / "g", SCHEMA) as graph:
        view = graph.snapshot()
        assert view.to_networkx().number_of_nodes() == 0
        assert view.to_igraph().vcount() == 0
        assert view.plot().svg.startswith("<svg")


def test_a_schema_is_text_and_a_drawing(graph: omnigraph.Graph):
    schema = graph.schema
    assert schema == SCHEMA
    assert isinstance(schema, str)
    svg = schema.draw().svg
    words = {t.text for t in ElementTree.fromstring(svg).iter() if t.tag.endswith("text")}
    assert {"Person", "City", "name: String (key)", "Knows (since)", "LivesIn"} <= words
    assert svg == graph.snapshot().schema.draw().svg
    assert pickle.loads(pickle.dumps(schema))._repr_html_() == schema._repr_html_()


def test_a_few_entities_are_drawn_the_same_each_time(graph: omnigraph.Graph):
    drawing = graph.snapshot().plot(("City", "Turin"), hops=2)
    tree = ElementTree.fromstring(drawing.svg)
    words = [t.text for t in tree.iter() if t.tag.endswith("text")]
    assert {"Turin", "Ada", "Bob"} <= set(words)
    assert sorted(w for w in words if w in ("Knows", "LivesIn")) == ["Knows", "Knows", "LivesIn"]
    assert drawing._repr_svg_() == str(graph.snapshot().plot(("City", "Turin"), hops=2))
    near = str(graph.snapshot().plot(("City", "Turin")))
    assert "Ada" in near and "Bob" not in near
    assert "more nodes" in str(graph.snapshot().plot(("City", "Turin"), hops=2, nodes_max=2))
    with pytest.raises(omnigraph.NotFoundError, match="no City with the id 'Rome'"):
        graph.snapshot().plot(("City", "Rome"))
    with pytest.raises(omnigraph.UsageError, match="edge type"):
        graph.snapshot().plot(("Knows", "x"))
