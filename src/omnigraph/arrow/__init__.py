"""Small Arrow idioms that every layer may use. Nothing here knows a schema or a graph."""
