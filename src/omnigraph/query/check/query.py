"""The whole way of one query through the checker, as a table of contents.

AST -> declare -> patterns -> outputs -> typed query
               -> mutations ----------->
"""

from __future__ import annotations

from omnigraph.query import ast, typed
from omnigraph.query.check.context import Context
from omnigraph.query.check.declare import declare_params, unused
from omnigraph.query.check.mutations import check_mutation
from omnigraph.query.check.outputs import check_read
from omnigraph.query.codes import QueryCode
from omnigraph.query.findings import QueryFindings
from omnigraph.schema.catalog import Catalog


def check_query(query: ast.Query, catalog: Catalog, findings: QueryFindings) -> typed.Query | None:
    """The query as it runs on this schema, or None after reporting everything wrong with it."""
    ctx = Context(catalog, findings)
    params = declare_params(query.params, ctx)
    notes = {a.name.text: a.value for a in query.annotations}
    if isinstance(query.body, ast.Read):
        body = check_read(query.body, ctx)
    else:
        body = check_mutation(query.body, ctx)
    if ctx.reports:
        return None
    return typed.Query(
        name=query.name.text if query.name else None,
        params=params,
        body=body,
        description=notes.get("description"),
        instruction=notes.get("instruction"),
        warnings=tuple(
            findings.source.diagnostic(
                code=str(QueryCode.UNUSED_PARAMETER),
                message=f"parameter `${param.name.text}` is never used",
                span=param.name.span,
            )
            for param in unused(query.params, ctx)
        ),
    )
