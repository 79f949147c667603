"""The engines that answer the benchmark's questions: one class each, one process each.

An engine builds its database from the files once, opens it, and has one method a question that it
can answer. The method is what is timed, from the question's text to a whole result; ``rows`` then
turns that result into plain tuples, off the clock. Each peer is asked in the way that is fastest
for it. Engines are imported when they are built: Kuzu and Ladybug, its fork, define the same
symbols and never share a process.
"""

from __future__ import annotations

import gc
import importlib
import importlib.metadata
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from social import AGE_MIN, HOPS_MAX, Files, Rows

THREADS = os.cpu_count() or 1


class Unavailable(Exception):
    """This engine cannot run here; the text says why."""


class Engine:
    """A database in ``place`` (private to the run), or in the files' folder (kept for the next)."""

    package = ""

    def __init__(self, files: Files, place: Path) -> None:
        try:
            self.module: Any = importlib.import_module(self.package)
        except ImportError as e:
            raise Unavailable(f"{self.package} is not installed (make bench installs it)") from e
        self.files = files
        self.place = place

    def open(self) -> None:
        """Build the database where it is missing, and open it."""
        raise NotImplementedError

    def rows(self, result: Any) -> Rows:
        return [tuple(row.values()) for row in result.to_pylist()]

    def rest(self) -> None:
        """Clean up after a question, off the clock."""

    def close(self) -> None:
        """Let go of files and threads."""

    def kept(self, suffix: str, build: Callable[[Path], None]) -> Path:
        """A database that later runs of this version use again; half a build is never kept."""
        version = importlib.metadata.version(self.package)
        path = self.files.folder / f"{self.package}-{version}{suffix}"
        if not path.exists():
            scratch = path.with_name(f"making-{os.getpid()}-{path.name}")
            build(scratch)
            scratch.rename(path)
        return path


class Omnigraph(Engine):
    """Ours: the text is parsed, checked, planned and run by every call."""

    package = "omnigraph"
    HOP = (
        "query hop($id: String) {{ match {{ $a: Person {{ id: $id }} {steps} }} return {{ {n} }} }}"
    )
    HOP1 = HOP.format(steps="$a knows $b", n="count(distinct $b) as n")
    HOP2 = HOP.format(steps="$a knows $b $b knows $c", n="count(distinct $c) as n")
    HOP3 = HOP.format(steps="$a knows $b $b knows $c $c knows $d", n="count(distinct $d) as n")
    REACH = HOP.format(steps=f"$a knows{{1,{HOPS_MAX}}} $b", n="count($b) as n")
    LOOKUP = """
        query person($id: String) {
            match { $p: Person { id: $id } }
            return { $p.id $p.name $p.age $p.city }
        }"""
    FILTER = f"""
        query elders($city: String) {{
            match {{ $p: Person  $p.age > {AGE_MIN} and $p.city = $city }}
            return {{ $p.id $p.name }}
        }}"""
    GROUP = "match { $p: Person } return { $p.city count($p) as n avg($p.age) as age }"
    ALL2 = "match { $a: Person $a knows $b $b knows $c } return { count($c) as n }"

    def open(self) -> None:
        if not hasattr(self.module.Graph, "query"):
            raise Unavailable("this version of omnigraph has no Graph.query")
        self.path = self.place / "graph"
        if not self.path.exists():
            # Built in every run: it takes a second, and what is measured is the code of today.
            schema = importlib.import_module("dataset").SCHEMA
            with self.module.init(self.path, schema) as graph:
                graph.load(self.files.tables())
        self.graph = self.module.open(self.path)
        self.reopened: Any = None

    def lookup(self, key: str) -> pa.Table:
        return self.graph.query(self.LOOKUP, params={"id": key}).to_arrow()

    def filter(self, city: str) -> pa.Table:
        return self.graph.query(self.FILTER, params={"city": city}).to_arrow()

    def group(self, _: str) -> pa.Table:
        return self.graph.query(self.GROUP).to_arrow()

    def hop1(self, seed: str) -> pa.Table:
        return self.graph.query(self.HOP1, params={"id": seed}).to_arrow()

    def hop2(self, seed: str) -> pa.Table:
        return self.graph.query(self.HOP2, params={"id": seed}).to_arrow()

    def hop3(self, seed: str) -> pa.Table:
        return self.graph.query(self.HOP3, params={"id": seed}).to_arrow()

    def reach4(self, seed: str) -> pa.Table:
        return self.graph.query(self.REACH, params={"id": seed}).to_arrow()

    def all2(self, _: str) -> pa.Table:
        return self.graph.query(self.ALL2).to_arrow()

    def first(self, seed: str) -> pa.Table:
        """Open the graph and take one step: nothing of an earlier handle is left."""
        self.reopened = self.module.open(self.path)
        return self.reopened.query(self.HOP1, params={"id": seed}).to_arrow()

    def commit(self, edge: tuple[str, str]) -> pa.Table:
        """One edge, published."""
        src, dst = edge
        record = {"edge": "Knows", "from": src, "to": dst, "data": {"since": 2026}}
        self.graph.load([record])
        return pa.table({})

    def rest(self) -> None:
        if self.reopened is not None:
            self.reopened.close()
            self.reopened = None
            gc.collect()

    def close(self) -> None:
        self.graph.close()


class RawLance(Engine):
    """The floor of storage: pylance and pyarrow on the same columns, without a graph."""

    package = "lance"

    def open(self) -> None:
        self.paths: dict[str, str] = {}
        for name in ("Person", "Knows"):
            path = self.place / f"raw-{name}"
            self.paths[name] = str(path)
            if not path.exists():
                table = self.files.table(name)
                self.module.write_dataset(table, str(path), data_storage_version="2.2")
        self.person = self.module.dataset(self.paths["Person"])
        self.person.create_scalar_index("id", "BTREE")
        self.fresh: Any = None

    def lookup(self, key: str) -> pa.Table:
        return self.person.scanner(filter=f"id = '{key}'").to_table()

    def filter(self, city: str) -> pa.Table:
        condition = f"age > {AGE_MIN} AND city = '{city}'"
        return self.person.scanner(columns=["id", "name"], filter=condition).to_table()

    def group(self, _: str) -> pa.Table:
        table = self.person.to_table(columns=["city", "age"])
        return table.group_by("city").aggregate([([], "count_all"), ("age", "mean")])

    def first(self, seed: str) -> pa.Table:
        """Open, scan the keys and both ends of the edges, build the adjacency, take one step."""
        person = self.module.dataset(self.paths["Person"])
        knows = self.module.dataset(self.paths["Knows"])
        self.fresh = Adjacency(person.to_table(columns=["id"]), knows.to_table(["src", "dst"]))
        start = pc.index(self.fresh.keys, seed).as_py()
        return pa.table({"n": [len(self.fresh.ends(np.array([start])))]})

    def rest(self) -> None:
        if self.fresh is not None:
            self.fresh = None
            gc.collect()


class Adjacency:
    """Compressed rows of who knows whom, by row number of the person."""

    def __init__(self, person: pa.Table, knows: pa.Table) -> None:
        self.keys = person["id"].combine_chunks()
        src = pc.index_in(knows["src"], value_set=self.keys).to_numpy()
        self.dst = pc.index_in(knows["dst"], value_set=self.keys).to_numpy()
        self.degree = np.bincount(src, minlength=len(self.keys))
        self.first = np.zeros(len(self.keys) + 1, np.int64)
        np.cumsum(self.degree, out=self.first[1:])
        self.adjacent = self.dst[np.argsort(src, kind="stable")]

    def ends(self, people: np.ndarray) -> np.ndarray:
        """Distinct people one step away."""
        counts = self.degree[people]
        before = np.concatenate([[0], np.cumsum(counts)[:-1]])
        places = np.arange(counts.sum()) + np.repeat(self.first[people] - before, counts)
        return np.unique(self.adjacent[places])


class Numpy(Engine):
    """The floor of traversal: the adjacency in memory, no query, no storage."""

    package = "numpy"

    def open(self) -> None:
        self.graph = Adjacency(self.files.table("Person"), self.files.table("Knows"))
        self.number = {key: n for n, key in enumerate(self.graph.keys.to_pylist())}

    def rows(self, result: Any) -> Rows:
        return [(int(result),)]

    def walk(self, seed: str, hops: int) -> int:
        ends = np.array([self.number[seed]])
        for _ in range(hops):
            ends = self.graph.ends(ends)
        return len(ends)

    def hop1(self, seed: str) -> int:
        return self.walk(seed, 1)

    def hop2(self, seed: str) -> int:
        return self.walk(seed, 2)

    def hop3(self, seed: str) -> int:
        return self.walk(seed, 3)

    def reach4(self, seed: str) -> int:
        start = self.number[seed]
        seen = np.zeros(len(self.number), bool)
        frontier = np.array([start])
        for _ in range(HOPS_MAX):
            ends = self.graph.ends(frontier)
            frontier = ends[~seen[ends]]
            seen[ends] = True
        seen[start] = False
        return seen.sum()

    def all2(self, _: str) -> int:
        return self.graph.degree[self.graph.dst].sum()


class Kuzu(Engine):
    """Each question is prepared once, for a text would be planned anew by every call."""

    package = "kuzu"
    STEP = "-[:Knows]->(:Person)"

    def open(self) -> None:
        path = self.kept(".db", self.build)
        self.database = self.module.Database(str(path), read_only=True)
        self.connection = self.module.Connection(self.database, num_threads=THREADS)
        self.plans: dict[str, Any] = {}

    def build(self, path: Path) -> None:
        database = self.module.Database(str(path))
        connection = self.module.Connection(database)
        person, knows = self.files.path("Person"), self.files.path("Knows")
        for statement in (
            "CREATE NODE TABLE Person"
            "(id STRING, name STRING, age INT32, city STRING, PRIMARY KEY(id))",
            "CREATE REL TABLE Knows(FROM Person TO Person, id STRING, since INT32)",
            f"COPY Person FROM '{person}'",
            f"COPY Knows FROM (LOAD FROM '{knows}' RETURN src, dst, id, since)",
            "CHECKPOINT",
        ):
            connection.execute(statement)
        connection.close()
        database.close()

    def ask(self, text: str, **parameters: str) -> list[list[Any]]:
        if text not in self.plans:
            self.plans[text] = self.connection.prepare(text, parameters)
        return self.connection.execute(self.plans[text], parameters).get_all()

    def rows(self, result: list[list[Any]]) -> Rows:
        return [tuple(row) for row in result]

    def lookup(self, key: str) -> Any:
        return self.ask("MATCH (p:Person {id: $id}) RETURN p.id, p.name, p.age, p.city", id=key)

    def filter(self, city: str) -> Any:
        text = f"MATCH (p:Person) WHERE p.age > {AGE_MIN} AND p.city = $city RETURN p.id, p.name"
        return self.ask(text, city=city)

    def group(self, _: str) -> Any:
        return self.ask("MATCH (p:Person) RETURN p.city, count(*), avg(p.age)")

    def walk(self, seed: str, hops: int) -> Any:
        steps = self.STEP * (hops - 1) + "-[:Knows]->(z:Person)"
        return self.ask(f"MATCH (a:Person {{id: $s}}){steps} RETURN count(DISTINCT z.id)", s=seed)

    def hop1(self, seed: str) -> Any:
        return self.walk(seed, 1)

    def hop2(self, seed: str) -> Any:
        return self.walk(seed, 2)

    def hop3(self, seed: str) -> Any:
        return self.walk(seed, 3)

    def reach4(self, seed: str) -> Any:
        text = (
            f"MATCH (a:Person {{id: $s}})-[:Knows* SHORTEST 1..{HOPS_MAX}]->(z:Person) "
            "WHERE z.id <> $s RETURN count(DISTINCT z.id)"
        )
        return self.ask(text, s=seed)

    def all2(self, _: str) -> Any:
        return self.ask(
            "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) RETURN count(*)"
        )

    def close(self) -> None:
        self.plans.clear()
        self.connection.close()
        self.database.close()


class Ladybug(Kuzu):
    """The living fork of Kuzu, with the same interface."""

    package = "ladybug"


class DuckDb(Engine):
    """Relational: joins for steps, a recursive query for reach."""

    package = "duckdb"

    def open(self) -> None:
        path = self.kept(".db", self.build)
        settings = {"threads": THREADS}
        self.connection = self.module.connect(str(path), read_only=True, config=settings)

    def build(self, path: Path) -> None:
        with self.module.connect(str(path)) as connection:
            for name in ("Person", "Knows"):
                source = self.files.path(name)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{source}'")
            connection.execute("CREATE UNIQUE INDEX person_id ON Person(id)")
            connection.execute("CREATE INDEX knows_src ON Knows(src)")
            connection.execute("CHECKPOINT")

    def ask(self, text: str, *parameters: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(text, parameters).fetchall()

    def rows(self, result: list[tuple[Any, ...]]) -> Rows:
        return result

    def lookup(self, key: str) -> Any:
        return self.ask("SELECT id, name, age, city FROM Person WHERE id = ?", key)

    def filter(self, city: str) -> Any:
        return self.ask(f"SELECT id, name FROM Person WHERE age > {AGE_MIN} AND city = ?", city)

    def group(self, _: str) -> Any:
        return self.ask("SELECT city, count(*), avg(age) FROM Person GROUP BY city")

    def hop1(self, seed: str) -> Any:
        return self.ask("SELECT count(DISTINCT dst) FROM Knows WHERE src = ?", seed)

    def hop2(self, seed: str) -> Any:
        return self.ask(
            "SELECT count(DISTINCT b.dst) FROM Knows a JOIN Knows b ON a.dst = b.src "
            "WHERE a.src = ?",
            seed,
        )

    def hop3(self, seed: str) -> Any:
        return self.ask(
            "SELECT count(DISTINCT c.dst) FROM Knows a JOIN Knows b ON a.dst = b.src "
            "JOIN Knows c ON b.dst = c.src WHERE a.src = ?",
            seed,
        )

    def reach4(self, seed: str) -> Any:
        return self.ask(
            "WITH RECURSIVE reached(person, distance) AS (SELECT ?::VARCHAR, 0 UNION "
            "SELECT k.dst, distance + 1 FROM reached JOIN Knows k ON k.src = person "
            f"WHERE distance < {HOPS_MAX}) "
            "SELECT count(DISTINCT person) FROM reached WHERE person <> ?",
            seed,
            seed,
        )

    def all2(self, _: str) -> Any:
        return self.ask("SELECT count(*) FROM Knows a JOIN Knows b ON a.dst = b.src")

    def close(self) -> None:
        self.connection.close()


ENGINES: dict[str, type[Engine]] = {
    "omnigraph": Omnigraph,
    "lance": RawLance,
    "numpy": Numpy,
    "ladybug": Ladybug,
    "kuzu": Kuzu,
    "duckdb": DuckDb,
}
