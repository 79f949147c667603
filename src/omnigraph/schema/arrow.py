"""Arrow types of a catalog's tables: the one place that says how a property is represented.

``DateTime`` is ``timestamp[ms, UTC]``: Arrow defines date64 as whole days, so an instant stored as
date64 would be truncated by any conforming reader (ADR 0003).
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.schema.catalog import GraphType, Property, PropertyType, Scalar

_SCALARS: dict[Scalar, pa.DataType] = {
    Scalar.STRING: pa.string(),
    Scalar.BLOB: pa.large_binary(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("ms", tz="UTC"),
}


def arrow_type(property_type: PropertyType) -> pa.DataType:
    """The Arrow type that holds values of this property type."""
    if property_type.vector_size is not None:
        return pa.list_(pa.field("item", pa.float32()), property_type.vector_size)
    scalar = _SCALARS[property_type.scalar]
    return pa.list_(pa.field("item", scalar)) if property_type.is_list else scalar


def arrow_field(prop: Property) -> pa.Field:
    """The column of one property."""
    return pa.field(prop.name, arrow_type(prop.type), nullable=prop.type.nullable)


def table_schema(graph_type: GraphType) -> pa.Schema:
    """All columns of a type's table: the system columns, then the properties."""
    system = [pa.field(name, pa.string(), nullable=False) for name in graph_type.system_columns]
    # A declared `id: String @key` is the entity id itself and therefore not stored twice.
    own = [arrow_field(p) for p in graph_type.properties if p.name not in graph_type.system_columns]
    return pa.schema([*system, *own])
