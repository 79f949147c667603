"""Result columns: their Arrow types, and whole nodes as objects."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.query import typed
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, NodeType, Property, Scalar

if TYPE_CHECKING:
    from omnigraph.query.exec.frame import NodeBinding

ID = "@id"


def visible(node: NodeType) -> list[Property]:
    """The properties that a whole node shows: no blobs, no vectors."""
    return [p for p in node.properties if p.type.scalar not in (Scalar.BLOB, Scalar.VECTOR)]


def object_type(node: NodeType) -> pa.DataType:
    """A whole node as an Arrow struct."""
    fields = [pa.field(ID, pa.string())]
    fields += [pa.field(p.name, arrow_type(p.type)) for p in visible(node)]
    return pa.struct(fields)


def value_type(kind: typed.ValueType, catalog: Catalog) -> pa.DataType:
    """The Arrow type of a result column."""
    if isinstance(kind, typed.ObjectType):
        return object_type(catalog.nodes[kind.type_name])
    return arrow_type(kind)


def result_schema(outputs: Sequence[typed.Output], catalog: Catalog) -> pa.Schema:
    """The columns of a result."""
    return pa.schema([pa.field(o.name, value_type(o.type, catalog)) for o in outputs])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ResultColumns:
    """The columns of a result, and where they come from."""

    outputs: tuple[typed.Output, ...]
    schema: pa.Schema
    stored: tuple[typed.Prop, ...] | None
    """The property that each output is; None if one is anything else."""

    @staticmethod
    def of(outputs: tuple[typed.Output, ...], catalog: Catalog) -> ResultColumns:
        """What these outputs are."""
        stored = tuple(o.value for o in outputs if isinstance(o.value, typed.Prop))
        return ResultColumns(
            outputs=outputs,
            schema=result_schema(outputs, catalog),
            stored=stored if len(stored) == len(outputs) else None,
        )


def plain(values: pa.Array) -> pa.Array:
    """Without a dictionary."""
    return values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values


def whole_number(value: int) -> pa.Array:
    """One integer as a column; straight from its bytes, which is the quickest way."""
    data = pa.py_buffer(value.to_bytes(8, sys.byteorder, signed=True))
    return pa.Array.from_buffers(pa.int64(), 1, [None, data])


def objects(binding: NodeBinding) -> pa.Array:
    """Whole nodes; null where the variable is."""
    node = binding.table.type
    names = ["id", *(p.name for p in visible(node))]
    columns = [plain(c) for c in binding.table.columns.take_many(names, binding.rows)]
    present = binding.present()
    return pa.StructArray.from_arrays(
        columns,
        fields=list(object_type(node)),
        mask=None if present.all() else pa.array(~present),
    )
