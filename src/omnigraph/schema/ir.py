"""The catalog as bytes: canonical JSON that a graph stores beside its `.pg` text.

    catalog -> [ir] -> bytes -> hash;   bytes -> [ir] -> catalog

The same catalog always gives the same bytes (sorted keys, no spaces, no field that says nothing:
an absent one is null, false or empty), so a hash of the bytes names the schema. Reading accepts
nothing else: bytes that would not be written again exactly as they are were damaged or edited.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar, cast

import orjson

from omnigraph.errors import CorruptionError, ErrorKind, FormatError
from omnigraph.schema.catalog import (
    Annotation,
    Backfill,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Embed,
    GraphType,
    InterfaceType,
    NodeType,
    Property,
    PropertyType,
    Range,
    Scalar,
)

IR_VERSION = 2
"""2 has backfills and aliases. A schema without any is written as version 1, as it always was."""

Json = dict[str, Any]
T = TypeVar("T", InterfaceType, NodeType, EdgeType)


def to_ir(catalog: Catalog, source: str) -> bytes:
    """The catalog and the text it came from, as canonical JSON."""
    document: Json = {
        "ir_version": _version(catalog),
        "next_id": catalog.next_id,
        "source": source,
        "interfaces": [_interface_out(i) for i in catalog.interfaces.values()],
        "nodes": [_node_out(n) for n in catalog.nodes.values()],
        "edges": [_edge_out(e) for e in catalog.edges.values()],
    }
    if catalog.aliases:
        document["aliases"] = sorted(catalog.aliases.items())
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _version(catalog: Catalog) -> int:
    owners = [*catalog.interfaces.values(), *catalog.types()]
    filled = any(p.backfill is not None for owner in owners for p in owner.properties)
    return 2 if filled or catalog.aliases else 1


@lru_cache(maxsize=4)
def catalog_of(ir: bytes) -> Catalog:
    """The catalog alone, remembered: the tasks of one process ask for the same one."""
    return from_ir(ir)[0]


def from_ir(ir: bytes) -> tuple[Catalog, str]:
    """The catalog and its source text.

    Raises ``CorruptionError`` if the bytes are not what ``to_ir`` writes, and ``FormatError`` if
    a newer version of omnigraph wrote them.
    """
    try:
        document: Any = orjson.loads(ir)
        version = document["ir_version"]
        if type(version) is int and version > IR_VERSION:
            raise FormatError(
                f"schema IR has version {version}, this omnigraph reads {IR_VERSION}",
                kind=ErrorKind.FORMAT_NEWER,
                hint="upgrade omnigraph first",
            )
        catalog = _catalog_in(document)
        source: Any = document["source"]
        rewritten = to_ir(catalog, source)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise CorruptionError(f"schema IR is malformed: {error!r}") from error
    if type(source) is not str or rewritten != ir:
        raise CorruptionError("schema IR is not in canonical form")
    _verify(catalog)
    return catalog, source


def schema_hash(ir: bytes) -> str:
    """The name of a schema: SHA-256 of its IR, in hexadecimal."""
    return hashlib.sha256(ir).hexdigest()


# -- writing -------------------------------------------------------------------------------------


def _said(**fields: Any) -> Json:
    """The fields that say something. Zero does: it is a bound."""
    return {
        name: value
        for name, value in fields.items()
        if not (value is None or value is False or value in ((), [], {}))
    }


def _interface_out(interface: InterfaceType) -> Json:
    return _said(
        id=interface.id,
        name=interface.name,
        properties=[_property_out(p) for p in interface.properties],
    )


def _type_out(graph_type: GraphType) -> Json:
    return _said(
        id=graph_type.id,
        incarnation=graph_type.incarnation,
        name=graph_type.name,
        properties=[_property_out(p) for p in graph_type.properties],
        key=graph_type.key,
        unique=graph_type.unique,
        indexes=graph_type.indexes,
        description=graph_type.description,
        instruction=graph_type.instruction,
        annotations=_annotations_out(graph_type.annotations),
    )


def _node_out(node: NodeType) -> Json:
    return _type_out(node) | _said(
        implements=node.implements,
        ranges=[_said(property=r.property_name, low=r.low, high=r.high) for r in node.ranges],
        checks=[{"property": c.property_name, "pattern": c.pattern} for c in node.checks],
    )


def _edge_out(edge: EdgeType) -> Json:
    card = edge.cardinality
    return _type_out(edge) | _said(
        source=edge.source,
        target=edge.target,
        cardinality=_said(low=card.low or None, high=card.high),
        keyed=edge.keyed,
    )


def _property_out(prop: Property) -> Json:
    embed = prop.embed
    return _said(
        id=prop.id,
        name=prop.name,
        type=_said(
            scalar=str(prop.type.scalar),
            list=prop.type.is_list,
            nullable=prop.type.nullable,
            enum=prop.type.enum_values,
            size=prop.type.vector_size,
        ),
        description=prop.description,
        embed=_said(source=embed.source, model=embed.model) if embed else None,
        annotations=_annotations_out(prop.annotations),
        backfill=_backfill_out(prop.backfill) if prop.backfill else None,
    )


def _backfill_out(fill: Backfill) -> Json:
    if fill.copy_of is not None:
        return {"copy_of": fill.copy_of, "text": fill.text}
    return {"value": fill.value, "text": fill.text}


def _annotations_out(annotations: Iterable[Annotation]) -> list[Json]:
    return [_said(name=a.name, value=a.value, arguments=a.arguments) for a in annotations]


# -- reading -------------------------------------------------------------------------------------


def _catalog_in(document: Json) -> Catalog:
    return Catalog(
        interfaces=_by_name(document["interfaces"], _interface_in),
        nodes=_by_name(document["nodes"], _node_in),
        edges=_by_name(document["edges"], _edge_in),
        next_id=_int(document["next_id"]),
        aliases={_int(a): _int(b) for a, b in document.get("aliases", ())},
    )


def _by_name(entries: list[Json], read: Callable[[Json], T]) -> dict[str, T]:
    return {t.name: t for t in map(read, entries)}


def _interface_in(entry: Json) -> InterfaceType:
    return InterfaceType(
        id=_int(entry["id"]),
        name=_str(entry["name"]),
        properties=tuple(map(_property_in, entry.get("properties", ()))),
    )


def _type_fields(entry: Json) -> Json:
    return {
        "id": _int(entry["id"]),
        "incarnation": _int(entry["incarnation"]),
        "name": _str(entry["name"]),
        "properties": tuple(map(_property_in, entry.get("properties", ()))),
        "key": _strings(entry.get("key", [])),
        "unique": tuple(map(_strings, entry.get("unique", ()))),
        "indexes": tuple(map(_strings, entry.get("indexes", ()))),
        "description": _optional_str(entry.get("description")),
        "instruction": _optional_str(entry.get("instruction")),
        "annotations": tuple(map(_annotation_in, entry.get("annotations", ()))),
    }


def _node_in(entry: Json) -> NodeType:
    return NodeType(
        **_type_fields(entry),
        implements=_strings(entry.get("implements", [])),
        ranges=tuple(map(_range_in, entry.get("ranges", ()))),
        checks=tuple(
            Check(property_name=_str(c["property"]), pattern=_str(c["pattern"]))
            for c in entry.get("checks", ())
        ),
    )


def _edge_in(entry: Json) -> EdgeType:
    card = entry.get("cardinality", {})
    return EdgeType(
        **_type_fields(entry),
        source=_str(entry["source"]),
        target=_str(entry["target"]),
        cardinality=Cardinality(low=_int(card.get("low", 0)), high=_optional_int(card.get("high"))),
        keyed=_bool(entry.get("keyed", False)),
    )


def _property_in(entry: Json) -> Property:
    shape, embed = entry["type"], entry.get("embed")
    values = shape.get("enum")
    return Property(
        id=_int(entry["id"]),
        name=_str(entry["name"]),
        type=PropertyType(
            scalar=Scalar(shape["scalar"]),
            is_list=_bool(shape.get("list", False)),
            nullable=_bool(shape.get("nullable", False)),
            enum_values=None if values is None else _strings(values),
            vector_size=_optional_int(shape.get("size")),
        ),
        description=_optional_str(entry.get("description")),
        embed=None
        if embed is None
        else Embed(source=_str(embed["source"]), model=_optional_str(embed.get("model"))),
        annotations=tuple(map(_annotation_in, entry.get("annotations", ()))),
        backfill=_backfill_in(entry["backfill"]) if "backfill" in entry else None,
    )


def _backfill_in(entry: Json) -> Backfill:
    text = _str(entry["text"])
    if "copy_of" in entry:
        return Backfill(copy_of=_int(entry["copy_of"]), text=text)
    if not isinstance(entry["value"], str | int | float | bool):
        raise TypeError(f"backfill {entry!r}")
    return Backfill(value=entry["value"], text=text)


def _annotation_in(entry: Json) -> Annotation:
    arguments = tuple((_str(name), _str(value)) for name, value in entry.get("arguments", ()))
    return Annotation(
        name=_str(entry["name"]), value=_optional_str(entry.get("value")), arguments=arguments
    )


def _range_in(entry: Json) -> Range:
    low, high = entry.get("low"), entry.get("high")
    if any(b is not None and type(b) not in (int, float) for b in (low, high)):
        raise TypeError(f"range {entry!r}")
    return Range(property_name=_str(entry["property"]), low=low, high=high)


def _int(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r} is not a natural number")
    return value


def _optional_int(value: Any) -> int | None:
    return None if value is None else _int(value)


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise TypeError(f"{value!r} is not a boolean")
    return value


def _str(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is not a text")
    return value


def _optional_str(value: Any) -> str | None:
    return None if value is None else _str(value)


def _strings(value: Any) -> tuple[str, ...]:
    if type(value) is not list:
        raise TypeError(f"{value!r} is not a list")
    return tuple(_str(v) for v in cast("list[Any]", value))


# -- consistency ---------------------------------------------------------------------------------


def _verify(catalog: Catalog) -> None:
    """Well-formed JSON may still contradict itself; the rest of the package relies on a catalog."""
    numbers = [i.id for i in catalog.interfaces.values()]
    numbers += [n for t in catalog.types() for n in (t.id, t.incarnation)]
    owners = [*catalog.interfaces.values(), *catalog.types()]
    numbers += [p.id for owner in owners for p in owner.properties]
    if len(set(numbers)) != len(numbers) or any(n >= catalog.next_id for n in numbers):
        raise CorruptionError("schema IR uses a stable number twice, or one that is still free")
    for graph_type in catalog.types():
        known = set(graph_type.by_name)
        used = set(graph_type.key)
        if isinstance(graph_type, EdgeType):
            known |= {"src", "dst"}
            if not {graph_type.source, graph_type.target} <= set(catalog.nodes):
                raise CorruptionError(f"schema IR: {graph_type.table_key} has no endpoints")
        elif isinstance(graph_type, NodeType):
            used |= {c.property_name for c in (*graph_type.ranges, *graph_type.checks)}
            if not set(graph_type.implements) <= set(catalog.interfaces):
                raise CorruptionError(f"schema IR: {graph_type.table_key} has no interface")
        used |= {name for group in (*graph_type.unique, *graph_type.indexes) for name in group}
        if not used <= known or len(graph_type.by_name) != len(graph_type.properties):
            raise CorruptionError(f"schema IR: {graph_type.table_key} contradicts its properties")
        if any((p.type.vector_size is None) == (p.type.scalar is Scalar.VECTOR)
               for p in graph_type.properties):  # fmt: skip
            raise CorruptionError(f"schema IR: {graph_type.table_key} has an impossible vector")
