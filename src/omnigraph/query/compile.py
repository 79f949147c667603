"""The whole way of a query text, as a table of contents.

    .gq text -> tokens -> AST -> check -> typed queries

Checks run only on queries that could be read completely: half a query would yield findings about
what stands in the other half. A mistake in one query does not hide findings about the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from omnigraph.errors import QueryError, UsageError
from omnigraph.lang.source import Source
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check import check_query
from omnigraph.query.codes import QueryCode, QueryFindings
from omnigraph.query.parse import read_queries
from omnigraph.query.typed import Delete, Expr, Mutation
from omnigraph.schema.catalog import Catalog, GraphType


def compile_queries(text: str, catalog: Catalog, *, name: str = "query") -> tuple[typed.Query, ...]:
    """All queries of a text. Raises ``QueryError`` with every finding of every query."""
    source = Source(name=name, text=text)
    read = read_queries(source)
    findings = QueryFindings(source)
    check_names(read.file, findings)
    checked = [check_query(query, catalog, findings) for query in read.intact]
    findings.include(read.diagnostics)
    findings.raise_if_any()
    return tuple(query for query in checked if query is not None)


def check_names(file: ast.QueryFile, findings: QueryFindings) -> None:
    """No two queries of a file have the same name."""
    seen: set[str] = set()
    for query in file.queries:
        if query.name is None:
            continue
        if query.name.text in seen:
            message = f"query `{query.name.text}` is declared twice"
            findings.add(QueryCode.DUPLICATE_QUERY, query.name.span, message)
        seen.add(query.name.text)


def pick(queries: Sequence[typed.Query], name: str | None = None) -> typed.Query:
    """The query to run: the named one, or the only one. Raises ``UsageError``."""
    names = [q.name for q in queries if q.name is not None]
    if name is None:
        if len(queries) == 1:
            return queries[0]
        listed = ", ".join(names)
        raise UsageError(
            f"there are {len(queries)} queries; say which one", hint=f"one of {listed}"
        )
    for query in queries:
        if query.name == name:
            return query
    raise UsageError(
        f"there is no query '{name}'",
        hint=did_you_mean(name, names)
        or (f"there are {', '.join(names)}" if names else "the text is one query without a name"),
    )


# -- conditions ------------------------------------------------------------------------------------
# A condition on one type, written in the query language: ``age > 30 and city = "Oslo"``.
#
# where="…" -> [conditions] -> typed condition of a scan
#
# It is the grammar of ``update`` and ``delete``: bare names of properties, ``id``, and on edges
# ``src`` and ``dst``.


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
