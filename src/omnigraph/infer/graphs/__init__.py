"""Graphs of other libraries and databases as tables that a schema is inferred from."""
