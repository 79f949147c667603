"""The benchmark graph as files, what is asked of it, and the right answers by plain numpy.

    dataset.tables ─▶ [files, questions, reference answers] ─▶ queries.py asks every engine

An answer is a list of tuples, and the same for every engine whatever its own result looks like.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import dataset

Rows = list[tuple[Any, ...]]

CITIES = 20
KEYS = 200
SEEDS = 10
AGE_MIN = 60
HOPS_MAX = 4


@dataclass(frozen=True, slots=True)
class Files:
    """One parquet file a type, in a folder that names the generator it came from."""

    folder: Path

    def path(self, type_name: str) -> Path:
        return self.folder / f"{type_name}.parquet"

    def table(self, type_name: str) -> pa.Table:
        return pq.read_table(self.path(type_name))

    def tables(self) -> dict[str, pa.Table]:
        return {name: self.table(name) for name in ("Person", "Document", "Knows", "Mentions")}


def files(size: str, root: Path) -> Files:
    """The files of one size, made on first use. Another generator makes another folder."""
    recipe = hashlib.sha256(Path(dataset.__file__).read_bytes()).hexdigest()[:8]
    found = Files(root / f"social-{size}-{recipe}")
    if not found.folder.exists():
        scratch = found.folder.with_suffix(".making")
        scratch.mkdir(parents=True, exist_ok=True)
        for name, table in dataset.tables(size).items():
            pq.write_table(table, scratch / f"{name}.parquet")
        scratch.rename(found.folder)
    return found


class Reference:
    """The right answers. Edges that a run adds are told to it, and count in walks from then on."""

    def __init__(self, source: Files) -> None:
        person, knows = source.table("Person"), source.table("Knows")
        self._name = person["name"].to_pylist()
        self._age = person["age"].to_numpy()
        self._city = np.array(person["city"].to_pylist())
        src, self._dst = _numbers(knows["src"]), _numbers(knows["dst"])
        self.people = person.num_rows
        self._degree = np.bincount(src, minlength=self.people)
        self._first = np.concatenate([[0], np.cumsum(self._degree)])
        self._adjacent = self._dst[np.argsort(src, kind="stable")]
        self._added: dict[int, list[int]] = {}
        # Questions come from a stream of their own: the graph does not change with their number.
        rng = np.random.default_rng(11)
        middling = np.flatnonzero((self._degree >= 3) & (self._degree <= 8))
        self.seeds = [f"p{n}" for n in rng.choice(middling, SEEDS, replace=False)]
        self.keys = [f"p{n}" for n in rng.integers(0, self.people, KEYS)]
        self.cities = [f"city{n}" for n in rng.choice(200, CITIES, replace=False)]

    def add(self, src: str, dst: str) -> None:
        """An edge that the graph has got, and did not have before."""
        self._added.setdefault(int(src[1:]), []).append(int(dst[1:]))

    def strangers(self, key: str, count: int) -> list[str]:
        """People that this person does not know, and is not."""
        near = {int(key[1:]), *self._neighbours({int(key[1:])})}
        return [f"p{n}" for n in range(count + len(near)) if n not in near][:count]

    def answer(self, workload: str, argument: str) -> Rows:
        if workload == "lookup":
            n = int(argument[1:])
            return [(argument, self._name[n], int(self._age[n]), str(self._city[n]))]
        if workload == "filter":
            found = np.flatnonzero((self._age > AGE_MIN) & (self._city == argument))
            return [(f"p{n}", self._name[n]) for n in found.tolist()]
        if workload == "group":
            return [
                (str(city), int((self._city == city).sum()), self._age[self._city == city].mean())
                for city in np.unique(self._city)
            ]
        if workload == "all2":
            return [(int(self._degree[self._dst].sum()),)]
        if workload == "reach4":
            return [(self._reach(int(argument[1:])),)]
        hops = {"hop1": 1, "hop2": 2, "hop3": 3, "first": 1}[workload]
        ends = {int(argument[1:])}
        for _ in range(hops):
            ends = self._neighbours(ends)
        return [(len(ends),)]

    def _reach(self, start: int) -> int:
        seen, frontier = {start}, {start}
        for _ in range(HOPS_MAX):
            frontier = self._neighbours(frontier) - seen
            seen |= frontier
        return len(seen) - 1

    def _neighbours(self, people: set[int]) -> set[int]:
        found: set[int] = set()
        for n in people:
            found.update(self._adjacent[self._first[n] : self._first[n + 1]].tolist())
            found.update(self._added.get(n, ()))
        return found


def same(given: Rows, expected: Rows) -> bool:
    """Equal as bags of rows; floats up to the order in which they were summed."""
    if len(given) != len(expected):
        return False
    pairs = zip(sorted(given), sorted(expected), strict=True)
    return all(
        len(g) == len(e) and all(_equal(x, y) for x, y in zip(g, e, strict=True)) for g, e in pairs
    )


def _equal(given: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return isinstance(given, float) and math.isclose(given, expected, rel_tol=1e-9)
    return type(given) is type(expected) and given == expected


def _numbers(keys: pa.ChunkedArray) -> np.ndarray:
    """The numbers in keys like ``p17``: the generator's own, so that no engine's index is used."""
    return pc.utf8_slice_codeunits(keys, 1).cast(pa.int64()).to_numpy()
