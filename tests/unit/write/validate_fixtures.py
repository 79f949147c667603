"""Schemas, deltas and states in few words, for the tests of the validator."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.errors import ConstraintError
from omnigraph.rules.table_delta import Origins, TableDelta, WriteMode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import (
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    GraphType,
    NodeType,
    Property,
    PropertyType,
    Range,
    Scalar,
)
from omnigraph.testing.committed import MemoryState
from omnigraph.write.txn import GraphDelta
from omnigraph.write.validate import Validated, validate

APPEND, MERGE, OVERWRITE = WriteMode.APPEND, WriteMode.MERGE, WriteMode.OVERWRITE


def prop(name, scalar, *, id=0, **options):
    options.setdefault("nullable", True)
    return Property(id=id, name=name, type=PropertyType(scalar=scalar, **options))


def node(name, *properties, **options):
    return NodeType(id=1, incarnation=1, name=name, properties=properties, **options)


def edge(name, source, target, *properties, card=(0, None), **options):
    return EdgeType(
        id=1,
        incarnation=1,
        name=name,
        properties=properties,
        source=source,
        target=target,
        cardinality=Cardinality(low=card[0], high=card[1]),
        **options,
    )


def catalog(*types):
    return Catalog(
        interfaces={},
        nodes={t.name: t for t in types if isinstance(t, NodeType)},
        edges={t.name: t for t in types if isinstance(t, EdgeType)},
        next_id=100,
    )


def fleet(**calls):
    """Vessels keyed by number, ports without key, calls between them, tows among vessels."""
    return catalog(
        node(
            "Vessel",
            prop("imo", Scalar.I64, nullable=False),
            prop("name", Scalar.STRING, nullable=False),
            prop("sign", Scalar.STRING),
            prop("flag", Scalar.STRING, enum_values=("DK", "NO")),
            prop("speed", Scalar.F64),
            prop("tags", Scalar.STRING, is_list=True),
            prop("shape", Scalar.VECTOR, vector_size=2),
            key=("imo",),
            unique=(("sign",), ("name", "flag")),
            ranges=(Range(property_name="speed", low=0, high=40),),
            checks=(Check(property_name="name", pattern="[A-Z]"),),
        ),
        node("Port", prop("code", Scalar.STRING), unique=(("code",),)),
        edge("CallsAt", "Vessel", "Port", prop("berth", Scalar.STRING), **calls),
        edge("Tows", "Vessel", "Vessel"),
    )


def table_of(graph_type: GraphType, rows) -> pa.Table:
    """Rows as dictionaries; what is left out is null, a vessel's id is its number."""
    schema = table_schema(graph_type)
    full = []
    for row in rows:
        row = dict(row)
        if "imo" in row and row["imo"] is not None:
            row.setdefault("id", str(row["imo"]))
        full.append(row)
    # Fields are built nullable: rows before validation may hold nulls anywhere.
    return pa.table(
        {f.name: pa.array([r.get(f.name) for r in full], f.type) for f in schema},
        schema=pa.schema([f.with_nullable(True) for f in schema]),
    )


def origins(count: int, name: str = "in.jsonl") -> Origins:
    return Origins.of((name,), [(0, range(1, count + 1))])


def change(schema: Catalog, mode=APPEND, *, removed=None, fresh=(), lines=False, **rows):
    """A delta: ``Vessel=[…]``; ``removed={"Vessel": […]}``; every table in one mode."""
    removed = removed or {}
    keys = {t.name: t.table_key for t in schema.types()}
    tables = {}
    for name in dict.fromkeys((*rows, *removed)):
        graph_type = schema.table(keys[name])
        content = rows.get(name, [])
        tables[keys[name]] = TableDelta(
            type=graph_type,
            mode=mode,
            rows=table_of(graph_type, content),
            removed=pa.array(removed.get(name, []), pa.string()),
            ids_fresh=name in fresh,
            origins=origins(len(content)) if lines else None,
        )
    return GraphDelta(tables=tables)


def both(*deltas: GraphDelta) -> GraphDelta:
    """Several deltas as one, for tables in different modes."""
    return GraphDelta(tables={k: t for d in deltas for k, t in d.tables.items()})


def state(schema: Catalog, **rows) -> MemoryState:
    keys = {t.name: t.table_key for t in schema.types()}
    return MemoryState({keys[n]: table_of(schema.table(keys[n]), r) for n, r in rows.items()})


def failure(schema, delta, committed=None, **options) -> ConstraintError:
    try:
        validate(schema, delta, committed or MemoryState(), **options)
    except ConstraintError as error:
        return error
    raise AssertionError("the delta is valid")


def messages(schema, delta, committed=None) -> list[str]:
    return [v.message for v in failure(schema, delta, committed).violations]


def accepted(schema, delta, committed=None) -> Validated:
    return validate(schema, delta, committed or MemoryState())


def counts(validated: Validated, key: str) -> tuple[int, int, int]:
    """Inserted, updated, deleted."""
    table = validated.tables[key]
    return table.inserted_count, table.updated_count, table.deleted_count
