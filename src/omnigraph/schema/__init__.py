"""The schema language: `.pg` text to a checked catalog with stable numbers, and entity ids."""

from typing import TYPE_CHECKING, Any

from omnigraph.schema.arrow import arrow_field, arrow_type, table_schema
from omnigraph.schema.catalog import (
    Annotation,
    Cardinality,
    Catalog,
    Check,
    EdgeType,
    Embed,
    EntityKind,
    GraphType,
    InterfaceType,
    NodeType,
    Property,
    PropertyType,
    Range,
    Scalar,
)
from omnigraph.schema.codes import SchemaCode
from omnigraph.schema.identity import canonical_ids, canonical_text
from omnigraph.schema.ir import from_ir, schema_hash, to_ir

if TYPE_CHECKING:
    from omnigraph.schema.compile import compile_schema, parse_schema

__all__ = [
    "Annotation",
    "Cardinality",
    "Catalog",
    "Check",
    "EdgeType",
    "Embed",
    "EntityKind",
    "GraphType",
    "InterfaceType",
    "NodeType",
    "Property",
    "PropertyType",
    "Range",
    "Scalar",
    "SchemaCode",
    "arrow_field",
    "arrow_type",
    "canonical_ids",
    "canonical_text",
    "compile_schema",
    "from_ir",
    "parse_schema",
    "schema_hash",
    "table_schema",
    "to_ir",
]


def __getattr__(name: str) -> Any:
    # The parser and the rules are half of this package, and a graph that is there needs neither.
    if name not in ("compile_schema", "parse_schema"):
        raise AttributeError(f"module 'omnigraph.schema' has no attribute '{name}'")
    from omnigraph.schema import compile

    return getattr(compile, name)
