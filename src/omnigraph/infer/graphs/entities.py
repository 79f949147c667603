"""Nodes and edges of another graph, put into a table a type.

    networkx, GraphML, Neo4j, Kuzu -> nodes, edges -> [entities] -> tables, edge tables

Types of edges join one type of nodes with one other here: an edge type that joins several becomes
several, named by their ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.errors import InputError

Key = tuple[str, str]
"""The space that an id is unique in, and the id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRows:
    """Rows of one edge type, with ``src`` and ``dst``, and the node types at its ends."""

    rows: pa.Table
    source: str
    target: str


class Entities:
    """A graph as it is read, entity by entity; ``place`` is what messages call it."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.nodes: dict[Key, tuple[str, str, Mapping[str, Any]]] = {}
        """By key: the type, the id and the properties."""
        self.edges: list[tuple[str, Key, Key, Mapping[str, Any]]] = []

    def node(self, type_name: str, key: Key, properties: Mapping[str, Any]) -> None:
        """Add a node."""
        if key in self.nodes:
            raise InputError(f"{self.place}: the id '{key[1]}' occurs twice")
        self.nodes[key] = (_type(type_name, "Node"), key[1], properties)

    def edge(self, type_name: str, start: Key, end: Key, properties: Mapping[str, Any]) -> None:
        """Add an edge."""
        self.edges.append((_type(type_name, "Edge"), start, end, properties))

    def tables(self) -> dict[str, pa.Table | EdgeRows]:
        """A table a type: nodes with ``id``, edges with ``src`` and ``dst``."""
        nodes: dict[str, list[dict[str, Any]]] = {}
        for name, key, properties in self.nodes.values():
            nodes.setdefault(name, []).append({**_other_than("id", properties), "id": key})
        edges: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for name, start, end, properties in self.edges:
            for key in (start, end):
                if key not in self.nodes:
                    raise InputError(f"{self.place}: an edge names the node '{key[1]}': not there")
            ends = (self.nodes[start], self.nodes[end])
            row = {**_other_than("id", _other_than("src", _other_than("dst", properties)))}
            row |= {"src": ends[0][1], "dst": ends[1][1]}
            edges.setdefault((name, ends[0][0], ends[1][0]), []).append(row)
        found: dict[str, pa.Table | EdgeRows] = {n: _table(rows) for n, rows in nodes.items()}
        folded = [name.lower() for name, _, _ in edges]
        for (name, source, target), rows in edges.items():
            alone = folded.count(name.lower()) == 1 and name not in found
            title = name if alone else f"{source}{name}{target}"
            found[title] = EdgeRows(rows=_table(rows), source=source, target=target)
        if not found:
            raise InputError(f"{self.place}: there are no nodes")
        return found


def _other_than(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties, of which one would stand in the way of a column of ours."""
    return {(f"{k}_" if k == name else k): v for k, v in properties.items() if v is not None}


def _type(name: str, default: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    if len(words) > 1 or name.isupper():  # LIVES_IN becomes LivesIn.
        words = [word.lower() if word.isupper() else word for word in words]
    title = "".join(word[0].upper() + word[1:] for word in words)
    return title if title[:1].isalpha() else default


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = dict.fromkeys(["id"] if "id" in rows[0] else ["src", "dst"])
    names |= dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: column_of_values([row.get(name) for row in rows]) for name in names})


def column_of_values(values: Sequence[Any]) -> pa.Array:
    """A column of plain values."""
    try:
        found = pa.array(values)
    except (pa.ArrowException, OverflowError):
        found = None
    nested = found is not None and (
        pa.types.is_struct(found.type)
        or pa.types.is_map(found.type)
        or pa.types.is_null(found.type)
    )
    # What has no type of its own, or several, is kept as text.
    return pa.array([_text(v) for v in values], pa.string()) if found is None or nested else found


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, default=str) if isinstance(value, (dict, list, tuple)) else str(value)


def first_of(properties: Mapping[str, Any], names: Iterable[str]) -> tuple[str | None, str]:
    """The first of these properties that names a type, and what it says; else nothing."""
    for name in names:
        value = properties.get(name)
        if isinstance(value, str) and value.strip(": "):
            return name, re.split(r"[:;,]", value.strip(": "))[0]
    return None, ""
