"""The way of a query text to its tree.

source -> tokens -> [AST] -> check -> typed query
"""

from __future__ import annotations

from omnigraph.lang.source import Source
from omnigraph.query import ast
from omnigraph.query.findings import QueryFindings
from omnigraph.query.parse.queries import Queries


def parse_queries(source: Source) -> ast.QueryFile:
    """All queries of a text. Raises ``QueryError`` with everything that cannot be read."""
    findings = QueryFindings(source)
    queries = Queries(findings).file()
    findings.raise_if_any()
    return queries
