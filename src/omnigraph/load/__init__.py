"""Reading rows from JSONL, records and tables, and writing them as JSONL."""

from omnigraph.load.export import write_jsonl
from omnigraph.load.jsonl import JsonlSource, file_source, read_jsonl
from omnigraph.load.records import rows_from_records
from omnigraph.load.rows import LoadedRows
from omnigraph.load.tables import rows_from_table

__all__ = [
    "JsonlSource",
    "LoadedRows",
    "file_source",
    "read_jsonl",
    "rows_from_records",
    "rows_from_table",
    "write_jsonl",
]
