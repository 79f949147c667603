"""What the Spark benchmarks load: people and who knows whom, as Parquet and as JSONL, any number.

    rows -> [spark_data] -> people.parquet, knows.parquet, people.jsonl, knows.jsonl

One row in five is a person. Files are written a slice at a time and are the same on every run, so
that they can be kept and an input of any size can be made in little memory. The schema asks for
every kind of check: a key, a unique property, a range, both ends of every edge, a cardinality.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

SCHEMA = """
node Person { id: String @key  email: String @unique  age: I32  city: String  @range(age, 0..150) }
edge Knows: Person -> Person @card(0..5000) { since: I32 }
"""
SLICE_ROWS = 500_000
_TEXT, _NUMBER = pa.string(), pa.int32()
_PERSON = pa.schema([("id", _TEXT), ("email", _TEXT), ("age", _NUMBER), ("city", _TEXT)])
_KNOWS = pa.schema([("id", _TEXT), ("src", _TEXT), ("dst", _TEXT), ("since", _NUMBER)])


@dataclass(frozen=True, kw_only=True)
class LoadInput:
    """Files of one size."""

    people: int
    knows: int
    folder: Path

    @property
    def rows(self) -> int:
        return self.people + self.knows

    @property
    def parquet(self) -> dict[str, str]:
        return {"Person": str(self.folder / "people.parquet"), "Knows": self._knows("parquet")}

    @property
    def jsonl(self) -> list[str]:
        return [str(self.folder / "people.jsonl"), self._knows("jsonl")]

    def _knows(self, suffix: str) -> str:
        return str(self.folder / f"knows.{suffix}")


def make_input(folder: Path, rows: int, *, people: int | None = None, jsonl: bool) -> LoadInput:
    """The input of this many rows; written unless it is there already."""
    people = rows // 5 if people is None else people
    found = LoadInput(people=people, knows=rows - people, folder=folder / f"{people}-{rows}")
    for suffix in ("parquet", "jsonl") if jsonl else ("parquet",):
        done = found.folder / f"{suffix}.done"
        if not done.exists():
            found.folder.mkdir(parents=True, exist_ok=True)
            for stem, schema, slices in (
                ("people", _PERSON, person_slices(found.people)),
                ("knows", _KNOWS, knows_slices(found.people, found.knows)),
            ):
                path = found.folder / f"{stem}.{suffix}"
                (_write_parquet if suffix == "parquet" else _write_jsonl)(path, schema, slices)
            done.touch()
    return found


def person_slices(people: int) -> Iterator[pa.Table]:
    for first, count in _slices(people):
        rng = np.random.default_rng([7, first])
        numbers = np.arange(first, first + count)
        columns = [
            named("p", numbers),
            joined("mail", numbers, "@example.org"),
            pa.array(rng.integers(16, 90, count), _NUMBER),
            named("city", rng.integers(0, 200, count)),
        ]
        yield pa.Table.from_arrays(columns, schema=_PERSON)


def knows_slices(people: int, knows: int) -> Iterator[pa.Table]:
    """Some people are far better known than others; nobody knows too many for the cardinality."""
    for first, count in _slices(knows):
        rng = np.random.default_rng([8, first])
        columns = [
            named("k", np.arange(first, first + count)),
            named("p", rng.integers(0, people, count)),
            named("p", (people * rng.random(count) ** 3).astype(np.int64)),
            pa.array(rng.integers(1990, 2026, count), _NUMBER),
        ]
        yield pa.Table.from_arrays(columns, schema=_KNOWS)


def named(prefix: str, numbers: np.ndarray) -> pa.Array:
    return joined(prefix, numbers, "")


def joined(prefix: str, numbers: np.ndarray, suffix: str) -> pa.Array:
    return pc.binary_join_element_wise(prefix, pa.array(numbers).cast(_TEXT), suffix, "")


def _slices(rows: int) -> Iterator[tuple[int, int]]:
    for first in range(0, rows, SLICE_ROWS):
        yield first, min(SLICE_ROWS, rows - first)


def _write_parquet(path: Path, schema: pa.Schema, slices: Iterator[pa.Table]) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for table in slices:
            writer.write_table(table)


def _write_jsonl(path: Path, schema: pa.Schema, slices: Iterator[pa.Table]) -> None:
    with path.open("wb") as out:
        for table in slices:
            lines = _person_lines(table) if schema is _PERSON else _knows_lines(table)
            for chunk in lines.chunks:
                out.write("".join(chunk.to_pylist()).encode())


def _person_lines(table: pa.Table) -> pa.ChunkedArray:
    id_, email, age, city = (column.cast(_TEXT) for column in table.columns)
    return pc.binary_join_element_wise(
        *('{"type":"Person","data":{"id":"', id_, '","email":"', email, '","age":', age),
        *(',"city":"', city, '"}}\n', ""),
    )


def _knows_lines(table: pa.Table) -> pa.ChunkedArray:
    id_, src, dst, since = (column.cast(_TEXT) for column in table.columns)
    return pc.binary_join_element_wise(
        *('{"edge":"Knows","from":"', src, '","to":"', dst, '","data":{"id":"', id_),
        *('","since":', since, "}}\n", ""),
    )
