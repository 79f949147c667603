"""Graphs of networkx, GraphML files, and the CSV dumps of Neo4j, read entity by entity.

    a graph, a file, files -> [readers] -> Entities -> tables

All of it is read into memory: these are graphs that such programs held there, too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from omnigraph.errors import InputError
from omnigraph.infer.graphs.entities import Entities, first_of

TYPE_NAMES = ("type", "labels", "label", "kind")
_TRUE = ("true", "1")
_VALUES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("int", "long", "short", "byte", "integer", "serial"), int),
    **dict.fromkeys(
        ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"), int
    ),
    **dict.fromkeys(("float", "double"), float),
    **dict.fromkeys(("boolean", "bool"), lambda text: text.strip().lower() in _TRUE),
}
"""By the words of Neo4j, Kuzu and GraphML in lower case; all others are texts."""


def value_of(text: str, kind: str, place: str) -> Any:
    """A value from its text and the word for its type; nothing for an empty text."""
    if not text:
        return None
    if kind.endswith("[]"):
        parts = text.strip("[]").split("," if text.startswith("[") else ";")
        return [value_of(part.strip(), kind[:-2], place) for part in parts if part.strip()]
    try:
        return _VALUES.get(kind.lower(), str)(text)
    except ValueError:
        raise InputError(f"{place}: '{text}' is no {kind}") from None


# -- networkx ------------------------------------------------------------------------------------


def from_networkx(graph: Any) -> Entities:
    """A graph of networkx. A node that is ``(type, id)`` says its type; else an attribute does."""
    found = Entities("the graph of networkx")

    def key(node: Any) -> tuple[str, str]:
        pair = isinstance(node, tuple) and len(node) == 2 and all(isinstance(n, str) for n in node)
        return (node[0], node[1]) if pair else ("", str(node))

    for node, data in graph.nodes(data=True):
        name, word = first_of(data, TYPE_NAMES)
        space = key(node)[0]
        rest = {str(k): v for k, v in data.items() if k != name and k != "id"}
        found.node(word or space, key(node), rest)
    for start, end, data in graph.edges(data=True):
        name, word = first_of(data, TYPE_NAMES)
        rest = {str(k): v for k, v in data.items() if k != name and k != "id"}
        found.edge(word, key(start), key(end), rest)
    return found


# -- GraphML -------------------------------------------------------------------------------------


def from_graphml(path: Path) -> Entities:
    """A GraphML file; types are what `labels`, `label` or `type` says."""
    place = str(path)
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError as error:
        raise InputError(f"{place}: cannot be read as GraphML: {error}") from None
    except OSError as error:
        raise InputError(f"{place}: {error.strerror or error}") from None
    keys = {
        key.get("id", ""): (
            key.get("attr.name") or key.get("id", ""),
            key.get("attr.type", "string"),
        )
        for key in _all(root, "key")
    }

    def data_of(element: ElementTree.Element) -> dict[str, Any]:
        read = {}
        for data in _all(element, "data"):
            name, kind = keys.get(data.get("key", ""), (data.get("key", ""), "string"))
            read[name] = value_of("".join(data.itertext()), kind, place)
        return read

    found = Entities(place)
    for node in _all(root, "node"):
        data = data_of(node)
        name, word = first_of({"labels": node.get("labels"), **data}, TYPE_NAMES)
        rest = {k: v for k, v in data.items() if k != name}
        found.node(word, ("", node.get("id", "")), rest)
    for edge in _all(root, "edge"):
        data = data_of(edge)
        name, word = first_of({"label": edge.get("label"), **data}, ("label", "type", "kind"))
        rest = {k: v for k, v in data.items() if k != name}
        found.edge(word, ("", edge.get("source", "")), ("", edge.get("target", "")), rest)
    return found


def _all(element: ElementTree.Element, tag: str) -> Iterator[ElementTree.Element]:
    return (e for e in element.iter() if e.tag.rpartition("}")[2] == tag)


# -- Neo4j ---------------------------------------------------------------------------------------


def is_neo4j(header: str) -> bool:
    """Whether a line is the header of a file that `neo4j-admin` imports or a dump holds."""
    return re.search(r":(ID|START_ID)\b", header) is not None


def from_neo4j(paths: Sequence[Path]) -> Entities:
    """CSV files with headers such as ``id:ID(Person),name,age:int,:LABEL``."""
    found = Entities(", ".join(p.name for p in paths))
    tables = [(path, *_rows(path)) for path in paths]
    for path, header, rows in tables:
        fields = [_field(cell) for cell in header]
        for line, row in rows:
            place = f"{path}:{line}"
            cells = _cells(fields, row, place)
            if "ID" in cells:
                key = cells.pop("ID")
                labels = cells.pop("LABEL", (None, None))[1]
                word = first_of({"type": labels}, ("type",))[1] or path.stem
                found.node(word, (key[0], key[1]), _named(cells))
            else:
                start, end = cells.pop("START_ID"), cells.pop("END_ID")
                word = cells.pop("TYPE", (None, None))[1] or path.stem
                found.edge(word, start, end, _named(cells))
    return found


def _field(cell: str) -> tuple[str, str, str]:
    """The name of a column, its type or role, and the space of an id."""
    name, _, kind = cell.strip().partition(":")
    role = re.fullmatch(r"(\w+(?:\[\])?)(?:\((.*)\))?(?:\{.*\})?", kind.strip() or "string")
    if role is None:
        return name, "string", ""
    return name, role[1], role[2] or ""


_ROLES = ("ID", "START_ID", "END_ID", "LABEL", "TYPE")


def _cells(
    fields: Sequence[tuple[str, str, str]], row: Sequence[str], place: str
) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for (name, kind, space), text in zip(fields, row, strict=False):
        if kind in _ROLES:
            cells[kind] = (space, text)
        elif kind != "IGNORE" and name:
            cells[f".{name}"] = value_of(text, kind, place)
    return cells


def _named(cells: Mapping[str, Any]) -> dict[str, Any]:
    return {name[1:]: value for name, value in cells.items() if name.startswith(".")}


def _rows(path: Path) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    rows = ((i, row) for i, row in enumerate(csv.reader(io.StringIO(text)), 1) if row)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: the first line names the columns; there is none")
    return first[1], rows
