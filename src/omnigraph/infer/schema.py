"""Tables put into a schema: keys, enums, foreign keys as edges; with what a load needs to know.

    tables -> [schema] -> Inferred: `.pg` text with comments, sources and columns for a load

A guess is marked as one, in a comment beside it. What comes out passes `schema check`, and the same
tables load with it: `graph.load(inferred.source, mapping=inferred.mapping)`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.arrow.sets import among
from omnigraph.errors import InputError
from omnigraph.infer.columns import ColumnFacts
from omnigraph.infer.tables import GivenTable, Loading, given_tables
from omnigraph.schema.compile import compile_schema
from omnigraph.schema.words import RESERVED_EDGE_NAMES, RESERVED_NAMES

_KEY_NAMES = ("id", "key", "code", "uid", "uuid")
_ENDS = (("src", "dst"), ("from", "to"), ("source", "target"), ("start", "end"))


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredType:
    """A node or edge type, and the table that it is loaded from."""

    name: str
    kind: str
    table: GivenTable
    columns: Mapping[str, str]
    """The column of each property, and of the ends of an edge."""
    lines: tuple[str, ...]
    """Its declaration."""

    @property
    def is_mapped(self) -> bool:
        """Whether a load has to be told which column is what."""
        same = all(prop == column for prop, column in self.columns.items())
        return not same or len(self.columns) != len(self.table.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """A schema that was inferred from tables. Prints as `.pg` text."""

    types: tuple[InferredType, ...]
    schema: str
    """The text, with comments."""

    @property
    def source(self) -> Any:
        """What ``graph.load`` takes to load the tables."""
        if self._are_records:
            return list(dict.fromkeys(t.table.source for t in self.types))
        return {t.name: t.table.source for t in self.types}

    @property
    def mapping(self) -> dict[str, dict[str, str]]:
        """Which column fills which property, for types where the names differ."""
        if self._are_records:  # They name their properties.
            return {}
        return {t.name: dict(t.columns) for t in self.types if t.is_mapped}

    @property
    def _are_records(self) -> bool:
        return any(t.table.loading is Loading.RECORDS for t in self.types)

    def __str__(self) -> str:
        return self.schema

    def to_dict(self) -> dict[str, Any]:
        """As ``schema infer --json`` shows it."""
        return {
            "schema": self.schema,
            "types": [
                {"name": t.name, "kind": t.kind, "source": t.table.label, "rows": t.table.rows}
                for t in self.types
            ],
            "mapping": self.mapping,
            "load": list(_load_words(self.types)),
        }


def infer_schema(source: Any) -> Inferred:
    """A schema for tables: files, DataFrames, or a mapping of type names to them; for JSONL.

    Also for a graph of networkx, a GraphML file, the CSV files of a Neo4j dump, and the folder of a
    Kuzu export: ``source`` of what is returned then holds their tables.
    """
    tables = given_tables(source)
    keys = {table.name: _key(table) for table in tables}
    nodes = {
        t.name: t for t in tables if keys[t.name] is not None and t.ends is None and not t.is_edge
    }
    edges: list[InferredType] = []
    declared: list[InferredType] = []
    for table in tables:
        if table.ends is not None:
            edges.append(_edge(table, ("src", table.ends[0]), ("dst", table.ends[1])))
            continue
        links = _links(table, nodes, keys)
        ends = _two_ends(table, links, keys[table.name])
        if ends is not None:
            edges.append(_edge(table, *ends))
            continue
        if table.is_edge:
            raise InputError(
                f"{table.label}: edges of the type {table.name} name nodes that are not there, or "
                "of several types",
                hint="an edge type joins one node type with one other, by their keys",
            )
        declared.append(_node(table, keys[table.name]))
        for column, target in links.items():
            edges += _link(table, keys[table.name], column, target, taken=[*nodes, *_names(edges)])
    types = (*declared, *edges)
    text = _text(types)
    compile_schema(text, source_name="inferred.pg")
    return Inferred(types=types, schema=text)


def _names(types: Sequence[InferredType]) -> list[str]:
    return [t.name for t in types]


# -- keys and links ------------------------------------------------------------------------------


def _key(table: GivenTable) -> ColumnFacts | None:
    """The column that identifies the rows, if its name says so or it comes first."""
    candidates = [c for c in table.columns if c.identifies]
    own = _snake(table.name)
    by_name = {_snake(column.name): column for column in reversed(candidates)}
    wanted = ("id", f"{own}_id", own, f"{own}_code", f"{own}_key", *_KEY_NAMES)
    first = table.columns[0]
    found = [by_name[name] for name in wanted if name in by_name]
    found += [first] if first.identifies and not _is_end(first.name) else []
    found += [by_name[name] for name in (f"{own}_name", "name") if name in by_name]
    return found[0] if found else None


def _links(
    table: GivenTable, nodes: Mapping[str, GivenTable], keys: Mapping[str, ColumnFacts | None]
) -> dict[str, str]:
    """Columns whose values are all keys of a table that their names speak of, by column."""
    found: dict[str, str] = {}
    for column in table.columns:
        if not len(column.texts) or column == keys[table.name]:
            continue
        for name in nodes:
            key = keys[name]
            if key is not None and _speaks_of(column.name, name, key) and _within(column, key):
                found[column.name] = name
                break
    return found


def _speaks_of(column: str, type_name: str, key: ColumnFacts) -> bool:
    words = _snake(column)
    own = _snake(type_name)
    last = own.rpartition("_")[2]
    return own in words or last in words.split("_") or _is_end(column) or words == _snake(key.name)


def _is_end(column: str) -> bool:
    return any(word in end for word in _snake(column).split("_") for end in _ENDS)


def _within(column: ColumnFacts, key: ColumnFacts) -> bool:
    return bool(among(column.texts, key.texts).true_count == len(column.texts))


def _two_ends(
    table: GivenTable, links: Mapping[str, str], key: ColumnFacts | None
) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """The two columns that make a table one of edges, with the types at both ends."""
    full = {c.name for c in table.columns if not c.nulls}
    ends = [(column, target) for column, target in links.items() if column in full]
    marked = [end for end in ends if _is_end(end[0])]
    chosen = marked if len(marked) == 2 else ends
    # Rows with an identity of their own are things that have links, unless ends are called so.
    if len(chosen) != 2 or (key is not None and chosen is not marked):
        return None
    first, second = sorted(chosen, key=lambda end: _second(end[0]))
    return first, second


def _second(column: str) -> bool:
    words = _snake(column).split("_")
    return any(end in words for _, end in _ENDS)


# -- declarations --------------------------------------------------------------------------------


def _node(table: GivenTable, key: ColumnFacts | None) -> InferredType:
    names = _property_names(table, table.columns, frozenset())
    lines: list[str] = []
    for column in table.columns:
        name = names.get(column.name)
        if name is None:
            lines.append(f"  // {_comment(column.name)}: no type of the schema holds it")
            continue
        mark = " @key" if column is key else ""
        lines.append(_declaration(name, column, mark))
    if key is None:
        lines.append("  // No column has a value of its own in every row: entities get fresh ids.")
    return InferredType(
        name=table.name,
        kind="node",
        table=table,
        columns={name: column for column, name in names.items()},
        lines=(f"node {table.name} {{", *lines, "}"),
    )


def _edge(table: GivenTable, start: tuple[str, str], end: tuple[str, str]) -> InferredType:
    rest = [c for c in table.columns if c.name not in (start[0], end[0])]
    names = _property_names(table, rest, RESERVED_EDGE_NAMES)
    lines = [_declaration(names[c.name], c, "") for c in rest if c.name in names]
    said = f"// From {_comment(start[0])} to {_comment(end[0])}."
    return InferredType(
        name=table.name,
        kind="edge",
        table=table,
        columns={
            "src": start[0],
            "dst": end[0],
            **{name: column for column, name in names.items()},
        },
        lines=(said, f"edge {table.name}: {start[1]} -> {end[1]} {{", *lines, "}"),
    )


def _link(
    table: GivenTable, key: ColumnFacts | None, column: str, target: str, *, taken: Sequence[str]
) -> list[InferredType]:
    """An edge type for a foreign key: loaded from the same table once more."""
    facts = next(c for c in table.columns if c.name == column)
    if key is None or facts.nulls or not facts.rows:
        return []
    name = f"{table.name}{_pascal(column.removesuffix('_id').removesuffix('_code'))}"
    name = f"{name}Link" if name in taken else name
    said = f"// {table.name}.{_comment(column)} holds keys of {target}."
    return [
        InferredType(
            name=name,
            kind="edge",
            table=table,
            columns={"src": key.name, "dst": column},
            lines=(said, f"edge {name}: {table.name} -> {target} {{", "  @key(@src, @dst)", "}"),
        )
    ]


def _declaration(name: str, column: ColumnFacts, mark: str) -> str:
    words = column.enum if not mark else ()
    kind = f"enum({', '.join(words)})" if words else column.type
    optional = "?" if column.nulls or not column.rows else ""
    note = "" if name == column.name else f"  // from the column {_comment(column.name)}"
    return f"  {name}: {kind}{optional}{mark}{note}"


def _property_names(
    table: GivenTable, columns: Sequence[ColumnFacts], reserved: frozenset[str]
) -> dict[str, str]:
    """A property for every column that has a type, by the name of the column."""
    found: dict[str, str] = {}
    for column in columns:
        if column.type is None:
            continue
        name = column.name if re.fullmatch(r"[a-z_][A-Za-z0-9_]*", column.name) else ""
        name = name or _snake(column.name) or "column"
        if name == "id" and (column.type != "String" or not column.identifies):
            name = f"{_snake(table.name)}_id"  # `id` is the entity id, and that is a text.
        if name in RESERVED_NAMES or name in reserved:
            name = f"{_snake(table.name)}_{name.strip('_')}"
        while name in found.values():
            name += "_"
        found[column.name] = name
    return found


def _snake(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name))
    text = "_".join(words).lower()
    return f"n{text}" if text[:1].isdigit() else text


def _pascal(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in _snake(name).split("_"))


def _comment(text: str) -> str:
    """A name of a column within a comment, on its line."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)


# -- text ----------------------------------------------------------------------------------------


def _text(types: Sequence[InferredType]) -> str:
    lines = ["// Inferred from data: look it over, then create a graph and load the same data:"]
    makes = _load_words(types)[0] == "import"
    lines += ["//", *([] if makes else ["//   omnigraph init ./graph --schema this.pg"])]
    lines += [f"//   {line}" for line in _load_lines(types)]
    seen: set[str] = set()
    for found in types:
        lines.append("")
        if found.table.label not in seen:
            seen.add(found.table.label)
            lines.append(f"// {found.table.rows:,} rows of {_comment(found.table.label)}")
        lines += found.lines
    return "\n".join(lines) + "\n"


def _load_words(types: Sequence[InferredType]) -> list[str]:
    """The arguments of the command that loads the data into a graph with the schema."""
    loading = {t.table.loading for t in types}
    words = ["load", "./graph", "--mode", "append"]
    if loading != {Loading.FILE}:
        files = dict.fromkeys(file for t in types for file in t.table.files)
        if loading != {Loading.RECORDS}:
            words = ["import", "./graph", "--schema", "this.pg"]
        return [*words, *(word for file in files for word in ("--data", file))]
    for found in types:
        words += ["--data", f"{found.name}={found.table.label}"]
    for found in types:
        for prop, column in found.columns.items() if found.is_mapped else ():
            words += ["--map", f"{found.name}.{prop}={column}"]
    return words


def _load_lines(types: Sequence[InferredType]) -> list[str]:
    words = [_comment(shlex.quote(word)) for word in _load_words(types)]
    head, rest = " ".join(["omnigraph", *words[:4]]), words[4:]
    pairs = [f"{a} {b}" for a, b in zip(rest[::2], rest[1::2], strict=True)]
    return [f"{line} \\" for line in [head, *(f"    {p}" for p in pairs[:-1])]] + [
        f"    {pairs[-1]}"
    ]
