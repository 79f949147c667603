"""A condition on one type, written in the query language: ``age > 30 and city = "Oslo"``.

where="…" -> [conditions] -> typed condition of a scan

It is the grammar of ``update`` and ``delete``: bare names of properties, ``id``, and on edges
``src`` and ``dst``.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.errors import QueryError, UsageError
from omnigraph.query.compile import compile_queries
from omnigraph.query.typed import Delete, Expr, Mutation
from omnigraph.schema.catalog import Catalog, GraphType


def condition_of(text: str, graph_type: GraphType, catalog: Catalog) -> Expr:
    """The typed condition. Raises ``QueryError`` with every finding."""
    try:
        # On lines of its own, so that findings are shown where they are.
        queries = compile_queries(f"delete {graph_type.name} where\n{text}\n", catalog)
    except QueryError as error:
        found = [replace(d, line=max(1, d.line - 1)) for d in error.diagnostics]
        raise QueryError("where", found) from None
    body = queries[0].body if len(queries) == 1 else None
    statement = body.statements[0] if isinstance(body, Mutation) else None
    if not isinstance(body, Mutation) or len(body.statements) > 1:
        raise UsageError("where is more than one condition", hint="join conditions by `and`")
    if not isinstance(statement, Delete) or statement.kind != graph_type.kind:
        raise UsageError(f"{graph_type.table_key} cannot be asked by its name alone")
    return statement.where
