"""The whole way of a query text, as a table of contents.

    .gq text -> tokens -> AST -> check -> typed queries

Checks run only on a text that could be read completely: half a query would yield findings about
what stands in the other half.
"""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.errors import UsageError
from omnigraph.lang.source import Source
from omnigraph.lang.suggest import did_you_mean
from omnigraph.query import ast, typed
from omnigraph.query.check import check_query
from omnigraph.query.codes import QueryCode
from omnigraph.query.findings import QueryFindings
from omnigraph.query.parse import parse_queries
from omnigraph.schema.catalog import Catalog


def compile_queries(text: str, catalog: Catalog, *, name: str = "query") -> tuple[typed.Query, ...]:
    """All queries of a text. Raises ``QueryError`` with every finding of every query."""
    source = Source(name=name, text=text)
    file = parse_queries(source)
    findings = QueryFindings(source)
    check_names(file, findings)
    checked = [check_query(query, catalog, findings) for query in file.queries]
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
