"""The grammar of a record: which members it has, which type it names, which properties it sets.

    parsed JSON object | Python dict -> [shape] -> values per column, or problems

One record is `{"type": T, "data": {…}}` or `{"edge": E, "from": id, "to": id, "data": {…}}`.
Nothing unknown is skipped: a misspelt optional property would be lost without a sound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from omnigraph.lang.suggest import suggestion
from omnigraph.schema.catalog import Catalog, EdgeType, GraphType
from omnigraph.schema.property_values import (
    Converter,
    ValueRefused,
    converter,
    is_missing,
    shown,
    text,
)

_NODE_MEMBERS = ("type", "data")
_EDGE_MEMBERS = ("edge", "from", "to", "data")
_ENDPOINT_NAMES = frozenset({"src", "dst", "from", "to"})

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedRow:
    """One record as column values; columns that are not named are null."""

    type: GraphType
    values: dict[str, Any]


class RecordShape:
    """Reads records against one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._converters: dict[str, dict[str, Converter]] = {}

    def read(self, record: object, report: Report) -> ShapedRow | None:
        """The row of a record, or None after everything wrong with it was reported."""
        if not isinstance(record, Mapping):
            report(f"expected a JSON object, got {shown(record)}")
            return None
        members = cast("Mapping[Any, Any]", record)
        graph_type = self._type_of(members, report)
        if graph_type is None:
            return None
        is_edge = isinstance(graph_type, EdgeType)
        allowed = _EDGE_MEMBERS if is_edge else _NODE_MEMBERS
        problems = [_unexpected(n, graph_type, allowed) for n in members if n not in allowed]
        values: dict[str, Any] = {}
        if is_edge:
            values["src"] = _endpoint(members, "from", problems)
            values["dst"] = _endpoint(members, "to", problems)
        properties = members.get("data", {})
        if not isinstance(properties, Mapping):
            problems.append(f'"data" must be an object, got {shown(properties)}')
        else:
            self._read_properties(graph_type, properties, values, problems)
        for problem in problems:
            report(problem)
        return None if problems else ShapedRow(type=graph_type, values=values)

    def _type_of(self, members: Mapping[Any, Any], report: Report) -> GraphType | None:
        if ("type" in members) == ("edge" in members):
            found = "both" if "type" in members else "neither"
            report(f'a record has exactly one of the members "type" and "edge", here are {found}')
            return None
        member = "type" if "type" in members else "edge"
        name = members[member]
        if not isinstance(name, str):
            report(f'"{member}" must be a string, got {shown(name)}')
            return None
        nodes, edges = self._catalog.nodes, self._catalog.edges
        found_type = nodes.get(name) if member == "type" else self._catalog.edge(name)
        if found_type is None:
            if member == "type" and self._catalog.edge(name) is not None:
                hint = f' ({name} is an edge type: write "edge" instead of "type")'
            elif member == "edge" and name in nodes:
                hint = f' ({name} is a node type: write "type" instead of "edge")'
            else:
                hint = suggestion(name, nodes if member == "type" else edges)
            report(f"unknown {'node' if member == 'type' else 'edge'} type {shown(name)}{hint}")
        return found_type

    def _read_properties(
        self,
        graph_type: GraphType,
        properties: Mapping[Any, Any],
        values: dict[str, Any],
        problems: list[str],
    ) -> None:
        converters = self._converters_of(graph_type)
        for name, value in properties.items():
            convert = converters.get(name) if isinstance(name, str) else None
            if convert is None:
                problems.append(_unknown_property(graph_type, name))
            elif value is not None:
                try:
                    values[name] = convert(value)
                except ValueRefused as error:
                    # Asked late: nearly all values convert, and no converter takes a null.
                    if not is_missing(value):
                        problems.append(f"{graph_type.name}.{name}: {error}")

    def _converters_of(self, graph_type: GraphType) -> dict[str, Converter]:
        known = self._converters.get(graph_type.table_key)
        if known is None:
            # `id` is always accepted: as the entity id, or as the declared property that is it.
            known = {"id": text} | {p.name: converter(p.type) for p in graph_type.properties}
            self._converters[graph_type.table_key] = known
        return known


def _unexpected(name: object, graph_type: GraphType, allowed: tuple[str, ...]) -> str:
    hint = f"allowed are {', '.join(allowed)}"
    if isinstance(name, str) and name in graph_type.by_name:
        hint = 'properties belong into "data"'
    return f"unexpected member {shown(name)} ({hint})"


def _unknown_property(graph_type: GraphType, name: object) -> str:
    hint = ""
    if isinstance(graph_type, EdgeType) and name in _ENDPOINT_NAMES:
        hint = ' (the endpoints are the members "from" and "to", beside "data")'
    elif isinstance(name, str):
        hint = suggestion(name, graph_type.by_name)
    return f"{graph_type.name} has no property {shown(name)}{hint}"


def _endpoint(members: Mapping[Any, Any], name: str, problems: list[str]) -> str | None:
    if name not in members:
        problems.append(f'an edge needs the member "{name}"')
        return None
    value = members[name]
    try:
        return text(value)
    except ValueRefused as error:
        is_number = isinstance(value, int) and not isinstance(value, bool)
        hint = f' (write "{value}")' if is_number and value.bit_length() <= 64 else ""
        problems.append(f'"{name}" is the id of a node: {error}{hint}')
        return None
