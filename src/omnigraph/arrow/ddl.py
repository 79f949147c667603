"""Columns of rows that pass between processes: one text that both Spark and Arrow understand."""

from __future__ import annotations

import pyarrow as pa

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "binary": pa.binary(),
}


def schema_of(ddl: str) -> pa.Schema:
    """The Arrow schema for a text such as ``"key string, line bigint"``."""
    columns = [column.split() for column in ddl.split(",")]
    return pa.schema([(name, _TYPES[word]) for name, word in columns])
