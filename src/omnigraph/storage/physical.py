"""How rows lie in Lance: what a logical schema becomes in a file.

Knows the file format, the annotation of keys and the form of blobs, and nothing else.
"""

from __future__ import annotations

import lance
import pyarrow as pa

FILE_FORMAT = "2.2"
PRIMARY_KEY = {b"lance-schema:unenforced-primary-key": b"true"}


def physical_schema(schema: pa.Schema) -> pa.Schema:
    """A logical table schema as Lance stores it: key annotated, blobs as blob columns."""
    fields = []
    for field in schema:
        if field.name == "id":
            field = field.with_metadata(PRIMARY_KEY)
        elif field.type == pa.large_binary():
            field = lance.blob_field(field.name, nullable=field.nullable)
        fields.append(field)
    return pa.schema(fields)


def physical_table(rows: pa.Table) -> pa.Table:
    """Rows in the physical schema. Only blob columns are converted."""
    schema = physical_schema(rows.schema)
    columns = [
        lance.blob_array(column.to_pylist()) if column.type == pa.large_binary() else column
        for column in rows.columns
    ]
    return pa.table(columns, schema=schema)
